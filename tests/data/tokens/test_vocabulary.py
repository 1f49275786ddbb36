"""Text to tokens and back, at every level, whatever the text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from saccade.data.tokens.vocabulary import CONTROL, HIDDEN, OURS, Level, SpecialTokens, Vocabulary
from saccade.errors import ConfigError, DataError, RunError

PAD, START, END, UNKNOWN = OURS[:4]

TEXTS = [
    "I think therefore I am",
    "I like machine learning",
    "I am not just a neural network",
    "L’accord sur la zone économique européenne a été signé en août 1992.",
]
LEVELS: list[Level] = ["bpe", "words", "characters"]
TRAINED = {level: Vocabulary.train(TEXTS, level=level, size=400) for level in LEVELS}
LETTERS = sorted(set("".join(TEXTS)))
WORDS = sorted({word for text in TEXTS for word in text.split()})


@given(st.text())
def test_bpe_writes_any_text_but_for_one_leading_blank(text: str) -> None:
    vocabulary = TRAINED["bpe"]
    assert vocabulary.decode(vocabulary.encode(text)) in (text, text.removeprefix(" "))


@given(st.text().filter(lambda text: not text.startswith(" ")))
def test_bpe_writes_any_text_that_begins_without_a_blank_exactly(text: str) -> None:
    vocabulary = TRAINED["bpe"]
    assert vocabulary.decode(vocabulary.encode(text)) == text


@given(st.text(alphabet=LETTERS).filter(lambda text: not text.startswith(" ")))
def test_characters_write_any_text_of_known_characters(text: str) -> None:
    vocabulary = TRAINED["characters"]
    tokens = vocabulary.encode(text)
    assert len(tokens) == len(text)
    assert vocabulary.decode(tokens) == text


@given(st.lists(st.sampled_from(WORDS)))
def test_words_write_any_text_of_known_words(words: list[str]) -> None:
    vocabulary = TRAINED["words"]
    tokens = vocabulary.encode(" ".join(words))
    assert len(tokens) == len(words)
    assert vocabulary.decode(tokens) == " ".join(words)


@pytest.mark.parametrize("level", LEVELS)
def test_half_of_a_character_is_told(level: Level) -> None:
    for text, what in (("I \ud800", "half of a surrogate pair"), ("I \udcff", "the byte 0xff")):
        with pytest.raises(DataError, match=f"the text has {what} at character 3; give whole"):
            TRAINED[level].encode_all(["I", text])


@pytest.mark.parametrize("level", ["words", "characters"])
def test_what_was_never_seen_is_unknown(level: Level) -> None:
    tokens = TRAINED[level].encode("☃")
    assert tokens == [UNKNOWN]
    assert TRAINED[level].decode(tokens) == CONTROL[UNKNOWN]


def test_the_end_of_a_line_is_a_word_of_its_own() -> None:
    vocabulary = Vocabulary.train(["a b\nc"], level="words", size=20)
    assert [vocabulary.pieces([token])[0] for token in vocabulary.encode("a\nb  c")] == [
        *("a", "\n", "b", "c")
    ]


TYPED = [*CONTROL, "</s>", "<s>", "<pad>", "<unk>", "<|endoftext|>", f"a{CONTROL[END]}b"]


@pytest.mark.parametrize("text", TYPED)
@pytest.mark.parametrize("level", LEVELS)
def test_control_tokens_cannot_be_typed(level: Level, text: str, tmp_path: Path) -> None:
    trained = Vocabulary.train([*TEXTS, *TYPED], level=level, size=400)
    path = tmp_path / "tokenizer.json"
    path.write_text(trained.to_json())
    for vocabulary in (trained, Vocabulary.load(path)):
        assert not {PAD, START, END, UNKNOWN} & set(vocabulary.encode(text))
        assert not {PAD, START, END, UNKNOWN} & set(vocabulary.encode_all([text])[0])
        assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("level", LEVELS)
def test_control_tokens_have_no_text(level: Level) -> None:
    vocabulary = TRAINED[level]
    tokens = vocabulary.encode("I am")
    assert vocabulary.decode([START, *tokens, END, PAD, PAD]) == "I am"
    assert vocabulary.pieces([PAD, START, END, UNKNOWN]) == list(CONTROL)


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_texts_give_the_same_tokens(level: Level) -> None:
    assert (
        Vocabulary.train(iter(TEXTS), level=level, size=400).to_json() == TRAINED[level].to_json()
    )


@pytest.mark.parametrize("level", ["words", "characters"])
def test_the_order_of_the_texts_does_not_matter(level: Level) -> None:
    turned = Vocabulary.train(TEXTS[::-1], level=level, size=400)
    assert turned.to_json() == TRAINED[level].to_json()


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_saving_then_loading_is_the_identity(level: Level, lowercase: bool, tmp_path: Path) -> None:
    vocabulary = Vocabulary.train(TEXTS, level=level, size=400, lowercase=lowercase)
    path = tmp_path / "tokenizer.json"
    path.write_text(vocabulary.to_json())
    again = Vocabulary.load(path)
    assert again.to_json() == vocabulary.to_json()
    assert len(again) == len(vocabulary)
    for text in [*TEXTS, "THEREFORE ☃", "<end of text>"]:
        assert again.encode(text) == vocabulary.encode(text)
        assert again.spans(text) == vocabulary.spans(text)


@pytest.mark.parametrize("level", LEVELS)
def test_many_texts_at_once_are_encoded_as_one_by_one(level: Level) -> None:
    vocabulary = TRAINED[level]
    texts = [*TEXTS, "", " ", "<end of text>"]
    assert vocabulary.encode_all(texts) == [vocabulary.encode(text) for text in texts]


@given(st.text())
def test_spans_cover_the_text_in_order(text: str) -> None:
    for vocabulary in TRAINED.values():
        spans = vocabulary.spans(text)
        assert len(spans) == len(vocabulary.encode(text))
        assert spans == sorted(spans)
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        covered = {i for start, end in spans for i in range(start, end)}
        assert {i for i, letter in enumerate(text) if not letter.isspace()} <= covered


@pytest.mark.parametrize("level", LEVELS)
def test_the_span_of_a_piece_holds_its_text(level: Level) -> None:
    vocabulary, text = TRAINED[level], "I am not just a neural network"
    for (start, end), piece in zip(
        vocabulary.spans(text), vocabulary.pieces(vocabulary.encode(text))
    ):
        assert text[start:end].strip() == piece.strip()


@pytest.mark.parametrize("level", LEVELS)
def test_lowercase_makes_no_difference_between_cases(level: Level) -> None:
    vocabulary = Vocabulary.train(TEXTS, level=level, size=400, lowercase=True)
    assert vocabulary.encode("I THINK") == vocabulary.encode("i think")
    assert vocabulary.decode(vocabulary.encode("I THINK")) == "i think"
    assert TRAINED[level].encode("I THINK") != TRAINED[level].encode("i think")


@pytest.mark.parametrize(("level", "size"), [("bpe", 270), ("words", 9), ("characters", 9)])
def test_size_is_a_cap_that_is_reached(level: Level, size: int) -> None:
    assert len(Vocabulary.train(TEXTS, level=level, size=size)) == size
    assert len(Vocabulary.train(TEXTS, level=level, size=100_000)) < 1000


def test_the_most_frequent_words_are_kept() -> None:
    vocabulary = Vocabulary.train(["b b b", "a a", "c", "a"], level="words", size=6)
    assert vocabulary.encode("a b c") == [4, 5, UNKNOWN]  # a and b are as frequent: the alphabet


@pytest.mark.parametrize("level", LEVELS)
def test_control_tokens_come_first(level: Level) -> None:
    assert min(TRAINED[level].encode(TEXTS[0])) >= len(CONTROL)
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)


def test_a_size_without_room_is_refused() -> None:
    message = r"^vocabulary=4 must be at least 260 for level=bpe$"
    with pytest.raises(ConfigError, match=message):
        Vocabulary.train(TEXTS, size=4)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"version": "1.0"'])
def test_a_broken_file_is_no_tokenizer(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"tokenizer\.json is not a tokenizer: "):
        Vocabulary.load(path)


def test_a_missing_file_is_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nowhere\.json does not exist"):
        Vocabulary.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("level", LEVELS)
def test_entries_name_every_token_by_its_number_and_no_two_alike(level: Level) -> None:
    vocabulary = TRAINED[level]
    entries = vocabulary.entries()
    assert entries[: len(CONTROL)] == list(CONTROL)
    assert len(set(entries)) == len(entries) == len(vocabulary)
    assert entries[vocabulary.encode("I")[-1]].removeprefix("Ġ") == "I"


def bert_like() -> Tokenizer:
    """Words in pieces, with the special tokens where BERT has them."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=names, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def gpt_like() -> Tokenizer:
    """Bytes in pairs, and one token for start, end and padding, after all others."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


FOREIGN = {"bert": Vocabulary(bert_like()), "gpt-2": Vocabulary(gpt_like())}


def test_the_special_tokens_of_a_foreign_tokenizer_are_found() -> None:
    assert FOREIGN["bert"].special == SpecialTokens(pad=0, start=2, end=3, unknown=1, mask=4)
    gpt = FOREIGN["gpt-2"]
    last = len(gpt) - 1
    assert gpt.special == SpecialTokens(pad=last, start=last, end=last, unknown=None)
    for one in FOREIGN.values():
        assert (one.pad, one.start, one.end) == one.special[:3]
    assert all(TRAINED[level].special == OURS for level in LEVELS)


@pytest.mark.parametrize("name", FOREIGN)
@given(words=st.lists(st.sampled_from(WORDS), min_size=1))
def test_a_foreign_tokenizer_writes_what_it_has_read(name: str, words: list[str]) -> None:
    vocabulary = FOREIGN[name]
    text = " ".join(word for word in words if word.isalpha()) or "think"
    tokens = vocabulary.encode(text)
    assert vocabulary.decode(tokens) == text
    assert vocabulary.decode([vocabulary.start, *tokens, vocabulary.end, vocabulary.pad]) == text
    assert not {vocabulary.start, vocabulary.end, vocabulary.pad} & set(tokens)


@pytest.mark.parametrize("name", FOREIGN)
def test_names_of_foreign_special_tokens_are_shown_and_never_read(name: str) -> None:
    vocabulary = FOREIGN[name]
    shown = vocabulary.pieces([vocabulary.start, vocabulary.end])
    assert shown == (["[CLS]", "[SEP]"] if name == "bert" else ["<|endoftext|>"] * 2)
    special = {number for number in vocabulary.special[:3] if number is not None}
    assert not special & set(vocabulary.encode(f"{shown[0]} think {shown[1]}"))


def test_a_foreign_unknown_word_is_told() -> None:
    vocabulary = FOREIGN["bert"]
    tokens = vocabulary.encode("☃")
    assert tokens == [vocabulary.special.unknown]
    assert vocabulary.decode(tokens) == "[UNK]"


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_tokenizer_survives_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(FOREIGN[name].to_json(), encoding="utf-8")
    again = Vocabulary.load(path)
    assert again.special == FOREIGN[name].special
    assert again.encode(TEXTS[0]) == FOREIGN[name].encode(TEXTS[0])


def test_a_tokenizer_without_start_and_end_is_refused(tmp_path: Path) -> None:
    bare = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    message = "the tokenizer has no tokens for start and end that Saccade knows"
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Vocabulary(bare)
    bare.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(RunError, match=f"tokenizer.json is not a tokenizer: {message}"):
        Vocabulary.load(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("level", LEVELS)
def test_a_token_for_hidden_words_is_the_fifth_and_only_when_asked_for(
    level: Level, tmp_path: Path
) -> None:
    assert TRAINED[level].mask is None
    vocabulary = Vocabulary.train([*TEXTS, HIDDEN], level=level, size=400, masks=True)
    assert vocabulary.special == OURS._replace(mask=4)
    assert vocabulary.mask == 4
    path = tmp_path / "tokenizer.json"
    path.write_text(vocabulary.to_json())
    assert Vocabulary.load(path).special == vocabulary.special
    assert 4 not in vocabulary.encode(f"I {HIDDEN} am")
    assert vocabulary.pieces([4]) == [HIDDEN]
    assert min(vocabulary.encode(TEXTS[0])) > 4
    assert HIDDEN in vocabulary.decode([*vocabulary.encode("I"), 4])


def test_names_that_a_tokenizer_declares_come_before_those_of_mere_words() -> None:
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "<pad>", "<s>", "</s>", "<unk>", "a"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}))
    assert Vocabulary(tokenizer).special == SpecialTokens(0, 1, 2, 3)
    tokenizer.add_special_tokens(words[4:8])
    assert Vocabulary(tokenizer).special == SpecialTokens(4, 5, 6, 7)


def test_texts_that_start_with_padding_are_marians() -> None:
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "<unk>": 1, "<pad>": 2}))
    assert Vocabulary(tokenizer).special == SpecialTokens(pad=2, start=2, end=0, unknown=1)

"""Texts that stream become the tokens that they are at once, whatever is cut or remembered."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from saccade.data.batching.ragged import Ragged
from saccade.data.tokens import streamed_encoding
from saccade.data.tokens.streamed_encoding import (
    StreamEncoder,
    encode_ragged,
    encoded_shards,
    pieces,
    reads_in_pieces,
    streamed_pieces,
)
from saccade.data.tokens.vocabulary import CONTROL, Level, Vocabulary
from tests.marks import one_fast

TEXTS = [
    "I think, therefore I am: don't you?",
    "ODOS ΟΔΟΣ ΣΟΦΟΣ İstanbul",
    "L’accord sur la zone économique européenne a été signé en août 1992.",
    "blanks    in   a  row \n\n  \t  are tokens   of     their own \t " * 9,
]
LEVELS: list[Level] = ["bpe", "words", "characters"]
TRAINED = {
    (level, lowercase): Vocabulary.train(TEXTS * 2, level=level, size=400, lowercase=lowercase)
    for level in LEVELS
    for lowercase in (False, True)
}
odd = [
    "",
    " ",
    "  ",
    "\n",
    "\t",
    "\u00a0",
    "\u2028",
    "\x1c",
    "\x85",
    "\u180e",
    "\u200b",
    "'s",
    "' ll",
]
word = st.sampled_from([*" ".join(TEXTS).split(), *odd]) | st.text(max_size=3)
texts_of_words = st.lists(
    st.lists(word, max_size=8).map(" ".join) | st.text(max_size=9), max_size=6
)


@pytest.fixture(autouse=True)
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_encoding, "PIECE", 7)
    monkeypatch.setattr(streamed_encoding, "BLOCK", 3)
    monkeypatch.setattr(streamed_encoding, "MEMORY", 40)


def read(ragged: Ragged) -> list[list[int]]:
    return [ragged[row].tolist() for row in range(len(ragged))]


@pytest.mark.parametrize("trained", one_fast(TRAINED.values()), ids=map(str, TRAINED))
@given(several=st.lists(texts_of_words, min_size=1, max_size=3))
def test_tokens_are_those_of_encoding_all_at_once(
    trained: Vocabulary, several: list[list[str]]
) -> None:
    encoder = StreamEncoder(trained)
    for texts in several:  # what it has met before makes no difference
        ragged = encoder.encode(iter(texts))
        assert read(ragged) == trained.encode_all(texts)
        assert ragged.flat.dtype == torch.uint16


@given(text=st.lists(word, max_size=30).map(" ".join), size=st.integers(1, 40))
def test_pieces_are_the_same_however_the_text_comes(text: str, size: int) -> None:
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    assert list(streamed_pieces(chunks)) == list(pieces(text))


@given(st.lists(word, max_size=30).map(" ".join))
def test_pieces_are_the_text_and_begin_with_a_blank(text: str) -> None:
    cut = list(pieces(text))
    assert "".join(cut) == text
    assert all(piece.startswith(" ") for piece in cut[1:])


def test_a_long_text_of_words_is_cut_into_short_pieces() -> None:
    assert max(map(len, pieces("some words " * 50))) < 7 + 12


def foreign(normalizer: object, splitter: object) -> Vocabulary:
    names = [*CONTROL, "a", "b", "▁a", "a▁b", "ab"]
    model = models.WordLevel({name: i for i, name in enumerate(names)}, unk_token=CONTROL[-1])
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if splitter is not None:
        tokenizer.pre_tokenizer = splitter
    return Vocabulary(tokenizer)


@pytest.mark.parametrize(
    "vocabulary",
    [
        foreign(None, None),
        foreign(None, pre_tokenizers.Metaspace()),
        foreign(normalizers.Replace(" ", ""), pre_tokenizers.ByteLevel()),
        foreign(None, pre_tokenizers.ByteLevel(use_regex=False)),
    ],
)
@given(texts=st.lists(st.text(alphabet="ab ", max_size=20), max_size=5))
def test_tokenizers_that_look_beyond_blanks_see_texts_whole(
    vocabulary: Vocabulary, texts: list[str]
) -> None:
    assert not reads_in_pieces(vocabulary)
    assert read(encode_ragged(vocabulary, texts)) == vocabulary.encode_all(texts)


def test_tokenizers_that_leave_merges_to_chance_see_texts_whole() -> None:
    random = (
        Vocabulary.train(TEXTS, size=400).to_json().replace('"dropout": null', '"dropout": 0.5')
    )
    assert not reads_in_pieces(Vocabulary.of_json(random))


@given(count=st.integers(1, 9), first=st.integers(0, 9))
def test_shards_go_on_from_any_row(count: int, first: int) -> None:
    rows = [(f"a dog {i % 4}", f"un chien {i % 4}") for i in range(count)]
    vocabulary = TRAINED["bpe", False]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_encoding, "SHARD", 2)
        shards = list(encoded_shards(vocabulary, _once(rows), first=first))
    found = [read(Ragged.joined(some)) for some in zip(*(shard.columns for shard in shards))]
    rest = rows[first:]
    expected = [vocabulary.encode_all([row[side] for row in rest]) for side in (0, 1)]
    assert found == (expected if rest else [])
    marks = [mark for shard in shards for mark in shard.marks.tolist()]
    assert len(set(marks)) == len(set(rest))


def _once(rows: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield from rows

"""What tokens stand for and read like, in any script."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from saccade.app.look.axis import text_axis
from saccade.app.look.pieces import readable
from saccade.data.tokens.pieces import token_labels, token_spans
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import words

TEXTS = [
    "我喜欢学习中国话",
    "猫が魚を食べる",
    "أحب القراءة",
    "👨\u200d👩\u200d👧 🇫🇷 hello",
    "ภาษาไทย",
]
BYTES = Vocabulary.train(TEXTS, size=300)  # most characters are cut
MERGED = Vocabulary.train(TEXTS * 3, size=600)  # and words of several
text_of_any_script = st.text() | st.lists(
    st.sampled_from([*"".join(TEXTS), "e\u0301", "\u200d", "क्षि", "✊🏿", " "])
).map("".join)


def foreign(*, wrapped: bool) -> Any:
    """Bytes alone, as GPT-2 begins."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<|endoftext|>", *alphabet]
    made = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    made.add_special_tokens(names[:1])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=names[0]) if wrapped else made


@given(text_of_any_script)
def test_labels_together_are_the_text(text: str) -> None:
    for vocabulary in (BYTES, MERGED):
        tokens = vocabulary.encode(text)
        assert "".join(vocabulary.pieces(tokens)).removeprefix(" ") == text.removeprefix(" ")
        read = text_axis(vocabulary, [*tokens, vocabulary.end])
        assert "".join(read.tokens) == vocabulary.decode(tokens) + "<end>"
        given = text_axis(vocabulary, tokens, spans=vocabulary.spans(text), text=text)
        assert "".join(given.tokens) == (text if tokens else "")
        assert len(given.tokens) == len(read.tokens) - 1 == len(tokens)


@given(text_of_any_script)
def test_labels_of_foreign_tokenizers_together_are_the_text(text: str) -> None:
    for tokenizer in (foreign(wrapped=False), foreign(wrapped=True)):
        ids = tokenizer.encode(text)
        ids = [0, *(ids if isinstance(ids, list) else ids.ids), 0]
        first, *labels, last = readable(tokenizer, ids)
        assert first == last == "<|endoftext|>"
        assert "".join(labels) == text


@given(text_of_any_script)
def test_tokens_stand_for_the_same_characters_read_or_written(text: str) -> None:
    for vocabulary in (BYTES, MERGED):
        tokens = vocabulary.encode(text := text.strip())
        shift = len(text) - len(vocabulary.decode(tokens))  # of blanks
        if not shift and "\ufffd" not in text:
            written = [span for span in vocabulary.spans_of(tokens) if span[0] < span[1]]
            assert written == [
                span
                for span, own in zip(vocabulary.spans(text), vocabulary.spans_of(tokens))
                if own[0] < own[1]
            ]


@given(st.lists(st.integers(4, 290)))
def test_any_tokens_have_labels_and_spans_in_order(tokens: list[int]) -> None:
    """A model may write bytes that are no text."""
    text, spans = BYTES.decode(tokens), BYTES.spans_of(tokens)
    assert "".join(token_labels(text, spans)) == (text if tokens else "")
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
    slow = [len(BYTES.decode(tokens[: count + 1])) for count in range(len(tokens))]
    assert [end for _, end in spans] == slow


@pytest.mark.parametrize("character", ["é", "我", "👍", "👨\u200d👩\u200d👧", "ก็"])
def test_the_first_token_of_a_character_shows_it_and_all_stand_for_it(character: str) -> None:
    made = foreign(wrapped=False)
    ids = made.encode(character).ids
    assert readable(made, ids) == [character, *[""] * (len(ids) - 1)]
    spans = token_spans(made.decode, ids)
    assert {place for span in spans for place in range(*span)} == set(range(len(character)))
    assert all(start < end for start, end in spans)


def test_a_token_is_named_by_its_bytes_until_a_character_is_complete() -> None:
    vocabulary = Vocabulary.train(["x"], size=260)  # of single bytes
    *_, first, second, third = tokens = vocabulary.encode("我")
    assert vocabulary.piece(first, after=[]) == "<0xE6>"
    assert vocabulary.piece(second, after=[first]) == "<0x88>"
    assert vocabulary.piece(third, after=[first, second]) == "我"
    assert vocabulary.piece(third, after=[]) == "<0x91>"
    assert vocabulary.piece(vocabulary.end, after=tokens) == "<end of text>"


@pytest.mark.parametrize(
    "text", ["我喜欢小猫。", "ก็ดี", "猫👨\u200d👩\u200d👧が", "the cafe\u0301, 我"]
)
def test_the_bytes_of_a_character_belong_to_one_word_of_the_page(text: str) -> None:
    vocabulary = Vocabulary.train(["x"], size=260)  # of single bytes
    axis = text_axis(vocabulary, vocabulary.encode(text))
    shown = ["".join(axis.tokens[start:end]).strip() for start, end in axis.words]
    assert shown == words(text, vocabulary.spans(text))
    assert axis.words[-1][1] == len(axis.tokens)

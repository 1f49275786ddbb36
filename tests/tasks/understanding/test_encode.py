"""Texts read some at a time: the same tokens, types and words as all at once."""

import pytest
import torch

from saccade.data.batching.ragged import Ragged
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.understanding import encode
from saccade.tasks.understanding.encode import EncodedTexts

WORDS = [["the"] * (n % 4) + ["dog", str(n)] for n in range(11)]
ONES: list[tuple[str, ...]] = [(" ".join(words),) for words in WORDS]
PAIRS: list[tuple[str, ...]] = [(*text, "a cat") for text in ONES]
VOCABULARY = Vocabulary.train([*ONES[3], "a cat 0 1 2"], level="bpe", size=270)


def equal(one: Ragged, other: Ragged) -> bool:
    return torch.equal(one.flat, other.flat) and torch.equal(one.starts, other.starts)


@pytest.mark.parametrize("texts", [ONES, PAIRS, []], ids=["ones", "pairs", "none"])
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("longest", [None, 9])
def test_how_many_are_read_at_a_time_is_all_one(
    texts: list[tuple[str, ...]],
    tagged: bool,
    longest: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = WORDS if tagged and texts is ONES else ()
    whole = EncodedTexts.of(VOCABULARY, texts, words, longest=longest)
    monkeypatch.setattr(encode, "AT_ONCE", 3)
    parts = EncodedTexts.of(VOCABULARY, texts, words, longest=longest)
    assert equal(parts.tokens, whole.tokens)
    assert equal(parts.types, whole.types)
    assert equal(parts.words, whole.words)
    assert parts.cut == whole.cut
    assert bool(whole.cut) == (longest is not None and bool(texts))

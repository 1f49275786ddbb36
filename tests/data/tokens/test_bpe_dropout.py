"""Byte pairs with some merges left out: the tokenizer itself, single bytes, and all in between."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from saccade.data.tokens.bpe_dropout import BpeDropout
from saccade.data.tokens.vocabulary import Level, Vocabulary
from saccade.errors import ConfigError
from tests.data.tokenizers_made import TEXTS, bert_like, byte_pairs

OURS = Vocabulary.train(TEXTS, size=400, lowercase=True)
GPT_2: list[str | AddedToken] = [AddedToken("<|endoftext|>", special=True)]
THEIRS = Vocabulary(byte_pairs(GPT_2, 350))
BOTH = pytest.mark.parametrize("vocabulary", [OURS, THEIRS], ids=["ours", "theirs"])
ANY = st.one_of(st.text(), st.lists(st.sampled_from(TEXTS)).map(" ".join))


def bytes_of(vocabulary: Vocabulary, tokens: list[int]) -> int:
    return sum(len(vocabulary.entries()[token]) for token in tokens)


@BOTH
@given(text=ANY)
def test_with_rate_0_it_is_the_tokenizer(vocabulary: Vocabulary, text: str) -> None:
    assert BpeDropout(vocabulary, 0.0).encode(text, Random(0)) == vocabulary.encode(text)


@BOTH
@given(text=ANY)
def test_with_rate_1_every_byte_is_alone(vocabulary: Vocabulary, text: str) -> None:
    tokens = BpeDropout(vocabulary, 1.0).encode(text, Random(0))
    assert len(tokens) == bytes_of(vocabulary, vocabulary.encode(text))


@BOTH
@given(text=ANY, rate=st.sampled_from([0.1, 0.5, 0.9]), seed=st.integers(0, 99))
def test_in_between_the_pieces_are_others_and_the_text_is_the_same(
    vocabulary: Vocabulary, text: str, rate: float, seed: int
) -> None:
    dropout, whole = BpeDropout(vocabulary, rate), vocabulary.encode(text)
    tokens = dropout.encode(text, Random(seed))
    assert vocabulary.decode(tokens) == vocabulary.decode(whole)
    assert len(whole) <= len(tokens) <= bytes_of(vocabulary, whole)
    assert dropout.encode(text, Random(seed)) == tokens
    assert dropout.again(whole, Random(seed)) == tokens


def test_a_text_that_begins_with_blanks_keeps_them() -> None:
    whole = OURS.encode("   i think")
    assert BpeDropout(OURS, 0.0).again(whole, Random(0)) == whole


def test_what_was_read_before_changes_nothing() -> None:
    used = BpeDropout(OURS, 0.3)
    for seed in range(20):
        used.encode(" ".join(TEXTS), Random(seed))
    fresh = BpeDropout(OURS, 0.3).encode(TEXTS[2], Random(7))
    assert used.encode(TEXTS[2], Random(7)) == fresh
    assert used.encode(TEXTS[2], Random(8)) != fresh


def three_letters() -> Vocabulary:
    """Two merges, ab and then abc; and bc, which is learnt last."""
    names = ["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "abc", "bc"]
    merges = [("a", "b"), ("ab", "c"), ("b", "c")]
    numbers = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(numbers, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return Vocabulary(tokenizer)


def test_each_possible_merge_is_passed_over_with_that_probability() -> None:
    """abc: ab (1−p) then abc (1−p); ab, then nothing more (p); bc where ab was passed over."""
    p, vocabulary, count = 0.3, three_letters(), 20_000
    dropout, random = BpeDropout(vocabulary, p), Random(0)
    entries = vocabulary.entries()
    found = Counter(
        " ".join(entries[token] for token in dropout.encode("abc", random)) for _ in range(count)
    )
    chances = {
        "abc": (1 - p) ** 2,
        "ab c": (1 - p) * p,
        "a bc": p * (1 - p),
        "a b c": p * p,
    }
    assert found.keys() == chances.keys()
    for pieces, chance in chances.items():
        assert found[pieces] / count == pytest.approx(chance, abs=0.015), pieces


def with_a_word() -> Vocabulary:
    """One that is cut out of texts before anything else is done with them."""
    tokenizer = byte_pairs(GPT_2, 350)
    tokenizer.add_tokens(["cell"])
    return Vocabulary(tokenizer)


LEVELS: list[Level] = ["words", "characters"]
REFUSED = {
    **{level: Vocabulary.train(TEXTS, level=level, size=200) for level in LEVELS},
    "pieces": Vocabulary(bert_like()),
    "added": with_a_word(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_such_pairs_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"bpe_dropout=0.1 is of byte pairs .* leave it out"):
        BpeDropout(REFUSED[name], 0.1)

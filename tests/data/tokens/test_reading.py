"""Texts and pairs are read as transformers' own tokenizers read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from saccade.data.tokens import vocabulary as module
from saccade.data.tokens.reading import longest_first
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from tests.data.tokenizers_made import TEXTS, bert_like, gpt_like, roberta_like

MADE = {"bert": bert_like, "roberta": roberta_like}
SAVED = {name: make().to_str() for name, make in MADE.items()}
READERS = {name: Vocabulary(Tokenizer.from_str(saved)) for name, saved in SAVED.items()}
PEERS = {
    name: PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(saved), split_special_tokens=True
    )
    for name, saved in SAVED.items()
}
WORDS = sorted({word for text in TEXTS for word in text.split()})
TYPED = ["[MASK]", "[CLS]", "[SEP]", "<s>", "</s>", "<mask>", "<|endoftext|>"]
LINES = st.lists(st.sampled_from([*WORDS, *TYPED, "naïve", "☃", "  "]), max_size=12).map(" ".join)


@pytest.mark.parametrize("name", MADE)
@given(texts=st.lists(LINES, min_size=1, max_size=2), longest=st.none() | st.integers(5, 30))
def test_a_reading_is_that_of_transformers(
    name: str, texts: list[str], longest: int | None
) -> None:
    [found] = READERS[name].readings([tuple(texts)], longest=longest)
    cut = {} if longest is None else {"truncation": "longest_first", "max_length": longest}
    given = [[text] for text in texts]  # in lists: alone, an empty second text would be none
    peer = PEERS[name](*given, **cut, return_token_type_ids=True, return_offsets_mapping=True)
    assert [found.tokens] == peer["input_ids"]
    assert [found.types] == peer["token_type_ids"]
    assert [found.spans] == peer["offset_mapping"]
    assert found.sides == peer.sequence_ids(0)


@pytest.mark.parametrize("name", MADE)
def test_many_at_once_are_read_as_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = READERS[name]
    texts = [(TEXTS[0],), (TEXTS[1], TEXTS[2]), ("",), ("", ""), (TEXTS[3], "")]
    expected = [reader.readings([one])[0] for one in texts]
    assert reader.readings(texts) == expected
    monkeypatch.setattr(module, "AT_ONCE", 2)
    assert reader.readings(texts) == expected
    assert reader.readings([]) == []


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("typed", TYPED)
def test_special_tokens_cannot_be_typed(name: str, typed: str) -> None:
    reader = READERS[name]
    special = {number for number in reader.special if number is not None}
    [reading] = reader.readings([(f"I {typed} am", typed)])
    own = [token for token, side in zip(reading.tokens, reading.sides) if side is not None]
    assert not (special - {reader.special.unknown}) & set(own)
    assert not (special - {reader.special.unknown}) & set(reader.encode(typed))


OURS = {
    "ours": Vocabulary.train(TEXTS, size=300),
    "gpt-2": Vocabulary(gpt_like()),
}


@pytest.mark.parametrize("name", OURS)
@given(a=LINES, b=LINES)
def test_without_a_template_start_and_end_stand_around_each_text(name: str, a: str, b: str) -> None:
    vocabulary = OURS[name]
    start, end = vocabulary.start, vocabulary.end
    first, second = vocabulary.encode(a), vocabulary.encode(b)
    single, pair = vocabulary.readings([(a,), (a, b)])
    assert single.tokens == [start, *first, end]
    assert pair.tokens == [start, *first, end, *second, end]
    assert pair.types == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert pair.sides == [None, *[0] * len(first), None, *[1] * len(second), None]
    inside = [span for span, side in zip(pair.spans, pair.sides) if side is not None]
    assert inside == [*vocabulary.spans(a), *vocabulary.spans(b)]
    assert {span for span, side in zip(pair.spans, pair.sides) if side is None} == {(0, 0)}


@given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=2), room=st.integers(1, 40))
def test_the_longer_text_loses_tokens_first(lengths: list[int], room: int) -> None:
    """As if one token after the other were taken from whichever is longer."""
    kept = longest_first(lengths, room)
    assert sum(kept) == min(room, sum(lengths))
    taken = list(lengths)
    while sum(taken) > room:
        taken[taken.index(max(taken))] -= 1
    assert sorted(kept) == sorted(taken)
    assert all(one <= before for one, before in zip(kept, lengths))


def test_no_room_for_text_is_refused() -> None:
    message = r"^longest=3 leaves no room for text beside 3 special tokens; give at least 4$"
    with pytest.raises(ConfigError, match=message):
        READERS["bert"].readings([("a", "b")], longest=3)
    assert len(READERS["bert"].readings([("a",)], longest=3)[0].tokens) == 3

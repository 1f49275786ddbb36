"""Which words are hidden: the published shares, the same in any company, never a special token."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.ragged import Ragged
from saccade.data.tokens.reading import TemplatePlace
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError, DataError
from saccade.tasks.masked.framed import EncodedLines, TextFrame, TextRows
from saccade.tasks.masked.masking import HiddenWords, Masking

PAD, START, END, UNKNOWN, MASK = range(5)
FIRST_WORD, SIZE = 5, 60
ORDINARY = torch.arange(SIZE) >= FIRST_WORD
MASKING = Masking(share=0.15, mask=MASK, hideable=ORDINARY, whole_words=False, seed=0)
ONE = TextFrame(
    (TemplatePlace(START, None, 0), TemplatePlace(None, 0, 0), TemplatePlace(END, None, 0))
)
words = st.integers(UNKNOWN, SIZE - 1).filter(lambda token: token != MASK)
known = st.integers(FIRST_WORD, SIZE - 1)
texts = st.lists(
    st.tuples(known, st.lists(words, max_size=40)).map(lambda two: [two[0], *two[1]]),
    min_size=1,
    max_size=9,
)


def lines_of(rows: list[list[int]], sizes: list[int] | None = None) -> EncodedLines:
    """Texts, of which words have so many pieces in turn."""
    if sizes is None:
        return EncodedLines(Ragged.of(rows))
    starts = [1 if i == 0 else 0 for size in sizes for i in range(size)]
    begins = [[starts[i % len(starts)] for i in range(len(row))] for row in rows]
    return EncodedLines(Ragged.of(rows), Ragged.of(begins))


def hidden_of(rows: TextRows, which: list[int], masking: Masking, *, epoch: int) -> HiddenWords:
    some = torch.tensor(which)
    return masking.hide(rows.take(some), rows.first[some], epoch=epoch)


def by_text(rows: TextRows, found: HiddenWords, which: list[int]) -> list[list[tuple[int, int]]]:
    """Of each text: where words are hidden, and what is read there."""
    lengths = rows.lengths[torch.tensor(which)]
    ends = lengths.cumsum(0).tolist()
    return [
        [
            (int(at) - end + size, int(found.tokens[at]))
            for at in found.at
            if end - size <= int(at) < end
        ]
        for size, end in zip(lengths.tolist(), ends)
    ]


@given(texts, st.integers(0, 5), st.booleans())
def test_labels_are_the_words_at_chosen_places_and_all_else_stays(
    rows: list[list[int]], epoch: int, whole: bool
) -> None:
    data = TextRows.singles(lines_of(rows, [1, 3, 2]), ONE)
    every = torch.arange(len(rows))
    before = data.take(every)
    found = replace(MASKING, whole_words=whole).hide(before, data.first, epoch=epoch)
    assert torch.equal(before.tokens[found.at], found.labels)
    assert ORDINARY[found.labels].all(), "a special token or an unknown word was hidden"
    others = torch.ones(len(before.tokens), dtype=torch.bool)
    others[found.at] = False
    assert torch.equal(found.tokens[others], before.tokens[others])
    assert (ORDINARY[found.tokens[found.at]] | (found.tokens[found.at] == MASK)).all()
    chosen = [len(some) for some in by_text(data, found, every.tolist())]
    assert min(chosen) >= 1


@given(texts, st.integers(0, 5))
def test_of_each_text_the_published_share_is_hidden(rows: list[list[int]], epoch: int) -> None:
    data = TextRows.singles(lines_of(rows), ONE)
    which = list(range(len(rows)))
    found = by_text(data, hidden_of(data, which, MASKING, epoch=epoch), which)
    for row, some in zip(rows, found):
        may = sum(token >= FIRST_WORD for token in row)
        assert len(some) == max(1, int(0.15 * may + 0.5))


@given(
    texts,
    st.lists(st.integers(0, 8), min_size=1, max_size=9),
    st.integers(0, 5),
    st.booleans(),
)
def test_a_text_is_hidden_alike_in_any_company(
    rows: list[list[int]], company: list[int], epoch: int, whole: bool
) -> None:
    data = TextRows.singles(lines_of(rows, [2, 1, 4]), ONE)
    masking = replace(MASKING, whole_words=whole)
    which = [row % len(rows) for row in company]
    together = by_text(data, hidden_of(data, which, masking, epoch=epoch), which)
    alone = [by_text(data, hidden_of(data, [row], masking, epoch=epoch), [row])[0] for row in which]
    assert together == alone


@given(texts, st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_whole_words_are_hidden_with_all_their_pieces_and_within_bounds(
    rows: list[list[int]], sizes: list[int]
) -> None:
    masking = replace(MASKING, whole_words=True)
    lines = lines_of(rows, sizes)
    data = TextRows.singles(lines, ONE)
    every = torch.arange(len(rows))
    framed = data.take(every)
    found = masking.hide(framed, data.first, epoch=0)
    chosen = torch.zeros(len(framed.tokens), dtype=torch.bool)
    chosen[found.at] = True
    word = framed.begins.cumsum(0)
    for number in word[found.at].unique():
        pieces = (word == number) & ORDINARY[framed.tokens]
        assert chosen[pieces].all()
    most = masking.most(data, masking.words(data)).tolist()
    counts = [len(some) for some in by_text(data, found, every.tolist())]
    assert all(count <= bound for count, bound in zip(counts, most))


def test_over_many_words_shares_and_fates_are_as_published() -> None:
    row = [FIRST_WORD + i % (SIZE - FIRST_WORD) for i in range(100)]
    data = TextRows.singles(lines_of([row] * 400, [1, 2, 1]), ONE)
    every = torch.arange(400)
    for whole in (False, True):
        masking = replace(MASKING, whole_words=whole)
        found = masking.hide(data.take(every), data.first, epoch=3)
        assert len(found.at) / 40_000 == pytest.approx(0.15, abs=0.002)
        read = found.tokens[found.at]
        masks = (read == MASK).float().mean().item()
        same = (read == found.labels).float().mean().item()
        assert masks == pytest.approx(0.8, abs=0.015)
        assert same == pytest.approx(0.1 + 0.1 / (SIZE - FIRST_WORD), abs=0.012)
        places = torch.bincount(found.at % 102, minlength=102)[1:101].float()
        assert places.min() > 0.6 * places.mean(), "some places are hardly ever hidden"
        substitutes = read[(read != MASK) & (read != found.labels)]
        assert len(substitutes.unique()) == SIZE - FIRST_WORD


def test_epochs_seeds_and_streams_hide_other_words() -> None:
    data = TextRows.singles(lines_of([list(range(FIRST_WORD, SIZE))] * 3), ONE)
    which = [0, 1, 2]
    found = {
        tuple(hidden_of(data, which, replace(MASKING, seed=seed, stream=stream), epoch=epoch).at)
        for seed, stream, epoch in ((0, 0, 0), (0, 0, 1), (1, 0, 0), (0, 16, 0))
    }
    assert len({tuple(map(int, one)) for one in found}) == 4
    first, second, _ = by_text(data, hidden_of(data, which, MASKING, epoch=0), which)
    assert first != second, "equal texts are hidden alike"


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    plain = Vocabulary.train(["a b c"], level="words", size=20)
    with pytest.raises(ConfigError, match=r"no token for hidden words, such as \[MASK\]; start"):
        Masking.of(plain, share=0.15, whole_words=False, seed=0)


def test_neither_special_tokens_nor_unknown_words_may_be_hidden() -> None:
    vocabulary = Vocabulary.train(["a b c"], level="words", size=20, masks=True)
    masking = Masking.of(vocabulary, share=0.15, whole_words=False, seed=0)
    names = [vocabulary.decode([token]) for token in masking.hideable.nonzero()[:, 0].tolist()]
    assert sorted(names) == ["a", "b", "c"]


PAIR = TextFrame((*ONE.parts, TemplatePlace(None, 1, 1), TemplatePlace(END, None, 1)))


def test_in_half_of_the_pairs_another_text_stands_in_place_of_the_next() -> None:
    data = TextRows.pairs(
        lines_of([[FIRST_WORD + i % 9] * (1 + i % 4) for i in range(2000)]), PAIR, seed=4
    )
    every = torch.arange(len(data))
    other = data.follows(every)
    assert data.second is not None
    assert other is not None
    assert other.float().mean().item() == pytest.approx(0.5, abs=0.04)
    assert torch.equal(data.second[other == 0], data.first[other == 0] + 1)
    assert (data.second != data.first).all()
    far = (data.second - data.first)[other == 1].abs()
    assert far.float().median() > 300, "the other text is from nearby"


def test_the_other_text_is_never_the_next_one() -> None:
    few = lines_of([[7], [8], [9]])
    found = [TextRows.pairs(few, PAIR, seed=seed).follows(torch.arange(2)) for seed in range(100)]
    other = torch.stack([one for one in found if one is not None]).float().mean().item()
    assert other == pytest.approx(0.5, abs=0.15)


@given(st.integers(0, 9))
def test_pairs_are_framed_and_typed(row: int) -> None:
    lines = lines_of([[FIRST_WORD + i] * (i % 3) for i in range(12)])
    data = TextRows.pairs(lines, PAIR, seed=0)
    framed = data.take(torch.tensor([row]))
    assert data.second is not None
    first, second = lines.tokens[row].tolist(), lines.tokens[int(data.second[row])].tolist()
    assert framed.tokens.tolist() == [START, *first, END, *second, END]
    assert framed.types.tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert int(data.lengths[row]) == len(framed.tokens) == int(framed.lengths)


def test_two_texts_are_too_few_for_pairs() -> None:
    with pytest.raises(DataError, match="2 texts are too few to tell the next from another; give"):
        TextRows.pairs(lines_of([[7], [8]]), PAIR, seed=0)


@given(texts, st.integers(1, 12))
def test_windows_are_the_stream_with_ends_between_texts(rows: list[list[int]], size: int) -> None:
    lines = lines_of(rows, [1, 2])
    cut = lines.windows(size, END)
    stream = [token for row in rows for token in (*row, END)] if len(rows) > 1 else rows[0]
    every = torch.arange(len(cut.tokens))
    flat, lengths = cut.tokens.take(every)
    found = [piece.tolist() for piece in flat.split(lengths.tolist())]
    assert [token for piece in found for token in piece] == stream
    assert {len(piece) for piece in found[:-1]} <= {size}
    assert 1 <= len(found[-1]) <= size
    assert cut.begins is not None
    assert torch.equal(cut.begins.take(every)[1], lengths)
    # As if it had been copied, in whatever order pieces are taken.
    whole = Ragged.of(found)
    assert cut.tokens.fingerprint() == whole.fingerprint()
    backwards = every.flip(0)
    for ours, theirs in zip(cut.tokens.take(backwards), whole.take(backwards), strict=True):
        assert torch.equal(ours, theirs)


def test_frames_are_those_of_the_tokenizer() -> None:
    vocabulary = Vocabulary.train(["a b c d"], level="words", size=20, masks=True)
    one, two = (TextFrame.of(vocabulary, count, "a b") for count in (1, 2))
    assert one == ONE
    assert [(part.token, part.side, part.type) for part in two.parts if part.side is None] == [
        (START, None, 0),
        (END, None, 0),
        (END, None, 1),
    ]
    assert two.special == 3

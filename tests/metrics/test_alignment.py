"""Alignments by hand, and the laws of merging pieces into words."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.alignment import alignment_error_rate, best_links, merge_pieces

links = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)


@pytest.mark.parametrize(
    ("found", "sure", "possible", "expected"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, set(), 0.0),
        ({(0, 1)}, {(0, 0)}, set(), 1.0),
        ({(0, 0), (1, 2)}, {(0, 0), (1, 1)}, {(1, 2)}, 1 - (1 + 2) / 4),
        ({(0, 0), (2, 2), (3, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2)}, 1 - (1 + 2) / 5),
        (set(), {(0, 0)}, set(), 1.0),
        (set(), set(), set(), 0.0),
    ],
)
def test_error_rate_of_examples_counted_by_hand(
    found: set[tuple[int, int]],
    sure: set[tuple[int, int]],
    possible: set[tuple[int, int]],
    expected: float,
) -> None:
    assert alignment_error_rate([found], [sure], [possible]) == pytest.approx(expected)


def test_error_rate_counts_over_the_corpus_and_not_by_sentence() -> None:
    found = [{(0, 0)}, {(0, 1), (1, 0), (2, 2)}]
    sure = [{(0, 0)}, {(0, 0), (1, 1), (2, 2)}]
    assert alignment_error_rate(found, sure, [set(), set()]) == pytest.approx(1 - 4 / 8)


@given(found=links, sure=links, possible=links)
def test_error_rate_lies_between_zero_and_one(
    found: set[tuple[int, int]], sure: set[tuple[int, int]], possible: set[tuple[int, int]]
) -> None:
    assert 0 <= alignment_error_rate([found], [sure], [possible]) <= 1
    assert alignment_error_rate([sure], [sure], [possible]) == 0
    if sure:
        assert alignment_error_rate([sure | found], [sure], [sure | found]) == 0


def test_corpora_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        alignment_error_rate([{(0, 0)}], [], [])


def test_what_pieces_receive_adds_up_and_what_they_give_is_averaged() -> None:
    weights = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [0.0, 0.4, 0.6]])
    merged = merge_pieces(
        weights,
        source_pieces=[(0, 2), (2, 4), (4, 9)],  # "un" "do" " this": the blank goes with the word
        target_pieces=[(0, 3), (3, 6), (6, 7)],
        source_words=[(0, 4), (5, 9)],
        target_words=[(0, 6), (6, 7)],
    )
    expected = torch.tensor([[0.45, 0.55], [0.4, 0.6]], dtype=torch.float64)
    torch.testing.assert_close(merged, expected, atol=1e-7, rtol=0)


cuts = st.lists(st.integers(1, 3), min_size=1, max_size=6)


def spans(sizes: list[int]) -> list[tuple[int, int]]:
    ends = torch.tensor(sizes).cumsum(0).tolist()
    return list(zip([0, *ends], ends))


@given(source=cuts, target=cuts, source_words=cuts, target_words=cuts, seed=st.integers(0, 99))
def test_merging_conserves_what_is_given(
    source: list[int],
    target: list[int],
    source_words: list[int],
    target_words: list[int],
    seed: int,
) -> None:
    rng = torch.Generator().manual_seed(seed)
    weights = torch.randn(len(target), len(source), generator=rng).softmax(dim=1)
    source_words[-1] += max(0, sum(source) - sum(source_words))  # words cover all of the text
    target_words[-1] += max(0, sum(target) - sum(target_words))
    merged = merge_pieces(
        weights,
        source_pieces=spans(source),
        target_pieces=spans(target),
        source_words=spans(source_words),
        target_words=spans(target_words),
    )
    reached = [start < sum(target) for start, _ in spans(target_words)]
    expected = torch.tensor(reached, dtype=torch.float64)
    torch.testing.assert_close(merged.sum(dim=1), expected, atol=1e-6, rtol=0)


def test_a_piece_that_touches_two_words_is_shared_between_them() -> None:
    merged = merge_pieces(
        torch.tensor([[0.4, 0.6]]),
        source_pieces=[(0, 1), (1, 3)],  # ")." is one piece and two words
        target_pieces=[(0, 1)],
        source_words=[(0, 1), (1, 2), (2, 3)],
        target_words=[(0, 1)],
    )
    expected = torch.tensor([[0.4, 0.3, 0.3]], dtype=torch.float64)
    torch.testing.assert_close(merged, expected, atol=1e-7, rtol=0)


def test_attention_to_the_end_of_the_sentence_is_no_words() -> None:
    merged = merge_pieces(
        torch.tensor([[0.5, 0.5], [0.1, 0.9]]),
        source_pieces=[(0, 1)],
        target_pieces=[(0, 1)],
        source_words=[(0, 1)],
        target_words=[(0, 1)],
    )
    assert merged.tolist() == [[0.5]]


def test_pieces_that_are_words_stay_as_they_are() -> None:
    weights = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    source, target = spans([2, 1, 3, 1]), spans([1, 1, 1])
    merged = merge_pieces(
        weights,
        source_pieces=source,
        target_pieces=target,
        source_words=source,
        target_words=target,
    )
    assert torch.equal(merged, weights.double())


def test_a_text_without_words_has_no_rows() -> None:
    merged = merge_pieces(
        torch.ones(1, 1), source_pieces=[], target_pieces=[], source_words=[], target_words=[]
    )
    assert merged.shape == (0, 0)


def test_each_target_word_is_linked_to_the_source_word_it_looks_at_most() -> None:
    assert best_links(torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.2, 0.8]])) == {
        (1, 0),
        (0, 1),
        (1, 2),
    }

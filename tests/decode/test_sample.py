"""Drawing words: only those allowed, as often as they should be, and the same for a seed."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.decode.sample import Sampler, uniforms
from saccade.errors import ConfigError


def draw(scores: Tensor, seed: int = 0, **options: Any) -> Tensor:
    """One word for each row, by the numbers of a seed."""
    return Sampler(**options)(scores, uniforms(seed, [0], len(scores))[0])


def logits(rows: int, words: int, seed: int) -> Tensor:
    return 2 * torch.randn(rows, words, generator=torch.Generator().manual_seed(seed))


def draws(scores: Tensor, count: int, **options: Any) -> Tensor:
    return draw(scores.expand(count, -1), **options)


@given(k=st.integers(1, 12), seed=st.integers(0, 99))
def test_top_k_draws_only_among_the_k_best(k: int, seed: int) -> None:
    scores = logits(1, 10, seed)
    allowed = set(scores[0].argsort(descending=True)[:k].tolist())
    assert set(draws(scores, 500, top_k=k).tolist()) <= allowed


@given(p=st.floats(0.01, 0.99), seed=st.integers(0, 99))
def test_top_p_draws_only_from_the_smallest_set_that_reaches_p(p: float, seed: int) -> None:
    scores = logits(1, 10, seed)
    allowed, total = set(), 0.0
    probabilities = scores[0].double().softmax(dim=0)
    for word in probabilities.argsort(descending=True).tolist():
        allowed.add(word)
        total += float(probabilities[word])
        if total >= p + 1e-6:
            break
    assert set(draws(scores, 500, top_p=p).tolist()) <= allowed


def test_top_p_draws_from_all_of_its_set() -> None:
    scores = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert set(draws(scores, 2000, top_p=0.75).tolist()) == {0, 1, 2}
    assert set(draws(scores, 2000, top_p=0.65).tolist()) == {0, 1}


def test_top_p_is_measured_among_what_top_k_left() -> None:
    scores = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert set(draws(scores, 2000, top_k=2, top_p=0.5).tolist()) == {0}


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-3}])
def test_the_most_careful_draws_are_greedy(options: dict[str, Any]) -> None:
    scores = logits(200, 10, 0)
    assert torch.equal(draw(scores, **options), scores.argmax(dim=-1))


@pytest.mark.parametrize("temperature", [1e-10, 1e-30, 1e-40, 1e-100])
def test_a_temperature_next_to_zero_is_greedy_and_no_error(temperature: float) -> None:
    scores = 1000 * logits(50, 10, 0)
    assert torch.equal(draw(scores, temperature=temperature), scores.argmax(dim=-1))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.5, 0.25, 0.15, 0.1]),
        ({"temperature": 0.5}, [0.25, 0.0625, 0.0225, 0.01]),
        ({"temperature": 2.0}, [math.sqrt(p) for p in (0.5, 0.25, 0.15, 0.1)]),
        ({"top_k": 2}, [0.5, 0.25, 0, 0]),
        ({"top_p": 0.8}, [0.5, 0.25, 0.15, 0]),
        ({"top_k": 9}, [0.5, 0.25, 0.15, 0.1]),
    ],
)
def test_frequencies_match_probabilities(options: dict[str, Any], expected: list[float]) -> None:
    count, seeds = 20_000, range(10)
    scores = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log() + 3
    rows = [torch.bincount(draws(scores, count, seed=i, **options), minlength=4) for i in seeds]
    seen = torch.stack(rows).double()
    hoped = count * torch.tensor(expected, dtype=torch.float64) / sum(expected)
    possible = hoped > 0
    assert seen[:, ~possible].sum() == 0
    most = {1: 23.2, 2: 37.6, 3: 50.9}[int(possible.sum()) - 1]  # 1 % of χ² with 10, 20, 30
    assert float(((seen - hoped)[:, possible] ** 2 / hoped[possible]).sum()) < most


def test_the_same_seed_draws_the_same_words() -> None:
    scores = logits(100, 10, 0)
    assert torch.equal(draw(scores, 7), draw(scores, 7))
    assert not torch.equal(draw(scores, 7), draw(scores, 8))


def test_numbers_hang_on_seed_stream_and_time_alone() -> None:
    table = uniforms(3, [0, 5, 2], 40)
    assert torch.equal(uniforms(3, [2, 5], 7), table[[2, 1], :7])
    assert table.unique().numel() == table.numel()
    assert not torch.equal(uniforms(4, [0], 40)[0], table[0])
    assert float(uniforms(0, range(200), 100).mean()) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_the_extremes_of_chance_draw_no_word_that_was_cut(u: float) -> None:
    scores = logits(50, 300, 0)
    words = Sampler(top_k=3)(scores, torch.full((50,), u, dtype=torch.float64))
    least = scores.topk(3).values[:, 2]
    assert bool((scores.gather(1, words[:, None])[:, 0] >= least).all())


def test_torchs_own_chance_is_left_alone() -> None:
    before = torch.get_rng_state()
    draw(logits(100, 10, 0))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature=0.0 must be above 0; for the best word give top_k=1"),
        ({"temperature": -1.0}, "temperature=-1.0 must be above 0; for the best word give top_k=1"),
        ({"top_k": -1}, r"top_k=-1 must be 0 \(no cut\) or more"),
        ({"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
    ],
)
def test_draws_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Sampler(**options)

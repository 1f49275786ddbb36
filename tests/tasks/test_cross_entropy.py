"""The loss without all scores at once: against torch's, of all of them, with every gradient."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.tasks import cross_entropy
from saccade.tasks.cross_entropy import IGNORED, score_loss, summed_cross_entropy

WORDS, WIDTH, VOCABULARY = 11, 4, 7
CHUNKS = {"one row": 1, "some rows": 3, "all rows": 11, "room for more": 50}
Parts = tuple[Tensor, OutputLayer, Tensor]


@contextmanager
def rows_at_once(rows: int, vocabulary: int = VOCABULARY) -> Iterator[None]:
    with patch.dict(cross_entropy.SCORES, cpu=rows * vocabulary):
        yield


def parts(seed: int = 0, *, bias: bool = True, dtype: torch.dtype = torch.float64) -> Parts:
    rng = torch.Generator().manual_seed(seed)

    def draws(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype).requires_grad_()

    layer = OutputLayer(draws(VOCABULARY, WIDTH), draws(VOCABULARY) if bias else None)
    labels = torch.randint(VOCABULARY, (WORDS,), generator=rng)
    labels[:2] = torch.tensor([IGNORED, 3])  # at least one of either kind
    return draws(WORDS, WIDTH), layer, labels


def inputs(features: Tensor, layer: OutputLayer) -> list[Tensor]:
    return [features, *(part for part in layer if part is not None)]


def torchs(features: Tensor, layer: OutputLayer, labels: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(
        F.linear(features, *layer),
        labels,
        reduction="sum",
        label_smoothing=smoothing,
        ignore_index=IGNORED,
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("bias", [False, True])
@given(smoothing=st.sampled_from([0.0, 0.1, 0.9]), seed=st.integers(0, 99))
def test_loss_and_gradients_are_torchs_however_many_rows_are_held(
    rows: int, bias: bool, smoothing: float, seed: int
) -> None:
    features, layer, labels = parts(seed, bias=bias)
    with rows_at_once(rows):
        found = summed_cross_entropy(features, layer, labels, smoothing=smoothing)
    expected = torchs(features, layer, labels, smoothing)
    torch.testing.assert_close(found, expected)
    wanted = inputs(features, layer)
    ours = torch.autograd.grad(0.3 * found, wanted)
    theirs = torch.autograd.grad(0.3 * expected, wanted)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_are_the_slopes_of_the_loss(bias: bool) -> None:
    features, layer, labels = parts(bias=bias)

    def loss(*some: Tensor) -> Tensor:
        return summed_cross_entropy(some[0], OutputLayer(*some[1:]), labels, smoothing=0.1)

    with rows_at_once(3):
        assert torch.autograd.gradcheck(loss, inputs(features, layer), check_undefined_grad=False)


@given(smoothing=st.floats(0, 0.99), seed=st.integers(0, 99))
def test_smoothing_spreads_a_share_of_each_label_over_all_words(
    smoothing: float, seed: int
) -> None:
    features, layer, labels = parts(seed)
    labels = labels.clamp(min=0)  # so that all count
    logp = F.linear(features, *layer).log_softmax(dim=-1)
    wanted = (1 - smoothing) * F.one_hot(labels, VOCABULARY).double() + smoothing / VOCABULARY
    found = summed_cross_entropy(features, layer, labels, smoothing=smoothing)
    torch.testing.assert_close(found, -(wanted * logp).sum())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [0, 3])
def test_where_no_word_counts_the_loss_and_its_gradients_are_zero(
    smoothing: float, count: int
) -> None:
    features, layer, _ = parts()
    labels = torch.full((count,), IGNORED)
    loss = summed_cross_entropy(features[:count], layer, labels, smoothing=smoothing)
    loss.backward()
    assert loss.item() == 0
    for part in inputs(features, layer):
        assert part.grad is not None
        assert part.grad.eq(0).all()


def test_half_precision_is_summed_in_single() -> None:
    features, weight = torch.zeros(3000, 4, dtype=torch.bfloat16), torch.ones(7, 4).bfloat16()
    labels = torch.zeros(3000, dtype=torch.long)
    loss = summed_cross_entropy(features, OutputLayer(weight), labels)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(3000 * 1.9459101, rel=1e-5)


def test_autocast_rounds_the_scores_and_nothing_else() -> None:
    features, layer, labels = parts(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16), rows_at_once(3):
        found = summed_cross_entropy(features, layer, labels, smoothing=0.1)
    assert found.dtype == torch.float32
    halves = [x.detach().bfloat16() for x in inputs(features, layer)]
    scores = F.linear(*halves).float()
    expected = F.cross_entropy(
        scores, labels, reduction="sum", label_smoothing=0.1, ignore_index=IGNORED
    )
    torch.testing.assert_close(found, expected)
    exact = parts()
    slopes = torch.autograd.grad(torchs(*exact, 0.1), inputs(*exact[:2]))
    for ours, theirs in zip(torch.autograd.grad(found, inputs(features, layer)), slopes):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.double(), theirs, rtol=0.05, atol=0.05)


def test_without_gradients_the_loss_is_the_same_and_none_are_computed() -> None:
    features, layer, labels = parts()
    known = summed_cross_entropy(features, layer, labels, smoothing=0.1)
    with torch.no_grad(), patch.object(cross_entropy, "_add_product") as product:
        found = summed_cross_entropy(features, layer, labels, smoothing=0.1)
    assert found.equal(known.detach())
    assert not found.requires_grad
    assert product.call_count == 0


Freeze = Callable[[Tensor, OutputLayer], list[Tensor]]
FROZEN: dict[str, Freeze] = {
    "features": lambda features, layer: [features],
    "weight": lambda features, layer: [layer.weight],
    "all but the bias": lambda features, layer: [features, layer.weight],
}


@pytest.mark.parametrize("frozen", FROZEN)
def test_what_is_frozen_leaves_the_gradients_of_the_rest(frozen: str) -> None:
    features, layer, labels = parts()
    for part in FROZEN[frozen](features, layer):
        part.requires_grad_(False)
    learns = [part for part in inputs(features, layer) if part.requires_grad]
    found = summed_cross_entropy(features, layer, labels, smoothing=0.1)
    expected = torchs(features, layer, labels, 0.1)
    torch.testing.assert_close(
        torch.autograd.grad(found, learns), torch.autograd.grad(expected, learns)
    )


def test_a_weight_used_at_both_ends_gets_the_sum_of_its_gradients() -> None:
    torch.manual_seed(0)
    embedding = nn.Embedding(VOCABULARY, WIDTH, dtype=torch.float64)
    words, labels = torch.tensor([1, 2, 2, 5]), torch.tensor([2, 2, 5, 0])

    def slopes(loss: Callable[..., Tensor], **how: Any) -> Tensor:
        embedding.weight.grad = None
        loss(embedding(words).tanh(), OutputLayer(embedding.weight), labels, **how).backward()
        assert embedding.weight.grad is not None
        return embedding.weight.grad

    ours = slopes(summed_cross_entropy, smoothing=0.1).clone()
    torch.testing.assert_close(ours, slopes(torchs, smoothing=0.1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_scores_become_their_own_gradient(smoothing: float, dtype: torch.dtype) -> None:
    features, layer, labels = parts()
    scores = F.linear(features, *layer).detach().to(dtype)
    exact = scores.double().clone().requires_grad_()
    expected = F.cross_entropy(
        exact, labels, reduction="sum", label_smoothing=smoothing, ignore_index=IGNORED
    )
    (slopes,) = torch.autograd.grad(expected, exact)
    found = score_loss(scores, labels, words=VOCABULARY, smoothing=smoothing)
    near = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-2}[dtype]
    torch.testing.assert_close(found.double(), expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scores.double(), slopes, rtol=near, atol=near)


def test_enormous_scores_neither_overflow_nor_vanish() -> None:
    scores = torch.tensor([[1e4, -1e4, 0.0], [-1e30, 0.0, 1.0]])
    labels = torch.tensor([1, 2])
    expected = F.cross_entropy(scores, labels, reduction="sum")
    found = score_loss(scores, labels, words=3, smoothing=0.0)
    torch.testing.assert_close(found, expected)
    assert scores.isfinite().all()

"""Attention within stretches, either way: against attention to all under a mask."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention import masks
from saccade.attention.attend import attend, fused, fused_cross, fused_self
from saccade.attention.kernels.train import dense, ragged
from saccade.attention.kernels.train.packed import (
    packed_attention,
)
from saccade.attention.segments import Segments
from tests.attention.test_segments import Sizes, segments_of, starts

WAYS: dict[str, Callable[..., Tensor]] = {
    "runs": ragged._by_runs,
    "padded": ragged._padded,
    "as it likes": ragged.ragged_attention,
}
HEADS, WIDTH = 2, 3
some_keys = st.tuples(st.integers(0, 4), st.integers(0, 4))
across = st.lists(some_keys, min_size=1, max_size=7).filter(
    lambda pairs: sum(q for q, _ in pairs) > 0 < sum(k for _, k in pairs)
)
within = st.lists(st.integers(0, 4), min_size=1, max_size=7).filter(any)


def draws(*shape: int, seed: int) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_()


def inputs(segments: Segments, *, values: int = WIDTH) -> list[Tensor]:
    queries, keys = int(segments.query_starts[-1]), int(segments.key_starts[-1])
    sizes = (queries, WIDTH), (keys, WIDTH), (keys, values)
    return [draws(count, HEADS, width, seed=i) for i, (count, width) in enumerate(sizes)]


def reference(
    q: Tensor, k: Tensor, v: Tensor, segments: Segments, *, causal: bool, scale: float
) -> Tensor:
    mask = masks.both(
        segments.mask(len(q), len(k)), masks.causal(len(q), len(k)) if causal else None
    )
    heads = (x.transpose(0, 1)[None] for x in (q, k, v))  # (1, N, T, K)
    found = attend(*heads, mask=mask, score=lambda q, k: q @ k.mT * scale)
    return found.output[0].transpose(0, 1)


def with_gradients(way: Callable[..., Tensor], parts: list[Tensor], *rest: Any, **how: Any) -> Any:
    output = way(*parts, *rest, **how)
    flow = draws(*output.shape, seed=9).detach()
    return [output, *torch.autograd.grad(output, parts, flow)]


def agree(found: list[Tensor], expected: list[Tensor]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@given(pairs=across, values=st.sampled_from([WIDTH, 5]))
def test_equals_attention_under_the_mask_with_all_gradients(
    way: str, pairs: Sizes, values: int
) -> None:
    """Stretches without keys, and without queries, among them."""
    segments = segments_of(pairs)
    parts, how = inputs(segments, values=values), {"causal": False, "scale": 0.7}
    found = with_gradients(WAYS[way], parts, segments, **how)
    agree(found, with_gradients(reference, parts, segments, **how))


@pytest.mark.parametrize("way", WAYS)
@given(lengths=within)
def test_the_future_is_hidden_within_each_stretch(way: str, lengths: list[int]) -> None:
    segments = Segments.among(starts(lengths), max(lengths))
    parts, how = inputs(segments), {"causal": True, "scale": 0.7}
    found = with_gradients(WAYS[way], parts, segments, **how)
    agree(found, with_gradients(reference, parts, segments, **how))


@pytest.mark.parametrize("way", WAYS)
def test_the_longest_may_be_given_too_long(way: str) -> None:
    """It only chooses a kernel."""
    exact, roomy = (Segments.among(starts([3, 1, 3, 3]), longest) for longest in (3, 16))
    parts = inputs(exact)
    for causal in (False, True):
        found = WAYS[way](*parts, roomy, causal=causal, scale=1.0)
        torch.testing.assert_close(found, reference(*parts, exact, causal=causal, scale=1.0))


@pytest.mark.parametrize("way", WAYS)
def test_whoever_has_no_keys_reads_zero_and_teaches_nobody(way: str) -> None:
    segments = segments_of([(2, 0), (2, 3), (1, 0)])
    parts = inputs(segments)
    output, by_query, *_ = with_gradients(WAYS[way], parts, segments, causal=False, scale=1.0)
    for blind in (slice(0, 2), slice(4, 5)):
        assert output[blind].eq(0).all()
        assert by_query[blind].eq(0).all()
    assert output[2:4].ne(0).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_no_sentence_is_changed_by_a_bit_of_another(way: str, causal: bool) -> None:
    segments = Segments.among(starts([3, 2, 4, 4]), 4)
    parts = inputs(segments)
    changed = [x.detach().clone() for x in parts]
    for x in changed:
        x[3:5] += 100  # the second sentence
    before, after = (WAYS[way](*x, segments, causal=causal, scale=1.0) for x in (parts, changed))
    assert after[:3].equal(before[:3])
    assert after[5:].equal(before[5:])
    assert not after[3:5].equal(before[3:5])


@pytest.mark.parametrize(
    ("lengths", "way"), [([2] * 8, "_by_runs"), ([1, 2, 3, 4, 5, 6], "_padded")]
)
def test_equal_neighbours_go_together_and_all_others_are_padded(
    lengths: list[int], way: str
) -> None:
    segments = Segments.among(starts(lengths), max(lengths))
    with patch.object(ragged, way, wraps=getattr(ragged, way)) as taken:
        ragged.ragged_attention(*inputs(segments), segments, causal=False, scale=1.0)
    assert taken.call_count == 1


@given(pairs=across)
def test_products_that_lie_together_give_the_same(pairs: Sizes) -> None:
    segments = segments_of(pairs)
    q, k, v = inputs(segments)
    expected = packed_attention(q, k, v, segments, causal=False, scale=0.3)
    kv = torch.stack([k, v], dim=1)
    assert fused_cross(q, kv, segments, scale=0.3).equal(expected)
    itself = Segments.among(segments.query_starts, segments.longest_query)
    qkv = torch.stack([q, 2 * q, 3 * q], dim=1)
    expected = packed_attention(q, 2 * q, 3 * q, itself, causal=True, scale=0.3)
    assert fused_self(qkv, itself, causal=True, scale=0.3).equal(expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_fused_takes_segments_for_a_mask(causal: bool, scale: float | None) -> None:
    segments = Segments.among(starts([3, 0, 5, 1]), 16)
    q, k, v = (x.transpose(0, 1)[None] for x in inputs(segments))
    mask = segments.mask(9, 9)
    packed = fused(q, k, v, mask=segments, causal=causal, scale=scale)
    plain = fused(q, k, v, mask=mask, causal=causal, scale=scale)
    torch.testing.assert_close(packed, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("lengths", [[4] * 8, [1, 2, 3, 4, 5, 6]])
def test_a_cpu_learns_in_16_bits_by_products(
    lengths: list[int], dtype: torch.dtype, causal: bool
) -> None:
    """No further from the truth than twice the formula in that precision, forth and back."""
    segments = Segments.among(starts(lengths), max(lengths))
    whole = inputs(segments)
    halves = [x.detach().to(dtype).requires_grad_() for x in whole]
    exact = [x.detach().double().requires_grad_() for x in halves]
    how: dict[str, Any] = {"causal": causal, "scale": 0.7}
    with patch.object(dense, "by_products", wraps=dense.by_products) as taken:
        found = with_gradients(ragged.ragged_attention, halves, segments, **how)
    assert taken.called
    truth = with_gradients(reference, exact, segments, **how)
    plain = with_gradients(reference, halves, segments, **how)
    for ours, right, other in zip(found, truth, plain, strict=True):
        assert ours.dtype == dtype
        assert (ours - right).norm() <= 2 * (other - right).norm() + 1e-3 * right.norm()


@pytest.mark.parametrize(
    ("dtype", "longest", "learns"),
    [(torch.float32, 4, True), (torch.bfloat16, 4, False), (torch.bfloat16, 513, True)],
)
def test_torchs_kernel_serves_where_it_is_no_slower(
    dtype: torch.dtype, longest: int, learns: bool
) -> None:
    """In 32 bits, where nothing is learnt, and where the weights would fill the memory."""
    segments = Segments.among(starts([longest] * 2), longest)
    parts = [x.detach().to(dtype).requires_grad_(learns) for x in inputs(segments)]
    with patch.object(dense, "by_products") as taken:
        ragged.ragged_attention(*parts, segments, causal=False, scale=1.0)
    assert not taken.called

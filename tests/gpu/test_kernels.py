"""Every kernel of attention, both ways, over precisions, widths and lengths: see `precision`."""

from dataclasses import replace
from functools import partial
from math import sqrt
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention import masks
from saccade.attention.attend import attend, fused_cross, fused_self
from saccade.attention.kernels.decode.few_queries import step_attention
from saccade.attention.kernels.look import dense
from saccade.attention.kernels.train.additive import (
    additive_score,
    doubled_gradient,
    doubled_score,
)
from saccade.attention.kernels.train.linear import together
from saccade.attention.kernels.train.packed import (
    packed_attention,
)
from saccade.attention.look.glance import Keep
from saccade.attention.segments import Segments
from saccade.attention.sparse import LayerMasks
from tests.attention.kernels.look.test_tiles import Case, at_places, close, in_full
from tests.attention.test_segments import segments_of
from tests.gpu.precision import DEVICE, DTYPES, HALVES, IN_PARTS, check, check_errors, draws

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_half = pytest.mark.parametrize("dtype", HALVES, ids=str)


# Attention while training.


def within(
    q: Tensor, k: Tensor, v: Tensor, segments: Segments, *, causal: bool, scale: float
) -> Tensor:
    """Attention to the own stretch alone, under a mask."""
    ahead = masks.causal(len(q), len(k), device=q.device) if causal else None
    mask = masks.both(segments.mask(len(q), len(k)), ahead)
    heads = (x.transpose(0, 1)[None] for x in (q, k, v))  # (1, N, T, K)
    read = attend(*heads, mask=mask, score=lambda q, k: q @ k.mT * scale)
    return read.output[0].transpose(0, 1)


def stretches(lengths: list[tuple[int, int]]) -> Segments:
    made = segments_of(lengths)
    return replace(
        made, query_starts=made.query_starts.to(DEVICE), key_starts=made.key_starts.to(DEVICE)
    )


ITSELF = [  # precision, width of a head, lengths, causal; from 129 on it is torch's flash kernel
    (BF16, 64, [1, 7, 13], True),
    (BF16, 48, [33, 64, 1, 60], False),
    (FP16, 96, [128, 3, 77], True),
    (BF16, 64, [129, 40, 256], True),
    (FP16, 96, [200, 1, 256], False),
    (FP32, 48, [5, 129], True),
]


@pytest.mark.parametrize(("dtype", "width", "lengths", "causal"), ITSELF, ids=str)
def test_packed_self_attention(
    dtype: torch.dtype, width: int, lengths: list[int], causal: bool
) -> None:
    segments = stretches([(length, length) for length in lengths])
    qkv = draws(sum(lengths), 3, 3, width, seed=width, dtype=dtype)
    how = {"causal": causal, "scale": width**-0.5}
    check(
        lambda qkv: fused_self(qkv, segments, **how),
        lambda qkv: within(*qkv.unbind(1), segments, **how),
        [qkv],
        rounding=IN_PARTS,
    )


ACROSS = [
    (BF16, 48, [(3, 5), (16, 9), (2, 0), (1, 1)]),
    (FP16, 64, [(7, 33), (1, 64), (20, 2)]),
    (BF16, 64, [(5, 129), (130, 7)]),
]


@pytest.mark.parametrize(("dtype", "width", "lengths"), ACROSS, ids=str)
def test_packed_cross_attention(
    dtype: torch.dtype, width: int, lengths: list[tuple[int, int]]
) -> None:
    segments, scale = stretches(lengths), width**-0.5
    queries, keys = (sum(pair[side] for pair in lengths) for side in (0, 1))
    q = draws(queries, 2, width, seed=1, dtype=dtype)
    kv = draws(keys, 2, 2, width, seed=2, dtype=dtype)
    check(
        lambda q, kv: fused_cross(q, kv, segments, scale=scale),
        lambda q, kv: within(q, *kv.unbind(1), segments, causal=False, scale=scale),
        [q, kv],
    )


def test_short_attention_in_float32() -> None:
    """Where `packed_attention` leaves it to torch."""
    from saccade.attention.kernels.train.short_sequence import short_attention

    segments, scale = stretches([(7, 33), (20, 1), (3, 0), (1, 30)]), 0.2
    parts = [draws(size, 2, 32, seed=i) for i, size in enumerate((31, 64, 64))]
    starts = segments.query_starts, segments.key_starts

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return within(q, k, v, segments, causal=False, scale=scale)

    check(lambda *x: short_attention(*x, *starts, 20, 33, False, scale), plain, parts)
    packed = partial(packed_attention, segments=segments, causal=False, scale=scale)
    check(packed, plain, parts, rounding=IN_PARTS)


@each_dtype
@pytest.mark.parametrize(
    "shape", [(1, 1, 48, 3), (2, 33, 192, 3), (16, 256, 768, 3), (5, 7, 96, 2)]
)
def test_parts_of_a_joint_product(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    from saccade.attention.kernels.train.fused_qkv import apart

    B, T, D, parts = shape
    joint = draws(B, T, parts * D, seed=D, dtype=dtype)
    biases = [draws(D, seed=i) for i in range(parts)]

    def plain(joint: Tensor, *biases: Tensor) -> list[Tensor]:
        biases = torch.cat([b - b.detach() for b in biases]).to(joint.dtype)  # is in it already
        pieces = (joint + biases).chunk(parts, dim=-1)
        return [x.unflatten(-1, (2, -1)).transpose(1, 2) for x in pieces]

    check(lambda joint, *biases: apart(joint, 2, *biases), plain, [joint, *biases])


@each_half
@pytest.mark.parametrize("sizes", [(1, 48, 96), (33, 192, 512), (256, 512, 37), (1000, 256, 1024)])
def test_linear_layers_in_mixed_precision(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    rows, width, out = sizes
    x = draws(2, rows, width, seed=rows)
    weights = [draws(out, width, seed=i) / sqrt(width) for i in (1, 2)]
    biases = [draws(out, seed=i) for i in (3, 4)]

    def ours(x: Tensor, *parts: Tensor) -> Tensor:
        layers = [SimpleNamespace(weight=w, bias=b) for w, b in zip(parts[:2], parts[2:])]
        with torch.autocast(DEVICE, dtype):
            return together(x, *layers)

    def plain(x: Tensor, *parts: Tensor) -> Tensor:
        with torch.autocast(DEVICE, dtype):
            return F.linear(x, torch.cat(parts[:2]), torch.cat(parts[2:]))

    check(ours, plain, [x, *weights, *biases])


# Additive attention.


def additive(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return (q.unsqueeze(-2) + k.unsqueeze(-3)).tanh() @ w


@each_dtype
@pytest.mark.parametrize("sizes", [(1, 1, 48), (7, 33, 96), (33, 129, 192)])
def test_additive_score(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    T, S, width = sizes
    shapes = (2, T, width), (2, S, width), (width,)
    inputs = [draws(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    check(additive_score, additive, inputs)


@pytest.mark.parametrize("sizes", [(1, 1, 48), (7, 33, 96), (33, 129, 192)])
def test_doubled_score_and_its_gradient(sizes: tuple[int, int, int]) -> None:
    T, S, width = sizes
    q, k, w = draws(2, T, width, seed=1), draws(2, S, width, seed=2), draws(width, seed=3)
    w = w / sqrt(width)
    flow = draws(2, T, S, seed=4)

    def plain(dtype: torch.dtype) -> list[Tensor]:
        parts = [x.to(dtype).requires_grad_() for x in (q, k, w)]
        e = additive(*parts)
        return [e.softmax(dim=-1), *torch.autograd.grad(e, parts, flow.to(dtype))]

    dk, dw = torch.zeros_like(k), torch.zeros_like(w)
    dq = doubled_gradient(flow, 2 * q, 2 * k, onto=(dk, dw))
    a = doubled_score(2 * q, 2 * k, 2 * w).softmax(dim=-1)
    check_errors([a, dq * w, dk * w, dw], plain(FP32), plain(torch.float64))


LOOKS = [  # precision, sentences, places, width of the score, width of a value
    (FP32, 1, 1, 48, 40),
    (FP32, 2, 129, 512, 1024),
    (BF16, 3, 33, 256, 192),
    (FP16, 4, 7, 96, 300),
]


@pytest.mark.parametrize(("dtype", "rows", "places", "hidden", "width"), LOOKS, ids=str)
def test_a_look_by_the_additive_score(
    dtype: torch.dtype, rows: int, places: int, hidden: int, width: int
) -> None:
    from saccade.attention.kernels.train.additive_step import look, look_back

    shapes = (rows, hidden), (rows, places, hidden), (rows, places, width), (hidden,)
    q, k, v, w = (draws(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes))
    w = w / sqrt(hidden)
    dc, da = draws(rows, width, seed=8, dtype=dtype), draws(rows, places, seed=9, dtype=dtype)
    hide = torch.zeros(rows, 1, places, device=DEVICE, dtype=dtype)
    hide[-1, :, places // 2 + 1 :] = -torch.inf

    def plain(dtype: torch.dtype) -> list[Tensor]:
        parts = [x.to(dtype).requires_grad_() for x in (q, k, w)]
        e = additive(parts[0][:, None], *parts[1:])  # (rows, 1, places)
        a = (e + hide.to(dtype)).softmax(dim=-1)
        c = (a @ v.to(dtype))[:, 0]
        flow = dc.to(dtype), da[:, None].to(dtype)
        return [a, c, *torch.autograd.grad((c, a), parts, flow)]

    a, c = look(2 * q, 2 * k, v, hide, 2 * w)
    dk, dw = torch.zeros_like(k), torch.zeros_like(q)
    dq = look_back(dc, da, a[:, 0], 2 * q, 2 * k, v, w, (dk, dw))
    found = [a, c, dq, dk * w, dw.sum(dim=0)]
    check_errors(found, plain(dtype), plain(torch.float64))


def test_beams_look_at_one_memory_and_bend_what_they_read() -> None:
    from saccade.attention.kernels.train.additive_step import look

    shapes = (15, 48), (3, 33, 48), (3, 33, 96), (48,), (15, 96)
    parts = [draws(*shape, seed=i, dtype=BF16) for i, shape in enumerate(shapes)]

    def plain(q: Tensor, k: Tensor, v: Tensor, w: Tensor, onto: Tensor) -> list[Tensor]:
        a = additive(q.unflatten(0, (3, 5)), k, w).softmax(dim=-1)
        return [a, ((a @ v).flatten(0, 1) + onto).tanh()]

    def ours(q: Tensor, k: Tensor, v: Tensor, w: Tensor, onto: Tensor) -> tuple[Tensor, Tensor]:
        return look(2 * q, 2 * k, v, None, 2 * w, onto)

    check(ours, plain, parts, learns=False)


# Attention while decoding.

DECODED = [  # precision, sentences, heads, width of a head, beams
    (FP32, 3, 2, 96, 5),
    (BF16, 3, 4, 64, 1),
    (BF16, 6, 3, 48, 4),
    (FP16, 64, 8, 64, 5),  # so many that programs are small
]


def heads_of(x: Tensor, sentences: int, heads: int) -> Tensor:
    """(R, D) as (B, N, k, K)."""
    return x.unflatten(0, (sentences, -1)).unflatten(-1, (heads, -1)).transpose(1, 2)


def read_back(
    qkv: Tensor, keys: Tensor, values: Tensor, writers: Tensor, steps: int, shared: int
) -> Tensor:
    """What each beam reads of the entries it wrote itself, those before, and the new one."""
    (B, N, _, K), k = keys.shape, writers.shape[1]
    q, new_k, new_v = (heads_of(x, B, N) for x in qkv.chunk(3, dim=-1))
    own = shared + torch.arange(steps, device=keys.device) * k + writers[:, :, :steps]
    before = torch.arange(shared, device=keys.device).expand(B, k, -1)
    at = torch.cat([before, own], dim=-1)[:, None, :, :, None].expand(B, N, k, -1, K)

    def past(pool: Tensor, new: Tensor) -> Tensor:
        every = pool[:, :, None].expand(-1, -1, k, -1, -1).gather(3, at)  # (B, N, k, S, K)
        return torch.cat([every, new.unsqueeze(3)], dim=3)

    read = attend(q.unsqueeze(3), past(keys, new_k), past(values, new_v)).output  # (B, N, k, 1, K)
    return read.squeeze(3).transpose(1, 2).flatten(0, 1).flatten(1)


@pytest.mark.parametrize(("dtype", "sentences", "heads", "width", "beams"), DECODED, ids=str)
def test_a_decoding_step_looks_back(
    dtype: torch.dtype, sentences: int, heads: int, width: int, beams: int
) -> None:
    from saccade.attention.kernels.decode.decode_kernel import look_back

    for steps, shared in ((0, 0), (1, 0), (7, 3), (33, 0), (40, 64)):
        pool = sentences, heads, 64 + 48 * beams, width
        keys, values = (draws(*pool, seed=i, dtype=dtype) for i in (1, 2))
        qkv = draws(sentences * beams, 3 * heads * width, seed=3, dtype=dtype)
        rng = torch.Generator().manual_seed(steps)
        writers = torch.randint(beams, (sentences, beams, 48), generator=rng).int().to(DEVICE)
        clock = torch.tensor([steps, shared], dtype=torch.int32, device=DEVICE)
        rest, own = (writers, clock), (writers.long(), steps, shared)
        check(
            lambda *x, rest=rest: look_back(*x, *rest),
            lambda *x, own=own: read_back(*x, *own),
            [qkv, keys, values],
            learns=False,
        )
        look_back(qkv, keys, values, writers, clock)
        fresh = slice(shared + steps * beams, shared + (steps + 1) * beams)
        for held, part in zip((keys, values), qkv.chunk(3, dim=-1)[1:]):
            assert held[:, :, fresh].equal(heads_of(part, sentences, heads))


@each_dtype
@pytest.mark.parametrize(("rows", "heads", "width"), [(1, 2, 48), (3, 4, 64), (300, 2, 16)])
def test_a_decoding_step_looks_back_at_some(
    rows: int, heads: int, width: int, dtype: torch.dtype
) -> None:
    from saccade.attention.kernels.decode.decode_kernel import look_back_at

    side, text, room, device = 9, 37, 128, torch.device(DEVICE)
    table = LayerMasks([lambda device: masks.image_columns(text, side, device=device)], [0])
    for steps, prompt in ((0, 0), (0, 36), (5, 36), (80, 36)):
        keys, values = (draws(rows, heads, room, width, seed=i, dtype=dtype) for i in (1, 2))
        qkv = draws(rows, 3 * heads * width, seed=3, dtype=dtype)
        clock = torch.tensor([steps, prompt], dtype=torch.int32, device=DEVICE)
        seen = table.seen_at(0, steps + prompt, device)[:-1].long()

        def plain(x: Tensor, k: Tensor, v: Tensor, seen: Tensor = seen) -> Tensor:
            q, new_k, new_v = (heads_of(part, rows, heads) for part in x.chunk(3, dim=-1))
            k, v = torch.cat([k[:, :, seen], new_k], 2), torch.cat([v[:, :, seen], new_v], 2)
            return attend(q, k, v).output.transpose(1, 2).flatten(0, 1).flatten(1)

        check(
            lambda *x, clock=clock: look_back_at(*x, *table.seen(0, device), clock),
            plain,
            [qkv, keys, values],
            learns=False,
        )


@pytest.mark.parametrize(("dtype", "sentences", "heads", "width", "beams"), DECODED, ids=str)
def test_a_decoding_step_looks_across(
    dtype: torch.dtype, sentences: int, heads: int, width: int, beams: int
) -> None:
    from saccade.attention.kernels.decode.decode_kernel import look_across

    room = 129
    some = torch.tensor([129, 1, 0, 33, 7, 64], device=DEVICE).int()
    lengths = some.repeat(sentences)[:sentences]
    seen = (torch.arange(room, device=DEVICE) < lengths[:, None])[:, None, None]

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        read = attend(heads_of(q, sentences, heads), k, v, mask=seen).output
        return read.transpose(1, 2).flatten(0, 1).flatten(1)

    shapes = (sentences * beams, heads * width), *[(sentences, heads, room, width)] * 2
    parts = [draws(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    check(lambda *x: look_across(*x, lengths), plain, parts, learns=False)


@each_dtype
@pytest.mark.parametrize(("width", "keys"), [(48, 1), (64, 33), (96, 129)])
def test_attention_of_few_queries(width: int, keys: int, dtype: torch.dtype) -> None:
    shapes = (3, 2, 5, width), *[(3, 2, keys, width)] * 2
    q, k, v = (draws(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes))
    seen = torch.arange(keys, device=DEVICE) < torch.tensor([[keys], [1], [keys]], device=DEVICE)
    seen = seen[:, None, None]
    bias = torch.zeros(seen.shape, dtype=dtype, device=DEVICE).masked_fill(~seen, -torch.inf)
    for hide, mask in ((bias, seen), (None, None)):
        check(
            lambda *x, hide=hide: step_attention(*x, hide),
            lambda *x, mask=mask: attend(*x, mask=mask).output,
            [q, k, v],
            learns=False,
            rounding=IN_PARTS,
        )


# Looking. The bounds are those of float32 whatever q and k are: see docs/looking.md.

GLANCES = {
    "bfloat16, causal": Case((1, 2, 2, 256, 256, 64), dtype=BF16, settings={"causal": True}),
    "float16, long": Case((1, 1, 1, 129, 1000, 48), Keep(top=16, dense=0), dtype=FP16),
    "float32, a mask": Case((2, 1, 1, 33, 129, 96), mask=(2, 1, 33, 129)),
}


@pytest.mark.parametrize("name", GLANCES)
def test_a_look_agrees_with_the_definitions(name: str) -> None:
    from saccade.attention.kernels.look.tiles import observe

    case, view = GLANCES[name], GLANCES[name].view()
    mask = None if view.mask is None else view.mask.to(DEVICE)
    view = replace(view, q=view.q.to(DEVICE), k=view.k.to(DEVICE), mask=mask)
    exact = in_full(view)
    weights, lse = exact.weights(), exact.normaliser(exact.scores())
    expected = dense.observe(weights, case.keep, lse=lse, causal=view.causal)
    glance = observe(view, case.keep)
    found = glance.tensors()
    assert found.keys() == expected.tensors().keys()
    for part in found.keys() - {"where", "top_places"}:
        close(found[part], expected.tensors()[part])
    close(glance.highest, at_places(weights, glance.where[..., None])[..., 0])
    close(found["top_weights"], at_places(weights, found["top_places"]))

"""Every kernel of blocks, loss and search, over precisions and widths: see `precision`."""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.blocks.dropout import kept_scale
from saccade.blocks.inference.slots import DecoderShape, Slots
from saccade.decode.beam import Beam
from saccade.decode.greedy import Greedy
from saccade.decode.sample import Sampler, uniforms
from saccade.decode.top import top
from saccade.tasks.cross_entropy import IGNORED
from tests.decode.test_captured import same_state
from tests.gpu.precision import DEVICE, DTYPES, IN_PARTS, check, check_errors, draws

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
EPSILON = 1e-5
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Sizes in turn with precisions, for every pair is a kernel to be compiled. In mixed precision
# what is added to x is a product's result, in halves.
each_residual = pytest.mark.parametrize(
    ("shape", "dtype", "change"),
    [
        ((1, 1, 48), FP32, FP32),
        ((2, 33, 192), BF16, BF16),
        ((16, 129, 512), FP32, BF16),
        ((5, 7, 1000), FP16, FP16),
    ],
    ids=str,
)
each_row = pytest.mark.parametrize(
    ("rows", "width", "dtype"), [(1, 48, FP32), (129, 512, BF16), (7, 1000, FP16)], ids=str
)


# Residual connections, norms and activations.


def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight.to(x.dtype), bias.to(x.dtype), EPSILON)


@each_residual
def test_a_sum_its_norm_and_a_deferred_bias(
    shape: tuple[int, ...], dtype: torch.dtype, change: torch.dtype
) -> None:
    from saccade.blocks.kernels import residual

    x, y = draws(*shape, seed=1, dtype=dtype), draws(*shape, seed=2, dtype=change)
    weight, bias, deferred = (draws(shape[-1], seed=i) for i in (3, 4, 5))

    def plain(x: Tensor, y: Tensor, deferred: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
        s = x + (y + (deferred - deferred.detach()).to(y.dtype))  # it is in y already
        return [norm(s, w, b), s]

    check(
        lambda *parts: residual.add_norm_beside(*parts, EPSILON, rate=0.0),
        plain,
        [x, y, deferred, weight, bias],
    )
    check(
        lambda *parts: residual.add_norm(*parts, EPSILON, rate=0.0),
        lambda x, y, w, b: norm(x + y, w, b),
        [x, y, weight, bias],
    )
    check(
        lambda x, w, b: residual.norm_beside(x, w, b, EPSILON),
        lambda x, w, b: [norm(x, w, b), x.clone()],
        [x, weight, bias],
    )
    check(lambda x, y: residual.add_dropped(x, y, rate=0.0), lambda x, y: x + y, [x, y])


@each_dtype
@pytest.mark.parametrize("shape", [(1, 1, 48), (3, 7, 96), (5, 129, 1024)], ids=str)
def test_activations(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    from saccade.blocks.kernels.activation import relu_dropped
    from saccade.blocks.kernels.gelu import gelu_, gelu_dropped

    x, bias = draws(*shape, seed=1, dtype=dtype), draws(shape[-1], seed=2)
    check(lambda x: relu_dropped(x, rate=0.0), torch.relu, [x])
    for tanh, form in ((False, "none"), (True, "tanh")):

        def plain(x: Tensor, bias: Tensor, form: str = form) -> Tensor:
            x = x + (bias - bias.detach()).to(x.dtype)  # it is in x already
            return F.gelu(x, approximate=form)

        def ours(x: Tensor, bias: Tensor, tanh: bool = tanh) -> Tensor:
            return gelu_dropped(x, bias, rate=0.0, tanh=tanh)

        check(ours, plain, [x, bias])
        check(
            lambda x, tanh=tanh: gelu_(x, tanh=tanh),
            lambda x, form=form: F.gelu(x, approximate=form),
            [x],
            learns=False,
        )


class Dropping(NamedTuple):
    """What a block makes of x and of ones, of which it drops a share: above 0 where kept."""

    output: Tensor
    by_x: Tensor | None
    by_change: Tensor


def dropping(block: str, x: Tensor, change: Tensor, rate: float) -> Dropping:
    from saccade.blocks.kernels import activation, gelu, residual

    x, change = x.requires_grad_(), change.requires_grad_()
    one, none = torch.ones(x.shape[-1:], device=DEVICE), torch.zeros(x.shape[-1:], device=DEVICE)
    calls: dict[str, Callable[[], Tensor]] = {
        "relu": lambda: activation.relu_dropped(change, rate=rate),
        "gelu": lambda: gelu.gelu_dropped(change, none, rate=rate, tanh=False),
        "add": lambda: residual.add_dropped(x, change, rate=rate),
        "add_norm": lambda: residual.add_norm(x, change, one, none, EPSILON, rate=rate),
        "add_norm_beside": lambda: residual.add_norm_beside(
            x, change, None, one, none, EPSILON, rate=rate
        )[0],
    }
    output = calls[block]()
    flow = draws(*output.shape, seed=5, dtype=output.dtype)
    by_x, by_change = torch.autograd.grad(output, (x, change), flow, allow_unused=True)
    return Dropping(output.detach(), by_x, by_change)


@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.parametrize("block", ["relu", "gelu", "add", "add_norm", "add_norm_beside"])
def test_both_ways_drop_the_same_and_as_many_as_they_should(block: str, rate: float) -> None:
    torch.manual_seed(3)
    shape = 300, 192
    x = torch.zeros(shape, device=DEVICE)
    one, two = (
        dropping(block, x.clone(), torch.ones(shape, dtype=BF16, device=DEVICE), rate)
        for _ in range(2)
    )
    kept = one.output > 0
    assert kept.equal(one.by_change != 0)
    sigma = sqrt(rate * (1 - rate) / kept.numel())
    assert abs(1 - kept.double().mean().item() - rate) < 4.5 * sigma
    assert not kept.equal(two.output > 0)  # every draw is its own
    if one.by_x is not None:
        expected = one.by_x.double() * kept * kept_scale(rate)
        near = torch.finfo(BF16).eps
        torch.testing.assert_close(one.by_change.double(), expected, rtol=near, atol=1e-6)


# Decoding steps: forward only.


@each_row
def test_residual_and_embedding_of_a_decoding_step(
    rows: int, width: int, dtype: torch.dtype
) -> None:
    from saccade.blocks.inference.kernels import add_norm, embed

    x, y = (draws(rows, width, seed=i, dtype=dtype) for i in (1, 2))
    weight, bias = (draws(width, seed=i, dtype=dtype) for i in (3, 4))
    check(
        lambda *parts: add_norm(*parts, EPSILON),
        lambda x, y, w, b: [x + y, norm(x + y, w, b)],
        [x, y, weight, bias],
        learns=False,
    )
    table, positions = (draws(50, width, seed=i, dtype=dtype) for i in (5, 6))
    tokens = torch.arange(rows, device=DEVICE) * 7 % 50
    clock = torch.tensor([12, 5], dtype=torch.int32, device=DEVICE)
    check(
        lambda table, positions: embed(tokens, table, 3.0, positions, clock, dtype),
        lambda table, positions: 3.0 * table[tokens] + positions[17],
        [table, positions],
        learns=False,
    )


def vanilla(x: Tensor, u: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
    return [(x + u).tanh()]


def gru(x: Tensor, u: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
    (x_r, x_z, x_n), (u_r, u_z, u_n) = x.chunk(3, dim=-1), u.chunk(3, dim=-1)
    n = (x_n + (x_r + u_r).sigmoid() * u_n).tanh()
    return [n + (x_z + u_z).sigmoid() * (h - n)]


def lstm(x: Tensor, u: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
    i, f, g, o = (x + u).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return [o.sigmoid() * c.tanh(), c]


CELLS = {"vanilla": (vanilla, 1), "gru": (gru, 3), "lstm": (lstm, 4)}


@each_row
@pytest.mark.parametrize("kind", CELLS)
def test_a_recurrent_cell(kind: str, rows: int, width: int, dtype: torch.dtype) -> None:
    from saccade.blocks.kernels.cell import cell

    formula, gates = CELLS[kind]
    wide = gates * width
    x, u = draws(rows, wide + 3, seed=1, dtype=dtype), draws(rows, wide + 5, seed=2, dtype=dtype)
    h, c = (draws(rows, width, seed=i, dtype=dtype) for i in (3, 4))

    def ours(x: Tensor, u: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        state = h, c if kind == "lstm" else None
        after = cell(kind, x[:, :wide], u[:, :wide], state, None)  # beside something else
        cell(kind, x[:, :wide], u[:, :wide], state, state)  # in the old one's place
        found = [part for part in after if part is not None]
        assert all(a.equal(b) for a, b in zip(found, (h, c)))
        return found

    check(ours, lambda x, u, h, c: formula(x[:, :wide], u[:, :wide], h, c), [x, u, h, c],
          learns=False)  # fmt: skip


# The loss.


@each_dtype
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("rows", "words", "room"), [(1, 7, 64), (33, 1000, 1024), (64, 10001, 10048)]
)
def test_loss_and_gradient_of_scores(
    rows: int, words: int, room: int, smoothing: float, dtype: torch.dtype
) -> None:
    from saccade.tasks.cross_entropy_kernel import score_loss_by_kernel

    scores = (3 * draws(rows, room, seed=words)).to(dtype)
    labels = torch.arange(rows, device=DEVICE) * 17 % words
    labels[1::5] = IGNORED

    def plain(dtype: torch.dtype) -> list[Tensor]:
        z = scores[:, :words].to(dtype).requires_grad_()
        chosen = z.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        loss = z.logsumexp(dim=1) - (1 - smoothing) * chosen - smoothing * z.mean(dim=1)
        loss = (loss * (labels != IGNORED)).sum()
        return [loss.detach(), *torch.autograd.grad(loss, z)]

    exact, usual = plain(torch.float64), plain(dtype)
    gradient = scores.clone()
    loss = score_loss_by_kernel(gradient, labels, words=words, smoothing=smoothing)
    assert loss.dtype == FP32
    check_errors([loss, gradient[:, :words]], usual, exact)
    assert gradient[:, words:].eq(0).all()
    assert gradient[labels == IGNORED].eq(0).all()


# Searching.


@pytest.mark.parametrize(("words", "dtype"), [(301, FP32), (10001, BF16), (50257, FP16)], ids=str)
def test_one_reading_finds_the_best_words(words: int, dtype: torch.dtype) -> None:
    from saccade.decode.kernels.top import take_top

    for rows, ties in ((1, False), (33, True)):
        x = (3 * draws(rows, words, seed=rows)).to(dtype)
        x = x.round() if ties else x  # many equal scores: the smaller number comes first
        expected = x.sort(dim=-1, descending=True, stable=True)
        for count in (1, 10):
            scores, found, total = take_top(x, count)
            assert found.equal(expected.indices[:, :count])
            assert scores.equal(expected.values[:, :count].float())
            sums = [x.to(kind).logsumexp(dim=-1) for kind in (FP32, torch.float64)]
            check_errors([total], sums[:1], sums[1:])


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize(("words", "dtype"), [(7, FP32), (8192, FP32), (50257, BF16)], ids=str)
def test_one_kernel_draws_as_many_operations_do(rows: int, words: int, dtype: torch.dtype) -> None:
    from saccade.decode.kernels.draw import draw_rows

    table = uniforms(words, range(rows), 3).to(DEVICE)
    table[0, 0], table[-1, 2] = 0.0, 1 - 2**-53
    for step, temperature in enumerate((1.0, 0.6, 1e-40)):
        time = torch.tensor([step], device=DEVICE)
        logits = (3 * draws(rows, words + 3, seed=step)).to(dtype)[:, :words]
        logits[:, 1] = -torch.inf
        sampler = Sampler(temperature=temperature)
        found, log_p = draw_rows(logits, table, time, sampler.divisor)
        assert found.equal(sampler(logits, table[:, step]))
        exact = [logits.to(kind).log_softmax(dim=-1) for kind in (FP32, torch.float64)]
        of_found = [x.gather(1, found[:, None])[:, 0] for x in exact]
        check_errors([log_p], of_found[:1], of_found[1:])


def places_for(sentences: int, beams: int) -> Slots:
    shape = DecoderShape(sentences=sentences, beams=beams, steps=16)
    return Slots(shape, depth=1, heads=1, width=16, like=torch.empty(0, device=DEVICE))


@pytest.mark.parametrize(("beams", "words", "end"), [(2, 4, 0), (3, 9, 1), (5, 40, 2), (8, 20, 16)])
def test_one_kernel_expands_as_many_operations_do(beams: int, words: int, end: int) -> None:
    from saccade.decode.kernels.advance import advance_beams

    method = Beam(size=beams, length_penalty=0.8)
    states = [method.state(5, 16, end, torch.device(DEVICE)) for _ in range(2)]
    places = [places_for(5, beams) for _ in range(2)]
    for state in states:
        state.begin(torch.tensor([12, 1, 6, 9, 0], device=DEVICE))
    for step in range(12):
        logits = 2 * draws(5 * beams, words, seed=100 * beams + step)
        logits[:, end] += 1.0
        going = ~states[1].over
        advance_beams(states[0], places[0], top(logits, 2 * beams))
        places[1].go_on(*states[1].advance(logits))
        same_state(*states, *places, going)


@pytest.mark.parametrize("rows", [1, 5, 129])
def test_one_kernel_appends_as_many_operations_do(rows: int) -> None:
    from saccade.decode.kernels.advance import advance_rows

    one, other = (Greedy().state(rows, 16, 3, torch.device(DEVICE)) for _ in range(2))
    for state in (one, other):
        state.begin(torch.arange(rows, device=DEVICE) * 7 % 10)
    places = places_for(rows, 1)
    for step in range(9):
        log_p = -draws(rows, seed=step).abs()
        words = (10 * draws(rows, seed=50 + step).abs()).long() % 5
        advance_rows(one, places, words, log_p)
        other.append(words, log_p)
        for name in ("time", "over", "ended", "sizes", "log_p", "words"):
            assert getattr(one, name).equal(getattr(other, name)), name
        assert places.tokens.equal(words)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("out", "width"), [(1, 3), (77, 130), (2048, 2048), (512, 8192)])
def test_the_product_of_a_single_row(out: int, width: int, dtype: torch.dtype) -> None:
    from saccade.blocks.inference.one_row import one_row

    x, weight, bias = (
        draws(*shape, seed=i, dtype=dtype)
        for i, shape in enumerate(((1, width), (out, width), (out,)))
    )
    check(
        lambda *given: one_row(*given, relu=True),
        lambda *given: F.linear(*given).relu(),
        [x, weight, bias],
        learns=False,
        rounding=IN_PARTS,
    )

"""Blocks in Triton's interpreter: against torch in double precision, and what chance does."""

import sys
from dataclasses import dataclass
from math import sqrt
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.blocks.dropout import dropped_chances, kept_scale
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

EPSILON = 1e-5
MANY = 1 << 16
RATES = (0.1, 0.5, 0.9)
Found = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A block's name, its sizes, and the share of its elements that is dropped."""

    block: str  # norm_beside, add_norm, add_norm_beside, add_dropped, relu_dropped or a gelu
    shape: tuple[int, ...] = (3, 5, 16)
    rate: float = 0.0
    x: torch.dtype = torch.float32
    change: torch.dtype = torch.float32
    programs: int = 528
    strided: bool = False

    def inputs(self) -> list[Tensor]:
        """x, and what else the block takes: change, weight, bias."""
        rng = torch.Generator().manual_seed(sum(self.shape))
        width = self.shape[-1]

        def draws(*shape: int) -> Tensor:
            return torch.randn(shape, generator=rng)

        x, change = draws(*self.shape).to(self.x), draws(*self.shape).to(self.change)
        if self.strided:
            x, change = (y.transpose(0, 1).contiguous().transpose(0, 1) for y in (x, change))
        if self.block == "relu_dropped":
            return [x]
        if self.block in GELUS:
            return [x, draws(width)]  # the second is a bias that is in x already
        if self.block == "add_dropped":
            return [x, change]
        if self.block == "add_norm_beside":
            return [x, change, draws(width), draws(width), draws(width)]
        return [x, *([change] if self.block == "add_norm" else []), draws(width), draws(width)]

    def flow(self) -> Tensor:
        rng = torch.Generator().manual_seed(7)
        return torch.randn(self.shape, generator=rng).to(self.x)

    @property
    def near(self) -> float:
        return 3e-2 if torch.bfloat16 in (self.x, self.change) else 5e-6


GELUS = {"gelu": "none", "gelu_tanh": "tanh"}
HALF = torch.bfloat16
CASES = {
    "norm": Case("norm_beside"),
    "norm of an odd width": Case("norm_beside", (3, 33)),
    "norm, strided": Case("norm_beside", strided=True),
    "norm of halves": Case("norm_beside", x=HALF),
    "norm, rows for few programs": Case("norm_beside", (35, 8), programs=2),
    "add and norm": Case("add_norm"),
    "add and norm, odd": Case("add_norm", (7, 5)),
    "add and norm, one row": Case("add_norm", (1, 24)),
    "add and norm, strided": Case("add_norm", strided=True),
    "add and norm, rows for few programs": Case("add_norm", (35, 8), programs=2),
    "add and norm of halves": Case("add_norm", x=HALF, change=HALF),
    "add halves and norm": Case("add_norm", change=HALF),
    "drop, add and norm": Case("add_norm", rate=0.3),
    "drop, add and norm, odd": Case("add_norm", (9, 21), rate=0.6),
    "drop halves, add and norm": Case("add_norm", change=HALF, rate=0.3),
    "drop, add and norm, few programs": Case("add_norm", (35, 8), rate=0.3, programs=3),
    "add": Case("add_dropped"),
    "add halves": Case("add_dropped", change=HALF),
    "drop and add": Case("add_dropped", (5, 700), rate=0.3),
    "drop halves and add": Case("add_dropped", (5, 700), rate=0.6, change=HALF),
    "drop and add, strided": Case("add_dropped", rate=0.3, strided=True),
    "bend": Case("relu_dropped"),
    "bend halves": Case("relu_dropped", x=HALF),
    "bend and drop": Case("relu_dropped", (3, 3000), rate=0.4),
    "bend and drop, strided": Case("relu_dropped", rate=0.4, strided=True),
    "carry": Case("add_norm_beside"),
    "carry, odd": Case("add_norm_beside", (9, 21)),
    "carry, strided": Case("add_norm_beside", strided=True),
    "carry, rows for few programs": Case("add_norm_beside", (35, 8), programs=2),
    "carry halves": Case("add_norm_beside", change=HALF),
    "carry halves in halves": Case("add_norm_beside", x=HALF, change=HALF),
    "drop and carry": Case("add_norm_beside", (9, 21), rate=0.6, programs=2),
    "drop halves and carry": Case("add_norm_beside", change=HALF, rate=0.3),
    "gelu": Case("gelu"),
    "gelu, wide": Case("gelu", (40, 300), programs=3),
    "gelu of halves": Case("gelu", (40, 33), x=HALF),
    "gelu and drop, strided": Case("gelu", rate=0.4, strided=True),
    "gelu by tanh": Case("gelu_tanh", (40, 300), programs=3),
    "gelu by tanh of halves": Case("gelu_tanh", x=HALF),
    "gelu by tanh and drop": Case("gelu_tanh", (7, 700), rate=0.3, programs=2),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return interpreted(__file__, tmp_path_factory.mktemp("blocks"))


def reference(case: Case, kept: Tensor, parts: list[Tensor]) -> Tensor:
    """By torch, the elements that chance keeps given."""
    x, *rest = parts
    if case.block == "norm_beside":
        return F.layer_norm(x, x.shape[-1:], *rest, EPSILON) + 2 * x
    if case.block == "relu_dropped":
        return kept * x.relu()
    if case.block in GELUS:
        x = x + rest[0] - rest[0].detach()  # its value is in x already
        return kept * F.gelu(x, approximate=GELUS[case.block])
    if case.block == "add_norm_beside":
        total = x + kept * (rest[0] + rest[1] - rest[1].detach())
        return F.layer_norm(total, x.shape[-1:], *rest[2:], EPSILON) + 2 * total
    total = x + kept * rest[0]
    if case.block == "add_dropped":
        return total
    return F.layer_norm(total, x.shape[-1:], *rest[1:], EPSILON)


def kept_backward(case: Case, gradients: list[Tensor]) -> Tensor:
    """Which elements the way back keeps, and what it multiplies these by."""
    if not case.rate:
        return torch.ones(case.shape, dtype=torch.float64)
    alone = case.block == "relu_dropped" or case.block in GELUS
    through = gradients[0] if alone else gradients[1]
    return (through != 0).double() * kept_scale(case.rate)


@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients_are_torchs_and_both_ways_drop_the_same(
    name: str, found: Found
) -> None:
    """What the gradient leaves out decides the reference, so the output must leave it out too."""
    case, (output, *gradients) = CASES[name], found[name]
    parts = [x.double().requires_grad_() for x in case.inputs()]
    expected = reference(case, kept_backward(case, gradients), parts)
    slopes = torch.autograd.grad(expected, parts, case.flow().double())
    torch.testing.assert_close(output.double(), expected, rtol=case.near, atol=case.near)
    for ours, theirs, given in zip(gradients, slopes, case.inputs(), strict=True):
        assert ours.dtype == given.dtype
        torch.testing.assert_close(ours.double(), theirs, rtol=case.near, atol=4 * case.near)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rate])
def test_some_are_dropped_and_some_are_kept(name: str, found: Found) -> None:
    case, (_, *gradients) = CASES[name], found[name]
    share = kept_backward(case, gradients).eq(0).double().mean().item()
    if case.block == "relu_dropped":
        share = 2 * share - 1  # half are not positive
    assert abs(share - case.rate) < 0.15


def kept(found: Found, rate: float, draw: int) -> Tensor:
    return found[f"chance {rate} {draw}"].ne(0).double()


@pytest.mark.parametrize("rate", RATES)
def test_as_many_are_dropped_as_the_rate_says_and_the_mean_stays(rate: float, found: Found) -> None:
    for draw in (0, 1):
        drawn = found[f"chance {rate} {draw}"]
        assert set(drawn.unique().tolist()) == {0.0, torch.tensor(kept_scale(rate)).item()}
        sigma = sqrt(rate * (1 - rate) / MANY)
        assert abs(1 - kept(found, rate, draw).mean().item() - rate) < 4 * sigma
        assert abs(drawn.mean().item() - 1) < 4 * sigma / (1 - rate)
    assert abs(dropped_chances(rate) / (1 << 16) - rate) <= 2**-17


def correlation(one: Tensor, other: Tensor) -> float:
    a, b = one - one.mean(), other - other.mean()
    return ((a * b).mean() / (a.square().mean() * b.square().mean()).sqrt()).item()


@pytest.mark.parametrize("rate", RATES)
def test_no_element_tells_of_another_nor_a_draw_of_the_next(rate: float, found: Found) -> None:
    one, other = (kept(found, rate, draw) for draw in (0, 1))
    chance = 4.5 / sqrt(MANY)
    assert abs(correlation(one, other)) < chance
    for apart in (1, 2, 3, 16, 64, 512, 4096):
        assert abs(correlation(one[apart:], one[:-apart])) < chance
        assert abs(correlation(one[apart:], other[:-apart])) < chance


def test_the_seed_decides_what_is_dropped(found: Found) -> None:
    assert found["chance 0.5 0"].equal(found["chance 0.5 0 again"])
    assert not found["chance 0.5 0"].equal(found["chance 0.5 1"])


def test_a_rate_of_one_drops_all(found: Found) -> None:
    assert found["chance 1.0 0"].eq(0).all()


def computed(case: Case) -> list[Tensor]:
    from saccade.blocks.kernels import activation, gelu, residual

    residual.PROGRAMS = gelu.PROGRAMS = case.programs
    parts = [x.requires_grad_() for x in case.inputs()]
    torch.manual_seed(3)
    if case.block == "relu_dropped":
        output = activation.relu_dropped(*parts, rate=case.rate)
    elif case.block in GELUS:
        tanh = case.block == "gelu_tanh"
        output = gelu.gelu_dropped(*parts, rate=case.rate, tanh=tanh)
    elif case.block == "add_norm_beside":
        normed, beside = residual.add_norm_beside(*parts, EPSILON, rate=case.rate)
        output = normed + 2 * beside
    elif case.block == "add_dropped":
        output = residual.add_dropped(*parts, rate=case.rate)
    elif case.block == "add_norm":
        output = residual.add_norm(*parts, EPSILON, rate=case.rate)
    else:
        normed, beside = residual.norm_beside(*parts, EPSILON)
        output = normed + 2 * beside
    return [output.detach(), *torch.autograd.grad(output, parts, case.flow().to(output.dtype))]


def main(path: str) -> None:
    mend_interpreter()
    from saccade.blocks.kernels import activation

    def drawn(rate: float, seed: int) -> Tensor:
        torch.manual_seed(seed)
        return activation.relu_dropped(torch.ones(MANY), rate=rate)

    found = {name: computed(case) for name, case in CASES.items()}
    draws = {f"chance {rate} {s}": drawn(rate, s) for rate in (*RATES, 1.0) for s in (0, 1)}
    torch.save({**found, **draws, "chance 0.5 0 again": drawn(0.5, 0)}, path)


if __name__ == "__main__":
    main(sys.argv[1])

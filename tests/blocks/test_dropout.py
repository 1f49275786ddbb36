"""Dropout by its laws: its rate, its expectation, its independence, and what decides it."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.blocks.dropout import Dropout
from saccade.errors import ConfigError

RATES = [0.1, 0.3, 0.5, 1 / 3, 0.9]
MANY = 1 << 20


def dropped(rate: float, *shape: int, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(torch.ones(shape)) == 0


def kinds(layer: Dropout) -> dict[str, Callable[[Tensor], Tensor]]:
    return {"alone": layer, "after relu": layer.after_relu}


@pytest.mark.parametrize("rate", RATES)
def test_as_many_elements_fall_as_the_rate_says(rate: float) -> None:
    standard_error = (rate * (1 - rate) / MANY) ** 0.5
    assert abs(dropped(rate, MANY).double().mean() - rate) < 4 * standard_error


@pytest.mark.parametrize("rate", RATES)
def test_what_stays_makes_up_for_what_falls(rate: float) -> None:
    torch.manual_seed(0)
    y = Dropout(rate)(torch.ones(MANY, dtype=torch.float64))
    scale = float(y.max())
    assert set(y.unique().tolist()) == {0.0, scale}
    assert abs(1 - 1 / scale - rate) < 2**-17  # the rate that the scale stands for


@pytest.mark.parametrize("rate", [*RATES, 1e-4])
def test_over_all_that_can_be_drawn_the_mean_is_kept_exactly(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(torch.int64)
    monkeypatch.setattr(Tensor, "random_", lambda draws, *_: draws.copy_(everything))
    y = Dropout(rate)(torch.ones(1 << 16, dtype=torch.float64))
    torch.testing.assert_close(y.mean(), torch.tensor(1.0, dtype=torch.float64))
    assert abs(float((y == 0).double().mean()) - rate) <= 2**-17


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5, 8, 16, 624, 1024])
def test_an_element_tells_nothing_of_one_so_far_away(apart: int) -> None:
    fell = dropped(0.3, MANY + apart)
    pairs = 2 * fell[:MANY].long() + fell[apart:].long()
    chances = torch.tensor([0.49, 0.21, 0.21, 0.09], dtype=torch.float64)
    chi_square = ((pairs.bincount(minlength=4) - MANY * chances) ** 2 / (MANY * chances)).sum()
    assert chi_square < 16.3  # one in a thousand, 3 degrees of freedom


def test_runs_of_eight_elements_are_as_frequent_as_chance_makes_them() -> None:
    runs = dropped(0.5, MANY, 8).long() @ (1 << torch.arange(8))
    counts = runs.bincount(minlength=256).double()
    chi_square = ((counts - MANY / 256) ** 2 / (MANY / 256)).sum()
    assert 160 < chi_square < 350  # 255 degrees of freedom: beyond four standard deviations


def test_one_call_tells_nothing_of_the_next() -> None:
    torch.manual_seed(0)
    layer, x = Dropout(0.5), torch.ones(MANY)
    agree = (layer(x) == layer(x)).double().mean()
    assert abs(agree - 0.5) < 4 * 0.5 / MANY**0.5


def test_the_global_seed_decides_and_the_layout_in_memory_does_not() -> None:
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    turned = x.T.contiguous().T
    assert not turned.is_contiguous()
    layer, same = Dropout(0.5), []
    for y in (x, x, turned):
        torch.manual_seed(3)
        same.append(layer(y))
    assert torch.equal(same[0], same[1])
    assert torch.equal(same[0], same[2])
    assert not torch.equal(layer(x), same[0])


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5])
def test_any_number_of_elements_will_do(size: int) -> None:
    assert Dropout(0.5)(torch.ones(size)).shape == (size,)
    assert Dropout(0.5)(torch.tensor(1.0)).shape == ()


@pytest.mark.parametrize("name", ["alone", "after relu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_agrees_with_the_formula_and_keeps_the_precision(dtype: torch.dtype, name: str) -> None:
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(0)).to(dtype)
    call = kinds(Dropout(0.5))[name]
    torch.manual_seed(1)
    fell = Dropout(0.5)(torch.ones_like(x)) == 0
    torch.manual_seed(1)
    y = call(x)
    bent = x if name == "alone" else F.relu(x)
    assert y.dtype == dtype
    assert torch.equal(y, torch.where(fell, 0, 2 * bent))


@pytest.mark.parametrize("name", ["alone", "after relu"])
def test_has_the_gradient_of_its_own_mask(name: str) -> None:
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    call = kinds(Dropout(0.3))[name]

    def same_each_time(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return call(x)

    x.requires_grad_()
    assert torch.autograd.gradcheck(same_each_time, x)
    assert torch.autograd.gradgradcheck(same_each_time, x)


@pytest.mark.parametrize("name", ["alone", "after relu"])
def test_used_twice_each_use_has_its_own_mask_and_gradient(name: str) -> None:
    x = torch.ones(400, requires_grad=True)
    call = kinds(Dropout(0.5))[name]
    once, twice = call(x), call(x)
    (once + twice).sum().backward()
    assert not torch.equal(once, twice)
    assert x.grad is not None
    assert torch.equal(x.grad, (once + twice).detach())


@pytest.mark.parametrize("name", ["alone", "after relu"])
def test_not_training_or_at_rate_zero_nothing_is_done_nor_drawn(name: str) -> None:
    x = torch.rand(5, 7)
    state = torch.get_rng_state()
    for layer in (Dropout(0.5).eval(), Dropout(0.0)):
        y = kinds(layer)[name](x)
        assert torch.equal(y, x)
    assert Dropout(0.0)(x) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_at_rate_one_nothing_is_left() -> None:
    assert Dropout(1.0)(torch.ones(999)).eq(0).all()


def test_stays_in_the_precision_of_autocast() -> None:
    linear, layer = torch.nn.Linear(8, 8), Dropout(0.5)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer.after_relu(layer(linear(torch.ones(3, 8))))
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert linear.weight.grad is not None
    assert linear.weight.grad.dtype == torch.float32


TRACED = """
import torch
from saccade.blocks.dropout import Dropout

torch.manual_seed(0)
layer = Dropout(0.5)
both = torch.compile(lambda x: layer.after_relu(layer(x)), backend="eager", fullgraph=True)
y = both(torch.ones(1 << 16))
assert set(y.unique().tolist()) == {0.0, 4.0}
assert abs(y.mean() - 1) < 0.05
"""


@pytest.mark.slow
def test_is_traced_without_a_break() -> None:
    # In a process of its own: here, signatures are checked, which cannot be traced.
    subprocess.run([sys.executable, "-c", TRACED], check=True)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match=rf"^dropout={rate} must be from 0 to 1$"):
        Dropout(rate)

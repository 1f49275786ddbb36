"""LAMB: against the formula, tensor by tensor, and what it must leave alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from saccade.models.vision.vit import VitConfig
from saccade.train.optimizers.lamb import Lamb
from saccade.train.optimizers.optimizer import make_optimizer, set_rate, step_unless
from saccade.train.settings import TrainSettings

SHAPES = [(6, 9), (5,), (4, 2, 3, 3), ()]
RATE, DECAY, BETAS = 0.01, 0.1, (0.9, 0.98)


def rand(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def start() -> list[nn.Parameter]:
    return [nn.Parameter(rand(*shape, seed=n)) for n, shape in enumerate(SHAPES)]


def with_lamb(parameters: list[nn.Parameter], *, scaled: bool, decay: float = DECAY) -> Lamb:
    group = {"params": parameters, "weight_decay": decay, "scaled": scaled}
    return Lamb([group], lr=RATE, betas=BETAS)


def moved(parameters: list[nn.Parameter], optimizer: Lamb, steps: range) -> None:
    for step in steps:
        for number, parameter in enumerate(parameters):
            parameter.grad = rand(*parameter.shape, seed=100 * (step + 1) + number)
        optimizer.step()


def by_the_formula(weight: Tensor, number: int, steps: int, scaled: bool, decay: float) -> Tensor:
    """Written from the paper, for one tensor at a time."""
    m, v = torch.zeros_like(weight), torch.zeros_like(weight)
    for step in range(1, steps + 1):
        gradient = rand(*weight.shape, seed=100 * step + number)
        m = BETAS[0] * m + (1 - BETAS[0]) * gradient
        v = BETAS[1] * v + (1 - BETAS[1]) * gradient**2
        ratio = (m / (1 - BETAS[0] ** step)) / ((v / (1 - BETAS[1] ** step)).sqrt() + 1e-6)
        update = ratio + decay * weight
        length = weight.norm() / update.norm() if scaled and weight.norm() > 0 else 1.0
        weight = weight - RATE * length * update
    return weight


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("decay", [DECAY, 0.0])
def test_moves_as_the_formula_says(scaled: bool, decay: float) -> None:
    parameters = start()
    moved(parameters, with_lamb(parameters, scaled=scaled, decay=decay), range(4))
    for number, (first, last) in enumerate(zip(start(), parameters)):
        expected = by_the_formula(first.detach(), number, 4, scaled, decay)
        torch.testing.assert_close(last.detach(), expected, atol=1e-12, rtol=1e-9)


def test_the_step_is_a_share_of_the_weights_whatever_the_gradient() -> None:
    for size in (1e-4, 1.0, 1e4):
        weight = nn.Parameter(rand(7, 5, seed=1))
        before = weight.detach().clone()
        weight.grad = size * rand(7, 5, seed=2)
        with_lamb([weight], scaled=True, decay=0.0).step()
        torch.testing.assert_close((weight - before).norm(), RATE * before.norm())


def test_weights_of_zero_begin_to_move() -> None:
    weight = nn.Parameter(torch.zeros(3, 3))
    weight.grad = torch.ones(3, 3)
    with_lamb([weight], scaled=True).step()
    assert weight.isfinite().all()
    assert weight.abs().gt(0).all()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
@pytest.mark.parametrize("before", [0, 2])
def test_what_is_not_finite_changes_nothing(wrong: float, before: int) -> None:
    parameters, twins = start(), start()
    optimizer, other = with_lamb(parameters, scaled=True), with_lamb(twins, scaled=True)
    moved(parameters, optimizer, range(before))
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, wrong)
    step_unless(optimizer, torch.tensor(True))
    optimizer.found_inf = torch.tensor(0.0)
    moved(parameters, optimizer, range(before, before + 2))
    moved(twins, other, range(before + 2))
    for one, twin in zip(parameters, twins):
        assert one.equal(twin)
        state, expected = optimizer.state[one], other.state[twin]
        assert all(state[name].equal(expected[name]) for name in expected)


def test_biases_norms_and_positions_neither_decay_nor_are_scaled() -> None:
    config = VitConfig(image=16, patch=8, width=12, depth=2, heads=2, classes=3)
    model = config.build()
    settings = TrainSettings(optimizer="lamb", weight_decay=0.25)
    optimizer = make_optimizer(model, settings, torch.device("cpu"))
    assert isinstance(optimizer, Lamb)
    names = {parameter: name for name, parameter in model.named_parameters()}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            weighs = parameter.dim() > 1 and names[parameter] != "positions"
            assert (group["scaled"], group["weight_decay"]) == (weighs, 0.25 * weighs)
    unpulled = make_optimizer(model, replace(settings, weight_decay=0.0), torch.device("cpu"))
    assert [group["scaled"] for group in unpulled.param_groups] == [True, False]


def test_nothing_waits_for_a_number_and_the_rate_may_be_a_tensor() -> None:
    """On the meta device there are no numbers: whoever asks for one fails, as in a capture."""
    weight = nn.Parameter(torch.zeros(3, 4, device="meta"))
    group = {"params": [weight], "scaled": True, "weight_decay": 0.1}
    optimizer = Lamb([group], lr=torch.tensor(0.1, device="meta"))
    weight.grad = torch.zeros(3, 4, device="meta")
    set_rate(optimizer, 0.2)
    step_unless(optimizer, torch.zeros((), dtype=torch.bool, device="meta"))
    assert all(x.device.type == "meta" for x in optimizer.state[weight].values())

"""Muon: against torch's own, and what it must leave alone."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.models.vision.vit import VitConfig
from saccade.train.optimizers.muon import STRIDE, Muon, orthogonal
from saccade.train.optimizers.optimizer import make_optimizer, step_unless
from saccade.train.recipes import RECIPES
from saccade.train.settings import TrainSettings
from tests.launches import launches

CPU = torch.device("cpu")
SHAPES = [(6, 9), (9, 6), (6, 9), (5, 5), (4, 2, 3, 3)]


def rand(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_muon(parameters: list[nn.Parameter], *, decay: float = 0.0) -> Muon:
    return Muon([{"params": parameters, "matrices": 1, "weight_decay": decay}], lr=0.01)


def moved(parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer, steps: int) -> None:
    for step in range(steps):
        for number, parameter in enumerate(parameters):
            parameter.grad = rand(*parameter.shape, seed=100 * step + number)
        optimizer.step()


@given(short=st.integers(1, 12), more=st.integers(0, 20), seed=st.integers(0, 999))
def test_all_directions_of_a_gradient_count_alike(short: int, more: int, seed: int) -> None:
    matrix = rand(short, short + more, seed=seed)
    u, values, v = torch.linalg.svd(matrix, full_matrices=False)
    found = orthogonal([matrix[None]])[0][0]
    turned = u.T @ found @ v.T  # with the same directions only the values are left
    torch.testing.assert_close(turned, turned.diag().diag(), atol=1e-9, rtol=0)
    strong = values > 0.02 * values.norm()
    assert ((turned.diag() > 0.6) & (turned.diag() < 1.2))[strong].all()
    assert turned.diag().gt(0).all()


@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (7, 7)])
def test_moves_as_torchs_own(shape: tuple[int, int]) -> None:
    ours, theirs = (nn.Parameter(rand(*shape, seed=1)) for _ in range(2))
    moved([ours], with_muon([ours], decay=0.1), 4)
    # Its step is 0.2 √max long, and it rounds to bfloat16 on the way.
    twice = 0.01 * STRIDE / 0.2
    length = {"adjust_lr_fn": "match_rms_adamw"}
    moved([theirs], torch.optim.Muon([theirs], lr=twice, weight_decay=0.05, **length), 4)  # type: ignore[arg-type]
    far = (theirs - rand(*shape, seed=1)).norm()
    assert (ours - theirs).norm() < 0.02 * far


def test_together_is_as_one_at_a_time_and_more_dimensions_are_a_matrix() -> None:
    together = [nn.Parameter(rand(*shape, seed=9)) for shape in SHAPES]
    moved(together, with_muon(together, decay=0.1), 3)
    for number, (shape, one) in enumerate(zip(SHAPES, together)):
        alone = nn.Parameter(rand(*shape, seed=9).flatten(1))
        optimizer = with_muon([alone], decay=0.1)
        for step in range(3):
            alone.grad = rand(*shape, seed=100 * step + number).flatten(1)
            optimizer.step()
        torch.testing.assert_close(one.flatten(1), alone, atol=1e-12, rtol=0)


@given(
    parts=st.integers(1, 4),
    rows=st.integers(1, 5),
    columns=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_stacked_gates_each_turn_by_themselves(
    parts: int, rows: int, columns: int, seed: int
) -> None:
    gates = nn.Parameter(rand(parts * rows, columns, seed=seed))
    alone = [nn.Parameter(gate.clone()) for gate in gates.detach().chunk(parts)]
    gates.grad = rand(parts * rows, columns, seed=seed + 1)
    for one, gradient in zip(alone, gates.grad.chunk(parts)):
        one.grad = gradient.clone()
    Muon([{"params": [gates], "matrices": parts, "weight_decay": 0.1}], lr=0.01).step()
    with_muon(alone, decay=0.1).step()
    torch.testing.assert_close(gates, torch.cat(tuple(alone)), atol=1e-12, rtol=0)


def test_groups_have_rates_of_their_own_though_their_matrices_turn_together() -> None:
    before = rand(4, 6, seed=0)
    slow, fast, still = (nn.Parameter(before.clone()) for _ in range(3))
    groups = [
        {"params": [p], "matrices": 1, "lr": rate, "weight_decay": 0.0}
        for p, rate in ((slow, 0.01), (fast, 0.03), (still, 0.01))
    ]
    optimizer = Muon(groups)
    slow.grad = fast.grad = rand(4, 6, seed=1)
    optimizer.step()
    torch.testing.assert_close(fast - before, 3 * (slow - before))
    assert still.equal(before)
    assert not optimizer.state[still]


def test_the_others_are_moved_by_adamw() -> None:
    matrix, ours, theirs = (nn.Parameter(rand(3, 3, seed=1)) for _ in range(3))
    rest = {"params": [ours], "matrices": 0, "weight_decay": 0.1}
    mixed = Muon([{"params": [matrix], "matrices": 1, "weight_decay": 0.0}, rest], lr=0.01)
    moved([ours, matrix], mixed, 3)
    moved([theirs], torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1), 3)
    torch.testing.assert_close(ours, theirs)
    assert not torch.allclose(matrix, theirs)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_what_is_not_finite_changes_nothing(wrong: float) -> None:
    one = nn.Parameter(rand(3, 5, seed=1))
    optimizer = with_muon([one], decay=0.1)
    moved([one], optimizer, 2)
    before, momentum = one.detach().clone(), optimizer.state[one]["momentum"].clone()
    one.grad = torch.full_like(one, wrong)
    optimizer.found_inf = torch.tensor(1.0, dtype=torch.float64)  # type: ignore[attr-defined]
    optimizer.step()
    assert one.equal(before)
    assert optimizer.state[one]["momentum"].equal(momentum)
    optimizer.found_inf = torch.tensor(0.0, dtype=torch.float64)  # type: ignore[attr-defined]
    moved([one], optimizer, 1)
    assert not one.equal(before)


def test_matrices_inside_turn_and_words_patches_positions_and_biases_do_not() -> None:
    recipe = RECIPES["vit-captioner"]
    model = replace(recipe.model, vocabulary=30).build()
    settings = TrainSettings(optimizer="muon", weight_decay=0.25)
    optimizer = make_optimizer(model, settings, CPU)
    names = {parameter: name for name, parameter in model.named_parameters()}
    turns = {names[p] for g in optimizer.param_groups if g["matrices"] for p in g["params"]}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(names)
    for name, parameter in model.named_parameters():
        outside = any(part in name for part in ("embedding", "positions", "patches"))
        assert (name in turns) == (parameter.dim() > 1 and not outside), name
    assert len(turns) > 20
    plain = make_optimizer(model, replace(settings, optimizer="adamw"), CPU)
    assert not any(group["matrices"] for group in plain.param_groups)


def launched(depth: int) -> int:
    model = VitConfig(width=24, depth=depth, heads=3).build()
    optimizer = make_optimizer(model, TrainSettings(optimizer="muon", weight_decay=0.1), CPU)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    return launches(lambda: step_unless(optimizer, torch.tensor(False))).total()


def test_a_step_launches_no_more_for_more_layers() -> None:
    assert launched(9) == launched(2) < 150

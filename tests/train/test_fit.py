"""One update: the gradient of the mean over all tokens, clipped, averaged, or left out."""

import copy
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.blocks.positions import LearnedPositions
from saccade.errors import RunError
from saccade.train.devices.distributed import World
from saccade.train.events import Skipped, Update
from saccade.train.fit import Trainer, seed_update
from saccade.train.optimizers.average import Average
from saccade.train.optimizers.schedule import learning_rate
from saccade.train.recipes import RECIPES
from saccade.train.run import make_task
from saccade.train.storage.checkpoint import Checkpoint
from tests.tasks import total_loss
from tests.train.small import small_recipe, write_corpus

ALONE = World(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def trainer(data: Path, *, dropout: float = 0.1, **changed: Any) -> Trainer:
    recipe = small_recipe(data, **changed)
    task = make_task(recipe)
    recipe = replace(recipe, model=task.fit(recipe.model))
    torch.manual_seed(recipe.train.seed)
    model = replace(recipe.model, dropout=dropout).build()  # type: ignore[call-arg]
    return Trainer(model, task, recipe.train, ALONE)


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def gradients_of_next_step(one: Trainer, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """What the optimizer is given; it does not get to step."""
    seen: list[Tensor] = []

    def look() -> None:
        seen.extend(p.grad.clone() for p in one.model.parameters() if p.grad is not None)

    monkeypatch.setattr(one.optimizer, "step", look)
    one.update()
    return seen


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_the_gradient_is_that_of_the_mean_over_all_tokens_of_the_update(
    accumulate: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(data, dropout=0.0, accumulate=accumulate, clip=0.0, precision="float64")
    batches = [one.task.batch(position) for position in range(accumulate)]
    sums = [total_loss(one.task, one.model, batch) for batch in batches]
    tokens = [batch.tokens for batch in batches]
    mean = torch.stack(sums).sum() / sum(tokens)
    expected = torch.autograd.grad(mean, list(one.model.parameters()), retain_graph=True)
    torch.testing.assert_close(gradients_of_next_step(one, monkeypatch), list(expected))
    if accumulate > 1:  # the trap: a mean of means weighs words of short batches more
        trap = torch.stack([total / count for total, count in zip(sums, tokens)]).mean()
        assert abs(trap.item() - mean.item()) > 1e-3


def test_the_reported_loss_is_the_mean_over_all_tokens(data: Path) -> None:
    one = trainer(data, dropout=0.0, precision="float64")
    batches = [one.task.batch(position) for position in (0, 1)]
    with torch.no_grad():
        total = sum(total_loss(one.task, one.model, batch).item() for batch in batches)
    event = one.update()
    assert isinstance(event, Update)
    assert event.loss == pytest.approx(total / sum(b.tokens for b in batches), rel=1e-12)
    assert one.tokens_of_last == sum(b.tokens for b in batches)


@pytest.mark.parametrize(("batches", "count"), [("similar", 7), ("mixed", 6)])
def test_micro_batches_update_as_one_batch_of_their_rows(
    batches: str, count: int, data: Path
) -> None:
    """How an epoch is cut does not matter if an update takes the whole epoch."""
    whole = trainer(data, dropout=0.0, accumulate=1, batch_tokens=4096, precision="float64")
    how: dict[str, Any] = {"batch_tokens": 96, "batches": batches, "precision": "float64"}
    parts = trainer(data, dropout=0.0, accumulate=count, **how)
    assert (whole.task.batches_per_epoch, parts.task.batches_per_epoch) == (1, count)
    shapes = {parts.task.batch(position).shape for position in range(count)}
    assert (len(shapes) == 1) == (batches == "mixed")
    for _ in range(3):
        whole.update()
        parts.update()
    for (name, ours), theirs in zip(whole.model.named_parameters(), parts.model.parameters()):
        # Softmax ignores the biases of keys: their gradient is rounding, which Adam blows up.
        apart = 1e-10 if name.endswith("to_k.bias") else 1e-12
        torch.testing.assert_close(ours, theirs, rtol=0, atol=apart)


@pytest.mark.parametrize("clip", [0.05, 0.5])
def test_a_long_gradient_is_shortened_and_keeps_its_direction(
    clip: float, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"dropout": 0.0, "precision": "float64"}
    free = gradients_of_next_step(trainer(data, clip=0.0, **options), monkeypatch)
    held = gradients_of_next_step(trainer(data, clip=clip, **options), monkeypatch)
    norm = torch.cat([g.flatten() for g in free]).norm().item()
    assert norm > clip
    torch.testing.assert_close(held, [g * clip / norm for g in free], rtol=1e-4, atol=1e-12)


def test_the_average_follows_its_formula(data: Path) -> None:
    one = trainer(data, ema=0.4)
    assert one.average is not None
    expected = weights(one.model)
    for n in range(1, 9):
        one.update()
        decay = min(0.4, (1 + n) / (10 + n))
        expected = [decay * a + (1 - decay) * w for a, w in zip(expected, weights(one.model))]
    assert (1 + 1) / (10 + 1) < 0.4 < (1 + 8) / (10 + 8), "only one side of the min was tried"
    torch.testing.assert_close(weights(one.average.model), expected)
    assert one.kept is one.average.model


def test_the_average_copies_what_is_not_a_weight() -> None:
    model = nn.BatchNorm1d(3)
    average = Average(model, 0.9)
    model(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)))
    average.follow(model, torch.tensor(0.1))
    assert average.model.running_mean.equal(model.running_mean)  # type: ignore[union-attr]
    assert average.model.num_batches_tracked == 1  # type: ignore[union-attr]


def test_without_an_average_the_weights_themselves_are_kept(data: Path) -> None:
    one = trainer(data, ema=0.0)
    assert one.kept is one.model
    assert "average" not in one.checkpoint().tensors


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_matrices_decay_and_biases_norms_and_embeddings_do_not(name: str, data: Path) -> None:
    recipe = RECIPES[name]
    settings = replace(recipe.train, weight_decay=0.25)
    one = Trainer(
        recipe.task.smallest(recipe.model).build(), make_task(small_recipe(data)), settings, ALONE
    )
    decay = {p: g["weight_decay"] for g in one.optimizer.param_groups for p in g["params"]}
    assert len(decay) == len(list(one.model.parameters()))
    exempt = (nn.Embedding, nn.LayerNorm, nn.RMSNorm, LearnedPositions)
    matrices = 0
    for module in one.model.modules():
        for own, parameter in module.named_parameters(recurse=False):
            if isinstance(module, exempt) or "bias" in own:
                assert decay[parameter] == 0, own
            elif isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.RNNBase):
                matrices += own.startswith("weight")
                shared = any(parameter is m.weight for m in embeddings(one.model))
                assert shared or parameter.dim() == 1 or decay[parameter] == 0.25, own
    assert matrices > 0


def embeddings(model: nn.Module) -> list[nn.Embedding]:
    return [module for module in model.modules() if isinstance(module, nn.Embedding)]


def test_every_update_has_the_rate_of_the_schedule(data: Path) -> None:
    one = trainer(data)
    for step in range(1, 9):
        event = one.update()
        assert isinstance(event, Update)
        assert event.step == step
        assert event.learning_rate == learning_rate("cosine", 1e-2, step, warmup=5, steps=40)
        assert {group["lr"] for group in one.optimizer.param_groups} == {event.learning_rate}


def test_chance_is_a_function_of_seed_update_and_process() -> None:
    drawn = set()
    for seed, step, rank in itertools.product(range(3), range(20), range(4)):
        seed_update(seed, step, rank)
        first = torch.rand(4)
        torch.rand(100)
        seed_update(seed, step, rank)
        assert torch.rand(4).equal(first)
        drawn.add(tuple(first.tolist()))
    assert len(drawn) == 3 * 20 * 4


def test_what_others_draw_in_between_changes_nothing(data: Path) -> None:
    one, other = trainer(data), trainer(data)
    for _ in range(3):
        one.update()
        torch.rand(17)
        other.update()
        other.validate()
    assert all(a.equal(b) for a, b in zip(weights(one.model), weights(other.model)))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lamb"])
def test_restoring_a_checkpoint_restores_everything_that_later_updates_depend_on(
    optimizer: str, data: Path
) -> None:
    one = trainer(data, optimizer=optimizer)
    for _ in range(4):
        one.update()
    one.validate()
    saved = copy.deepcopy(one.checkpoint())
    other = trainer(data, optimizer=optimizer)
    other.restore(saved)
    assert [one.update() for _ in range(4)] == [other.update() for _ in range(4)]
    assert one.validate() == other.validate()
    ours, theirs = one.checkpoint(), other.checkpoint()
    assert ours.state == theirs.state
    for part, tensors in ours.tensors.items():
        assert all(theirs.tensors[part][name].equal(t) for name, t in tensors.items())


def test_what_was_learnt_from_is_counted_across_stops_or_not_at_all(data: Path) -> None:
    one, counted = trainer(data), 0
    for _ in range(3):
        one.update()
        counted += one.tokens_of_last
    saved = one.checkpoint()
    assert saved.state["seen"] == counted > 0
    other = trainer(data)
    other.restore(saved)
    other.update()
    assert other.seen == counted + other.tokens_of_last
    state = {name: value for name, value in saved.state.items() if name != "seen"}
    other.restore(Checkpoint(3, saved.tensors, state))  # of an earlier version
    other.update()
    assert other.checkpoint().state["seen"] is None


def test_validating_leaves_dropout_as_it_was(data: Path) -> None:
    one = trainer(data)
    first, again = one.validate(), one.validate()
    assert first.figures == again.figures
    assert one.model.training


def test_better_is_best_and_worse_is_stale(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = trainer(data, patience=2)
    course = iter([3.0, 2.0, 2.0, 2.5, 1.0, math.nan, 1.0])
    monkeypatch.setattr(one.task, "validate", lambda *_: {"loss": next(course)})
    seen = []
    for _ in range(7):
        check = one.validate()
        seen.append((check.best, one.stale, one.finished))
    assert seen == [
        (True, 0, False),
        (True, 0, False),
        (False, 1, False),
        (False, 2, True),
        (True, 0, False),
        (False, 1, False),
        (False, 2, True),
    ]
    assert one.best == {"loss": 1.0}


def everything(one: Trainer) -> list[Tensor]:
    return [t.clone() for part in one.checkpoint().tensors.values() for t in part.values()]


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_touches_neither_weights_nor_optimizer_nor_average(
    value: float, policy: str, where: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(data, bad_loss=policy)
    for _ in range(3):
        one.update()
    before, real = everything(one), one.task.losses

    def non_finite(model: nn.Module, batch: Any) -> dict[str, Tensor]:
        ((name, loss),) = real(model, batch).items()
        if where == "loss":
            return {name: loss * value}
        loss.register_hook(lambda flow: flow * value)
        return {name: loss}

    monkeypatch.setattr(one.task, "losses", non_finite)
    if policy == "stop":
        with pytest.raises(RunError, match=r"update 4: .*micro-batches \[6, 7\]") as raised:
            one.update()
        assert "--train.learning-rate" in str(raised.value)
        assert "--train.bad-loss skip" in str(raised.value)
    else:
        assert one.update() == Skipped(4, [6, 7])
    after = everything(one)
    assert len(before) == len(after) > 50
    assert all(a.equal(b) for a, b in zip(before, after))
    monkeypatch.undo()
    assert isinstance(one.update(), Update)
    assert all(tensor.isfinite().all() for tensor in everything(one))

"""Weights that are split over processes train as whole ones do, and come back from any kill."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

import saccade
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.train.devices.distributed import World, alone
from saccade.train.devices.sharding import WeightLayout
from saccade.train.devices.split_weights import SplitWeights
from saccade.train.events import Update
from saccade.train.fit import Trainer
from saccade.train.recipe import Recipe
from saccade.train.run import make_task, train
from tests.train.many import LAST, distance, launch
from tests.train.member import recipe_of
from tests.train.small import (
    ignore,
    losses,
    same_run,
    small_language,
    small_recipe,
    train_noting,
    write_corpus,
)

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": ("translation", {"accumulate": 2}),
    "language": ("language", {"checkpoint_activations": 0.5}),
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with alone(torch.device("cpu")) as world:
        yield world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("split")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    return write_corpus(folder / "data")


@pytest.fixture(scope="module")
def one(folder: Path, data: Path) -> Path:
    """By one process."""
    for case, (kind, change) in CASES.items():
        train(recipe_of(data, kind, change), folder / "one" / case, ignore)
    return folder / "one"


def life(folder: Path, case: str, shard: int, **more: Any) -> dict[str, Any]:
    kind, change = CASES[case]
    return {"folder": str(folder), "kind": kind, "change": {**change, "shard": shard}, **more}


def cut_short(run: Path, copy: Path) -> Path:
    """A run as it was before its last checkpoint."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / LAST)
    return copy


@pytest.fixture(scope="module")
def two(folder: Path, data: Path, one: Path) -> Path:
    """By two processes that hold the weights between them; the last goes on with a whole run."""
    plan = [life(folder / "two" / case, case, shard) for case, shard in zip(CASES, (2, 0))]
    begun = cut_short(one / "translation", folder / "two" / "begun whole")
    assert launch(data, [*plan, life(begun, "translation", 2)]) == 0
    return folder / "two"


def equal_but_for_rounding(run: Path, expected: Path) -> None:
    apart = distance(run, expected)
    assert apart.weights < 1e-12
    assert apart.key_biases < 1e-10
    ours, theirs = losses(run), losses(expected)
    assert ours.keys() == theirs.keys()
    assert ours == pytest.approx(theirs, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_with_half_of_the_weights_each_train_as_one(
    case: str, one: Path, two: Path
) -> None:
    equal_but_for_rounding(two / case, one / case)
    parts = {path.name.split("-")[1] for path in (two / case / LAST).glob("*.safetensors")}
    assert parts == {"00001", "00002"}


@pytest.fixture(scope="module")
def four(folder: Path, data: Path, two: Path) -> Path:
    """By two replicas of two processes that hold the weights between them; the last goes on with
    what two processes began.
    """
    plan = [life(folder / "four" / case, case, 2) for case in CASES]
    begun = cut_short(two / "translation", folder / "four" / "begun by two")
    assert launch(data, [*plan, life(begun, "translation", 2)], processes=4) == 0
    return folder / "four"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_replicas_of_split_weights_train_as_one(case: str, one: Path, four: Path) -> None:
    equal_but_for_rounding(four / case, one / case)


@pytest.mark.slow
def test_replicas_of_split_weights_go_on_with_what_two_processes_began(
    one: Path, four: Path
) -> None:
    equal_but_for_rounding(four / "begun by two", one / "translation")


@pytest.mark.slow
def test_whole_runs_go_on_split_and_split_runs_whole(
    folder: Path, data: Path, one: Path, two: Path
) -> None:
    equal_but_for_rounding(two / "begun whole", one / "translation")
    begun = cut_short(two / "translation", folder / "begun split")
    _, notes = train_noting(recipe_of(data, *CASES["translation"]), begun)
    assert "going on from step 16 of 20" in notes
    assert "shard was 2, now 1: the last digits may differ" in notes
    equal_but_for_rounding(begun, one / "translation")


@pytest.mark.slow
def test_the_run_of_many_is_used_like_any_other(one: Path, two: Path) -> None:
    ours, theirs = (saccade.load(run / "translation").predict("one two") for run in (two, one))
    assert ours.text == theirs.text
    assert ours.score == pytest.approx(theirs.score)


@pytest.mark.slow
def test_workers_killed_during_a_write_and_between_two_bring_the_run_back_and_nothing_is_lost(
    folder: Path, data: Path, two: Path
) -> None:
    run = folder / "killed"
    assert launch(data, [life(run, "translation", 2, kills=[-16, 15])], restarts=2) == 0
    notes = Path(f"{run}.notes").read_text()
    assert notes.count("going on from step 12 of 20") == 2
    assert same_run(run, two / "translation") == []
    assert not list((run / "checkpoints").glob(".tmp-*"))


def trainer(recipe: Recipe, world: World, layout: WeightLayout | None) -> Trainer:
    task = make_task(recipe)
    torch.manual_seed(0)
    model = task.fit(recipe.model).build()
    return Trainer(model, task, recipe.train.definite(task.batches_per_epoch), world, layout)


def small(kind: str, data: Path, **change: Any) -> Recipe:
    if kind == "translation":
        return small_recipe(data, **change)
    recipe = small_language(**change)
    if kind == "recurrent":
        return replace(recipe, model=RnnLanguageConfig(width=8, depth=1))
    return replace(recipe, model=replace(recipe.model, depth=2, dropout=0.1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("translation", {}),
        ("recurrent", {"ema": 0.5}),
        ("language", {"clip": 0.0, "checkpoint_activations": 0.5}),
        ("language", {"precision": "bfloat16"}),
        ("language", {"lora": 2}),
        ("language", {"freeze": 1, "bad_loss": "skip"}),
        ("language", {"layer_decay": 0.5}),
    ],
)
def test_one_process_that_splits_computes_the_very_same(
    kind: str, change: dict[str, Any], world: World, data: Path
) -> None:
    recipe = small(kind, data, **change)
    whole, split = (trainer(recipe, world, layout) for layout in (None, SplitWeights(world, 1)))
    assert all(isinstance(p, DTensor) for p in split.model.parameters())
    for _ in range(3):
        expected, found = whole.update(), split.update()
        assert isinstance(found, Update)
        assert found == expected
    with split.whole() as kept:
        assert not any(isinstance(p, DTensor) for p in kept.parameters())
        ours, theirs = kept.state_dict(), whole.kept.state_dict()
        assert all(ours[name].equal(theirs[name]) for name in theirs)
        assert split.validate(kept) == whole.validate(whole.kept)


def test_what_is_not_finite_leaves_split_weights_as_they_were(world: World, data: Path) -> None:
    one = trainer(small("translation", data, bad_loss="skip"), world, SplitWeights(world, 1))
    one.update()
    before = [p.full_tensor().clone() for p in one.model.parameters() if isinstance(p, DTensor)]
    one._scalar = lambda value: torch.tensor(torch.nan)  # type: ignore[method-assign]
    assert not isinstance(one.update(), Update)
    after = [p.full_tensor() for p in one.model.parameters() if isinstance(p, DTensor)]
    assert all(a.equal(b) for a, b in zip(before, after, strict=True))


def test_every_block_comes_and_goes_by_itself(world: World, data: Path) -> None:
    one = trainer(small("language", data, ema=0.9), world, SplitWeights(world, 1))
    units = [name for name, part in one.objective.named_modules() if isinstance(part, FSDPModule)]
    assert units == ["", "model.decoder.0", "model.decoder.1"]
    assert one.average is not None
    assert [type(p) for p in one.average.model.parameters()] == [
        DTensor if isinstance(p, DTensor) else type(p) for p in one.model.parameters()
    ]


def test_statistics_follow_the_first_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[torch.Tensor] = []
    monkeypatch.setattr(dist, "broadcast", lambda x, rank: sent.append(x))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    layout = SplitWeights(world, 1)
    wrapped = layout.wrap(layout.place(model), None)
    wrapped(torch.ones(3, 2))
    assert [tuple(x.shape) for x in sent] == [(2,), (2,), ()]

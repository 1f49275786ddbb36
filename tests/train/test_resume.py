"""Going on with other settings, or starting over: every way out of a refusal is taken."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.errors import CheckpointError, ConfigError, RunError
from saccade.models.text.transformer import Transformer, TransformerConfig
from saccade.tasks.translation.task import Translation
from saccade.train.events import Note
from saccade.train.fit import Trainer
from saccade.train.recipe import Recipe
from saccade.train.run import make_task, train
from saccade.train.stopping import locked
from saccade.train.storage.folder import RunFolder
from tests.marks import one_fast
from tests.train.small import (
    HaltError,
    halt_at,
    hashes,
    ignore,
    losses,
    rewrite,
    same_run,
    small_recipe,
    train_noting,
    write_corpus,
)
from tests.train.test_fit import ALONE

STEPS, AT = 24, 15  # the run was broken off in update 17, after the checkpoint of step 15


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def halted(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    folder = tmp_path_factory.mktemp("halted") / "run"
    with pytest.raises(HaltError):
        train(small_recipe(data, steps=STEPS), folder, halt_at(17))
    return folder


@pytest.fixture
def run(halted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(halted, tmp_path / "run"))


def went_on(recipe: Recipe, run: Path, **how: bool) -> list[str]:
    notes: list[str] = []
    train(recipe, run, lambda e: notes.append(e.text) if isinstance(e, Note) else None, **how)
    return notes


def config(run: Path) -> dict[str, Any]:
    return json.loads((run / "config.json").read_text())


CHANGES: list[dict[str, Any]] = [
    {"batch_tokens": 64},
    {"learning_rate": 0.5},
    {"ema": 0.0},
    {"schedule": "constant", "warmup": 0},
    {"batches": "mixed"},
    {"accumulate": 1},
    {"ema": 0.5},
    {"validate_every": 7, "patience": 3},
    {"clip": 0.0, "weight_decay": 0.1, "beta2": 0.9},
    {"precision": "bfloat16"},
    {"precision": "float64"},
]


@pytest.mark.parametrize("change", one_fast(CHANGES), ids=str)
def test_how_to_train_may_change_and_what_follows_is_exact(
    change: dict[str, Any], run: Path, data: Path, tmp_path: Path
) -> None:
    """Stopped once more after the change, the run ends with the same bits."""
    recipe = small_recipe(data, steps=STEPS, **change)
    again = Path(shutil.copytree(run, tmp_path / "again"))
    notes = went_on(recipe, run, change=True)
    assert f"going on from step {AT} of {STEPS}" in notes
    for name, value in change.items():
        old = vars(small_recipe(data).train)[name]
        assert f"train.{name} was {old}, now {value}" in notes
    assert any(note.startswith(f"from step {AT} on, with the new settings") for note in notes)
    with pytest.raises(HaltError):
        train(recipe, again, halt_at(20), change=True)
    train(recipe, again, ignore)  # the run knows its new settings now
    assert same_run(run, again) == []


def test_a_change_is_recorded_in_the_run_and_told_by_its_card(run: Path, data: Path) -> None:
    went_on(small_recipe(data, steps=STEPS, learning_rate=0.5), run, change=True)
    assert config(run)["train"]["learning_rate"] == 0.5
    record = {"step": AT, "name": "train.learning_rate", "old": 0.01, "new": 0.5}
    assert config(run)["changes"] == [record]
    card = (run / "README.md").read_text()
    assert "- from step 15 on: train.learning_rate was 0.01, now 0.5" in card
    went_on(small_recipe(data, steps=STEPS + 3, learning_rate=0.5), run)
    more = {"step": STEPS, "name": "train.steps", "old": STEPS, "new": STEPS + 3}
    assert config(run)["changes"] == [record, more]


@pytest.mark.slow
def test_a_change_that_touches_no_number_changes_none(
    run: Path, data: Path, tmp_path: Path
) -> None:
    went_on(small_recipe(data, steps=STEPS, validate_every=6), run, change=True)
    train(small_recipe(data, steps=STEPS), tmp_path / "alone", ignore)
    mine, theirs = losses(run), losses(tmp_path / "alone")
    assert [mine[step, "loss"] for step in range(1, 25)] == [
        theirs[step, "loss"] for step in range(1, 25)
    ]


@pytest.mark.parametrize(
    ("change", "first"),
    one_fast([({"accumulate": 1}, 30), ({"learning_rate": 0.5}, 30), ({"batch_tokens": 40}, None)]),
)
def test_the_place_in_the_data_stays(
    change: dict[str, Any],
    first: int | None,
    run: Path,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    real = Translation.batch
    monkeypatch.setattr(
        Translation, "batch", lambda self, at, **k: asked.append(at) or real(self, at, **k)
    )
    recipe = small_recipe(data, steps=STEPS, **change)
    notes = went_on(recipe, run, change=True)
    if first is None:  # epochs have another length: as far into the same one
        before = make_task(small_recipe(data)).batches_per_epoch
        now = make_task(recipe).batches_per_epoch
        assert now > before
        epoch, done = divmod(2 * AT, before)
        first = epoch * now + done * now // before
        assert any(f"{first % now:,} of {now:,} of this epoch count as seen" in n for n in notes)
    else:
        assert any("so is the place in the data" in note for note in notes)
    assert asked[0] == first
    assert asked == list(range(first, first + len(asked)))


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("model", {"width": 32}),
    ("task", {"level": "characters"}),
    ("task", {"label_smoothing": 0.0}),
    ("train", {"seed": 1}),
    ("train", {"optimizer": "muon"}),
]


def changed(recipe: Recipe, part: str, change: dict[str, Any]) -> Recipe:
    return replace(recipe, **{part: replace(vars(recipe)[part], **change)})


@pytest.mark.parametrize(("part", "change"), one_fast(REFUSED), ids=str)
def test_what_makes_it_another_run_is_refused_and_the_ways_out_work(
    part: str, change: dict[str, Any], run: Path, data: Path
) -> None:
    recipe = changed(small_recipe(data, steps=STEPS), part, change)
    before = hashes(run), (run / "config.json").read_bytes()
    for flag in (False, True):
        with pytest.raises(RunError) as raised:
            train(recipe, run, ignore, change=flag)
        assert "--start-over moves this run aside" in str(raised.value)
        assert ("--change cannot" in str(raised.value)) == flag
        assert "--change goes on" not in str(raised.value)
        assert "\n" not in str(raised.value)
    assert (hashes(run), (run / "config.json").read_bytes()) == before
    short = replace(recipe, train=replace(recipe.train, steps=2))
    assert train(short, run.with_name("other"), ignore).step == 2  # another --out
    notes = went_on(short, run, start_over=True)
    assert f"what was in {run} is now in {run}.1" in notes
    aside = Path(f"{run}.1")
    assert (hashes(aside), (aside / "config.json").read_bytes()) == before
    train(small_recipe(data, steps=STEPS), aside, ignore)  # the old value, to go on


def test_without_the_flag_the_flag_is_named(run: Path, data: Path) -> None:
    with pytest.raises(RunError, match="--change goes on with the new one, --start-over moves"):
        train(small_recipe(data, steps=STEPS, clip=0.5), run, ignore)


def test_starting_over_takes_the_next_free_name_and_deletes_nothing(run: Path, data: Path) -> None:
    recipe = small_recipe(data, steps=1)
    Path(f"{run}.1").mkdir()
    for number in (2, 3):
        went_on(recipe, run, start_over=True)
        assert (Path(f"{run}.{number}") / "config.json").is_file()
    assert len(list(run.parent.glob("run*"))) == 4
    assert train(recipe, run.with_name("new"), ignore, start_over=True).step == 1
    assert not run.with_name("new.1").exists()


def test_a_run_that_is_being_trained_is_not_moved(run: Path, data: Path) -> None:
    with locked(run), pytest.raises(RunError, match="is being trained by"):
        train(small_recipe(data, steps=1), run, ignore, start_over=True)
    assert not Path(f"{run}.1").exists()


@pytest.mark.parametrize(
    ("part", "change"),
    one_fast(
        [
            ("train", {"learning_rate": 0.5, "seed": 3, "optimizer": "muon"}),
            ("model", {"width": 32}),
            ("task", {"level": "characters"}),
            ("task", {"lowercase": True, "vocabulary": 9}),
        ]
    ),
    ids=str,
)
def test_before_anything_was_trained_everything_may_change(
    part: str, change: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    with pytest.raises(HaltError):
        train(small_recipe(data, steps=3), tmp_path / "run", halt_at(1))
    recipe = changed(small_recipe(data, steps=3), part, change)
    notes = went_on(recipe, tmp_path / "run")
    assert "nothing was trained here yet, so training starts with the new settings" in notes
    assert "changes" not in config(tmp_path / "run")
    train(recipe, tmp_path / "fresh", ignore)
    assert same_run(tmp_path / "run", tmp_path / "fresh") == []
    ours, theirs = (tmp_path / run / "tokenizer.json" for run in ("run", "fresh"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_the_ways_out_of_a_loss_that_is_not_finite_work(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(data, steps=4)
    with monkeypatch.context() as patch:
        real = Translation.losses
        patch.setattr(
            Translation, "losses", lambda *given: {n: x / 0 for n, x in real(*given).items()}
        )
        with pytest.raises(RunError, match=r"Lower --train\.learning-rate, or .*bad-loss skip"):
            train(recipe, tmp_path / "run", ignore)
    for way in ({"learning_rate": 1e-4}, {"learning_rate": 1e-4, "bad_loss": "skip"}):
        changed_recipe = replace(recipe, train=replace(recipe.train, **way))  # type: ignore
        assert train(changed_recipe, tmp_path / "run", ignore, change=True).step == 4


class SlowTransformer(Transformer):
    """Its encoder learns at a rate of its own."""

    @property
    def slow_part(self) -> torch.nn.Module:
        return self.encoder


@pytest.mark.parametrize(("before", "after"), [(1.0, 0.1), (0.1, 1.0), (0.1, 0.2)])
def test_state_finds_its_parameter_though_groups_change(
    before: float, after: float, data: Path
) -> None:
    def make(rate: float) -> Trainer:
        recipe = small_recipe(data, encoder_rate=rate)
        task = make_task(recipe)
        model = task.fit(recipe.model)
        assert isinstance(model, TransformerConfig)
        torch.manual_seed(0)
        return Trainer(SlowTransformer(model), task, recipe.train, ALONE)

    def state(one: Trainer) -> dict[str, torch.Tensor]:
        return {n: one.optimizer.state[p]["exp_avg"] for n, p in one.model.named_parameters()}

    one, other = make(before), make(after)
    one.update()
    other.restore(one.checkpoint())
    ours, theirs = state(one), state(other)
    assert all(ours[name].equal(theirs[name]) for name in ours)
    assert len(other.optimizer.param_groups) == (2 if after == 1.0 else 4)


def test_a_checkpoint_from_before_positions_were_kept_goes_on(run: Path, data: Path) -> None:
    one = Trainer(*_parts(data), small_recipe(data).train, ALONE)
    for _ in range(3):
        one.update()
    old = one.checkpoint()
    for name in ("position", "batches_per_epoch", "parameters"):
        del old.state[name]
    other = Trainer(*_parts(data), small_recipe(data).train, ALONE)
    other.restore(old)
    assert (other.position, other.update()) == (6, one.update())


@pytest.mark.parametrize(
    "forged",
    [
        {"position": -1},
        {"position": 1.5},
        {"batches_per_epoch": 0},
        {"batches_per_epoch": "7"},
        {"parameters": []},
        {"parameters": 3},
        {"parameters": ["x"] * 99},
    ],
    ids=str,
)
def test_what_a_checkpoint_cannot_say_is_refused(forged: dict[str, Any], data: Path) -> None:
    one = Trainer(*_parts(data), small_recipe(data).train, ALONE)
    one.update()
    saved = one.checkpoint()
    saved.state.update(forged)
    with pytest.raises(CheckpointError, match="the checkpoint of step 1 is of another model"):
        one.restore(saved)


def _parts(data: Path) -> tuple[Any, Any]:
    torch.manual_seed(0)
    recipe = small_recipe(data)
    task = make_task(recipe)
    return task.fit(recipe.model).build(), task


# Where the data are


def test_a_run_knows_its_data_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus(tmp_path / "here" / "corpus")
    monkeypatch.chdir(tmp_path / "here")
    train(small_recipe("corpus", steps=1), Path("run"), ignore)
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    shutil.move(tmp_path / "here" / "run", tmp_path / "there" / "run")
    recipe = RunFolder(Path("run")).load_recipe()
    assert recipe.task.data == str(tmp_path / "here" / "corpus")
    assert make_task(recipe).batches_per_epoch > 0
    assert train(replace(recipe, changes=()), Path("run"), ignore).step == 1


def test_a_run_of_before_with_a_relative_path_goes_on(
    run: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    table = config(run)
    table["task"]["data"] = data.name
    rewrite(run / "config.json", json.dumps(table))
    _, notes = train_noting(small_recipe(data.name, steps=STEPS), run)
    assert f"going on from step {AT} of {STEPS}" in notes
    assert config(run)["task"]["data"] == str(data)


@pytest.mark.parametrize("changes", [3, [3], [{}], [{"step": "1", "name": "", "old": 1, "new": 2}]])
def test_a_record_of_changes_that_is_none_is_named(changes: Any, run: Path, data: Path) -> None:
    rewrite(run / "config.json", json.dumps({**config(run), "changes": changes}))
    with pytest.raises((RunError, ConfigError), match="changes must be a list of tables of step"):
        RunFolder(run).load_recipe()


def test_the_data_are_looked_through_once_however_many_checkpoints_there_are(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, fingerprint = list[str](), Translation.fingerprint

    def looked_through(task: Translation) -> str:
        looks.append(fingerprint(task))
        return looks[-1]

    monkeypatch.setattr(Translation, "fingerprint", looked_through)
    train(small_recipe(data, steps=3, save_every=1), tmp_path / "run", ignore)
    assert len(looks) == 1
    assert RunFolder(tmp_path / "run").newest_state()["data"] == looks[0]

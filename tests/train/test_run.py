"""Going on with a run: exactly where it was, or not at all."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from saccade.errors import CheckpointError, RunError
from saccade.tasks.translation.task import Translation
from saccade.train.events import Skipped, Update, Validated
from saccade.train.run import train
from saccade.train.storage.checkpoint import load_newest
from tests.train import small
from tests.train.small import HaltError, halt_at, hashes, ignore, losses, same_run, train_noting

STEPS = 24  # an epoch has 3½ updates


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A run that came to its end undisturbed."""
    folder = tmp_path_factory.mktemp("alone")
    train(small.small_recipe(data, steps=STEPS), folder, ignore)
    return folder


@pytest.fixture(scope="module")
def halted(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """The same run, broken off in update 17: there are checkpoints of steps 12 and 15."""
    folder = tmp_path_factory.mktemp("halted")
    with pytest.raises(HaltError):
        train(small.small_recipe(data, steps=STEPS), folder, halt_at(17))
    assert [p.name for p in sorted((folder / "checkpoints").iterdir())] == [
        "step-00000012",
        "step-00000015",
    ]
    return folder


@pytest.fixture
def run(halted: Path, tmp_path: Path) -> Path:
    """A copy of the broken-off run, to go on with."""
    return Path(shutil.copytree(halted, tmp_path / "run"))


def test_a_run_broken_off_goes_on_as_if_it_had_not_been(run: Path, alone: Path, data: Path) -> None:
    _, notes = train_noting(small.small_recipe(data, steps=STEPS), run)
    assert "going on from step 15 of 24" in notes
    assert same_run(run, alone) == []


def test_a_finished_run_started_again_changes_nothing(alone: Path, data: Path) -> None:
    before = hashes(alone), losses(alone)
    outcome, _ = train_noting(small.small_recipe(data, steps=STEPS), alone)
    assert (outcome.step, outcome.signal) == (STEPS, 0)
    assert (hashes(alone), losses(alone)) == before


def test_another_seed_is_another_run(alone: Path, data: Path, tmp_path: Path) -> None:
    train(small.small_recipe(data, steps=6, seed=1), tmp_path, ignore)
    mine, theirs = losses(tmp_path), losses(alone)
    assert all(mine[step, "loss"] != theirs[step, "loss"] for step in range(1, 7))


def cut(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        os.truncate(path, int(path.stat().st_size * share))

    return damage


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[2 * len(content) // 3] ^= 4
    path.write_bytes(content)


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "empty": ("model.safetensors", cut(0)),
    "cut at 1 %": ("optimizer.safetensors", cut(0.01)),
    "cut at 50 %": ("average.safetensors", cut(0.5)),
    "cut at 99 %": ("model.safetensors", cut(0.99)),
    "a bit of the weights": ("model.safetensors", flip),
    "a bit of the optimizer": ("optimizer.safetensors", flip),
    "a bit of the state": ("state.json", flip),
    "a bit of the manifest": ("manifest.json", flip),
    "deleted": ("average.safetensors", Path.unlink),
    "no manifest": ("manifest.json", Path.unlink),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_leads_to_the_same_end(
    what: str, run: Path, alone: Path, data: Path
) -> None:
    name, damage = DAMAGE[what]
    damage(run / "checkpoints" / "step-00000015" / name)
    _, notes = train_noting(small.small_recipe(data, steps=STEPS), run)
    (passed,) = [note for note in notes if note.startswith("passed over: ")]
    assert "step-00000015/" + ("" if what == "a bit of the manifest" else name) in passed
    assert "going on from step 12 of 24" in notes
    assert same_run(run, alone) == []


def test_an_emptied_checkpoint_leads_to_the_same_end(run: Path, alone: Path, data: Path) -> None:
    shutil.rmtree(run / "checkpoints" / "step-00000015")
    (run / "checkpoints" / "step-00000015").mkdir()
    train(small.small_recipe(data, steps=STEPS), run, ignore)
    assert same_run(run, alone) == []


def test_without_a_good_checkpoint_it_stops_and_does_not_start_anew(run: Path, data: Path) -> None:
    for path in (run / "checkpoints").glob("*/state.json"):
        flip(path)
    with pytest.raises(CheckpointError, match=r"no checkpoint under .* can be used") as raised:
        train(small.small_recipe(data, steps=STEPS), run, ignore)
    assert raised.value.exit_code == 2
    assert len(losses(run)) > 30, "the log was touched"


def test_a_checkpoint_of_another_model_is_refused(run: Path, data: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["model"]["hidden"] = 16
    small.rewrite(run / "config.json", json.dumps(config))
    recipe = small.small_recipe(data, steps=STEPS)
    with pytest.raises(CheckpointError, match="step 15 is of another model: size mismatch for"):
        train(replace(recipe, model=replace(recipe.model, hidden=16)), run, ignore)  # type: ignore


# What changed between two starts


@pytest.fixture
def own(run: Path, data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The run, and a corpus of its own that may be changed."""
    corpus = Path(shutil.copytree(data, tmp_path / "corpus"))
    config = json.loads((run / "config.json").read_text())
    config["task"]["data"] = str(corpus)
    small.rewrite(run / "config.json", json.dumps(config))
    return run, corpus


@pytest.mark.slow
def test_the_same_data_elsewhere_are_the_same_data(own: tuple[Path, Path], alone: Path) -> None:
    run, corpus = own
    train(small.small_recipe(corpus, steps=STEPS), run, ignore)
    assert same_run(run, alone) == []


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("change", ["added", "edited", "swapped"])
def test_changed_data_are_refused(split: str, change: str, own: tuple[Path, Path]) -> None:
    run, corpus = own
    for language in ("en", "fr"):
        path = corpus / f"{split}.{language}"
        lines = path.read_text().splitlines()
        if change == "added":
            lines.append("six")
        if change == "edited" and language == "fr":
            lines[0] = "sept"
        if change == "swapped":
            lines[0], lines[1] = lines[1], lines[0]
        path.write_text("\n".join(lines) + "\n")
    before = hashes(run), losses(run)
    with pytest.raises(RunError, match=r"the data of .* changed since step 15; .*--out"):
        train(small.small_recipe(corpus, steps=STEPS), run, ignore)
    assert (hashes(run), losses(run)) == before


@pytest.mark.parametrize(("old", "new"), [('"trois"', '"drei"'), ("\n", "\n\n")])
def test_a_changed_tokenizer_is_refused(old: str, new: str, run: Path, data: Path) -> None:
    path = run / "tokenizer.json"
    small.rewrite(path, path.read_text().replace(old, new, 1))
    with pytest.raises(RunError, match=r"the tokenizer of .* changed since step 15"):
        train(small.small_recipe(data, steps=STEPS), run, ignore)


CHANGES: list[tuple[str, Any, str]] = [
    ("model", {"width": 32}, "model.width=16, now 32"),
    ("model", {"residual": "pre"}, "model.residual='post', now 'pre'"),
    ("task", {"label_smoothing": 0.0}, "task.label_smoothing=0.1, now 0.0"),
    ("task", {"longest": 5}, "task.longest=200, now 5"),
    ("train", {"learning_rate": 0.5}, "train.learning_rate=0.01, now 0.5"),
    ("train", {"batch_tokens": 64}, "train.batch_tokens=96, now 64"),
    ("train", {"accumulate": 1}, "train.accumulate=2, now 1"),
    ("train", {"ema": 0.0}, "train.ema=0.9, now 0.0"),
    ("train", {"seed": 1}, "train.seed=0, now 1"),
    ("train", {"validate_every": 7}, "train.validate_every=5, now 7"),
    ("train", {"precision": "float64"}, "train.precision='float32', now 'float64'"),
]


@pytest.mark.parametrize(("part", "change", "message"), CHANGES)
def test_a_changed_setting_is_refused_with_both_values(
    part: str, change: dict[str, Any], message: str, run: Path, data: Path
) -> None:
    recipe = small.small_recipe(data, steps=STEPS)
    changed = replace(recipe, **{part: replace(getattr(recipe, part), **change)})
    before = (run / "config.json").read_bytes()
    with pytest.raises(RunError) as raised:
        train(changed, run, ignore)
    assert f"was started with {message}; give the old value" in str(raised.value)
    assert (run / "config.json").read_bytes() == before


def test_another_kind_of_model_is_refused(run: Path, data: Path) -> None:
    changed = replace(small.small_recipe(data, steps=STEPS), model=small.small_language().model)
    with pytest.raises(RunError, match="family='transformer', now 'gpt'"):
        train(changed, run, ignore)


def test_harmless_settings_may_change_and_change_no_number(
    run: Path, alone: Path, data: Path
) -> None:
    recipe = small.small_recipe(data, steps=STEPS, keep=1, save_every=0, log_every=1, capture=False)
    _, notes = train_noting(recipe, run)
    assert len(list((run / "checkpoints").iterdir())) == 1
    assert not [note for note in notes if "was" in note]
    assert same_run(run, alone) == []


@pytest.mark.slow
def test_a_coarser_log_has_the_same_numbers(data: Path, alone: Path, tmp_path: Path) -> None:
    train(small.small_recipe(data, steps=STEPS, log_every=4), tmp_path, ignore)
    mine, all_ = losses(tmp_path), losses(alone)
    assert mine == {key: all_[key] for key in mine}
    assert [step for step, name in mine if name == "loss"] == [4, 8, 12, 16, 20, 24]
    assert hashes(tmp_path) == hashes(alone)


def test_a_run_may_be_made_longer(run: Path, data: Path) -> None:
    outcome, notes = train_noting(small.small_recipe(data, steps=STEPS + 6), run)
    assert "train.steps was 24, now 30" in notes
    assert outcome.step == 30


@pytest.mark.slow
def test_a_finished_run_made_longer_with_a_flat_schedule_is_the_long_run(
    data: Path, tmp_path: Path
) -> None:
    """Only where no number depends on the end: rates do in a cosine, and the end is a check."""
    flat: dict[str, Any] = {"schedule": "inverse-sqrt", "validate_every": 6}
    train(small.small_recipe(data, steps=12, **flat), tmp_path / "grown", ignore)
    train(small.small_recipe(data, steps=18, **flat), tmp_path / "grown", ignore)
    train(small.small_recipe(data, steps=18, **flat), tmp_path / "long", ignore)
    assert same_run(tmp_path / "grown", tmp_path / "long") == []


def test_other_threads_are_warned_of(run: Path, data: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        _, notes = train_noting(small.small_recipe(data, steps=15), run)
    finally:
        torch.set_num_threads(before)
    wanted = f"threads was {before}, now {before + 1}: the last digits may differ"
    assert wanted in notes


def test_another_torch_is_warned_of(run: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.__version__
    monkeypatch.setattr("saccade.train.run.torch.__version__", "9.9.9")
    _, notes = train_noting(small.small_recipe(data, steps=15), run)
    assert f"torch was {real}, now 9.9.9: the last digits may differ" in notes


# Numbers that are not numbers


def overflow(monkeypatch: pytest.MonkeyPatch, *positions: int, gradient: bool = False) -> None:
    """Make the loss of some micro-batches NaN, or their gradient infinite."""
    losses, batch = Translation.losses, Translation.batch

    def noted(self: Translation, position: int, **shards: int) -> Any:
        found = batch(self, position, **shards)
        found_at[id(found.labels)] = position
        kept.append(found)
        return found

    def non_finite(self: Translation, model: torch.nn.Module, given: Any) -> Any:
        exact = losses(self, model, given)
        if found_at[id(given.labels)] not in positions:
            return exact
        if gradient:
            exact["cross_entropy"].register_hook(lambda flow: flow * torch.inf)
            return exact
        return {name: loss * torch.nan for name, loss in exact.items()}

    found_at: dict[int, int] = {}
    kept: list[Any] = []  # so that no two batches share an id
    monkeypatch.setattr(Translation, "batch", noted)
    monkeypatch.setattr(Translation, "losses", non_finite)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_loss_that_is_not_finite_stops_and_the_last_checkpoint_is_finite(
    gradient: bool, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow(monkeypatch, 21, gradient=gradient)  # the second micro-batch of update 11
    with pytest.raises(RunError, match=r"update 11: .*micro-batches \[20, 21\]: not finite"):
        train(small.small_recipe(data, steps=STEPS), tmp_path, ignore)
    newest, troubles = load_newest(tmp_path / "checkpoints")
    assert newest is not None
    assert (newest.step, troubles) == (10, [])
    tensors = [t for part in newest.tensors.values() for t in part.values()]
    tensors += load_file(tmp_path / "model.safetensors").values()
    assert len(tensors) > 50
    assert all(tensor.isfinite().all() for tensor in tensors)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [False, True])
def test_a_loss_that_is_not_finite_may_be_skipped(
    gradient: bool, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow(monkeypatch, 21, 33, gradient=gradient)
    events: list[object] = []
    train(small.small_recipe(data, steps=STEPS, bad_loss="skip"), tmp_path, events.append)
    skipped = [event for event in events if isinstance(event, Skipped)]
    assert skipped == [Skipped(11, [20, 21]), Skipped(17, [32, 33])]
    updates = [event.step for event in events if isinstance(event, Update)]
    assert updates == [step for step in range(1, STEPS + 1) if step not in (11, 17)]
    newest, _ = load_newest(tmp_path / "checkpoints")
    assert newest is not None
    assert newest.state["skipped"] == 2
    assert all(t.isfinite().all() for part in newest.tensors.values() for t in part.values())


@pytest.mark.slow
def test_the_51st_that_is_skipped_stops(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflow(monkeypatch, *range(1000))
    events: list[object] = []
    recipe = small.small_recipe(data, steps=90, bad_loss="skip", validate_every=100, save_every=0)
    with pytest.raises(RunError, match=r"update 51: .*not finite, like 50 before; giving up"):
        train(recipe, tmp_path, events.append)
    assert sum(isinstance(event, Skipped) for event in events) == 50


# Ending early


def test_patience_ends_a_run_that_does_not_get_better(data: Path, tmp_path: Path) -> None:
    events: list[object] = []
    outcome = train(small.small_recipe(data, patience=2), tmp_path / "run", events.append)
    checks = [event for event in events if isinstance(event, Validated)]
    best = [check.best for check in checks]
    assert best[-3:] == [True, False, False]
    assert outcome.step == checks[-1].step < 40
    assert outcome.best["loss"] == min(check.figures["loss"] for check in checks)
    again, _ = train_noting(small.small_recipe(data, patience=2), tmp_path / "run")
    assert again == outcome


@pytest.mark.slow
def test_patience_counts_across_a_break(data: Path, tmp_path: Path) -> None:
    whole = train(small.small_recipe(data, patience=2), tmp_path / "whole", ignore)
    with pytest.raises(HaltError):
        train(small.small_recipe(data, patience=2), tmp_path / "broken", halt_at(whole.step - 1))
    broken = train(small.small_recipe(data, patience=2), tmp_path / "broken", ignore)
    assert (broken.step, broken.best) == (whole.step, whole.best)
    assert same_run(tmp_path / "broken", tmp_path / "whole") == []


@pytest.mark.slow
def test_the_kept_weights_are_those_of_the_best_check(data: Path, tmp_path: Path) -> None:
    events: list[object] = []
    train(small.small_recipe(data, steps=STEPS), tmp_path / "run", events.append)
    best = max(event.step for event in events if isinstance(event, Validated) and event.best)
    assert best < STEPS
    with pytest.raises(HaltError):
        train(small.small_recipe(data, steps=STEPS), tmp_path / "to best", halt_at(best + 1))
    at_best = load_file(tmp_path / f"to best/checkpoints/step-{best:08d}/average.safetensors")
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert all(kept[name].equal(tensor) for name, tensor in at_best.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["with blanks", "größe-日本", "x" * 200])
def test_any_name_will_do_for_a_run_and_a_run_may_move(
    name: str, data: Path, alone: Path, halted: Path, tmp_path: Path
) -> None:
    shutil.copytree(halted, tmp_path / name)
    train(small.small_recipe(data, steps=STEPS), tmp_path / name, ignore)
    assert same_run(tmp_path / name, alone) == []

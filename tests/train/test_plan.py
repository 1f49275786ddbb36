"""What a plan says is what training then does."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from saccade.data.lingua import LinguaSettings
from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.train import plan
from saccade.train.devices import threads
from saccade.train.devices.distributed import World
from saccade.train.devices.hardware import Hardware
from saccade.train.devices.sharding import recompute_blocks
from saccade.train.devices.threads import restored_threads
from saccade.train.events import Update
from saccade.train.fit import Objective, Trainer
from saccade.train.plan import (
    SHARE_OF_PEAK,
    cached_bytes,
    held_bytes,
    make_plan,
    measured_pass,
    state_bytes,
)
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import make_task, train
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder

pytestmark = pytest.mark.slow
CPU = torch.device("cpu")
SETTINGS = TrainSettings(steps=6, batch_tokens=600, validate_every=3, device="cpu")


def translating(**train_: Any) -> Recipe:
    return replace(
        RECIPES["transformer"],
        model=TransformerConfig(width=64, depth=2, heads=2, hidden=128),
        task=TranslationSettings(
            vocabulary=300, pairs=60, lingua=LinguaSettings(shortest=3, longest=8)
        ),
        train=replace(SETTINGS, **train_),
    )


def writing(depth: int = 4) -> Recipe:
    return replace(
        RECIPES["gpt"],
        model=GptConfig(width=32, depth=depth, heads=2, longest=64),
        task=LanguageSettings(unit="lines", level="words", sentences=60, window=32),
        train=SETTINGS,
    )


def fitted(recipe: Recipe) -> tuple[Recipe, Any]:
    task = make_task(recipe)
    return replace(recipe, model=task.fit(recipe.model)), task


@pytest.mark.parametrize(
    "how",
    [{}, {"optimizer": "muon"}, {"optimizer": "lamb", "ema": 0.9}, {"precision": "float64"}],
    ids=str,
)
def test_what_stays_in_memory_is_counted_to_the_byte(how: dict[str, Any]) -> None:
    recipe, task = fitted(translating(**how))
    planned = state_bytes(recipe.model, recipe.train, gpus=1)
    trainer = Trainer(recipe.model.build(), task, recipe.train, World(0, 1, CPU))
    model = trainer.model
    weights = sum(x.nbytes for x in (*model.parameters(), *model.buffers()))
    trainer.update()
    states = [x for one in trainer.optimizer.state.values() for x in one.values()]
    assert planned["weights"] == weights
    assert planned["optimizer"] == sum(x.nbytes for x in states if isinstance(x, torch.Tensor))
    assert planned["average"] == (0 if trainer.average is None else planned["weights"])
    reduce(torch.add, task.losses(model, task.batch(0)).values()).backward()
    assert planned["gradients"] == sum(
        p.grad.nbytes for p in model.parameters() if p.grad is not None
    )
    assert planned["exchange"] == 0
    assert state_bytes(recipe.model, recipe.train, gpus=2)["exchange"] == planned["gradients"]


@pytest.mark.parametrize("make", [translating, writing])
def test_activations_are_what_the_allocator_has_given_out_when_the_loss_is_known(
    make: Any,
) -> None:
    recipe, task = fitted(make())
    found = measured_pass(recipe, task, CPU, shards=1, whole=True).activations
    objective, batch = Objective(recipe.model.build().train(), task), task.batch(0)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        losses = objective(batch)
    held = sum(event.self_cpu_memory_usage for event in watched.key_averages())
    assert losses
    assert found == pytest.approx(held, rel=0.1)


def held_after_forward(recipe: Recipe, task: Any, share: float) -> int:
    """Bytes that the allocator has given out when the loss is known."""
    model = recipe.model.build().train()
    recompute_blocks(model, share)
    objective, batch = Objective(model, task), task.batch(0)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        losses = objective(batch)
    assert losses
    return sum(event.self_cpu_memory_usage for event in watched.key_averages())


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("whole", [True, False])
def test_of_blocks_that_are_computed_again_the_input_stays_and_one_at_a_time(
    share: float, whole: bool
) -> None:
    recipe, task = fitted(writing())
    again = replace(recipe, train=replace(recipe.train, checkpoint_activations=share))
    found = measured_pass(again, task, CPU, shards=1, whole=whole)
    kept, left = (held_after_forward(recipe, task, x) for x in (0.0, share))
    blocks = 4 * share  # that are computed again
    assert found.activations == pytest.approx(left + (kept - left) / blocks, rel=0.1)
    assert found.activations < 0.8 * kept
    plain = measured_pass(recipe, task, CPU, shards=1, whole=whole)
    assert plain.operations < found.operations < 1.34 * plain.operations


def test_what_is_split_lies_in_parts_and_the_disk_has_all() -> None:
    whole = state_bytes(writing().model, SETTINGS, gpus=4)
    held = held_bytes(whole, 4)
    assert held_bytes(whole, 1) == whole
    for name in ("weights", "gradients", "optimizer"):
        assert held[name] == -(-whole[name] // 4)
    assert held["exchange"] == whole["weights"]
    split = replace(writing(), train=replace(SETTINGS, shard=4))
    one, four = make_plan(writing(), Hardware(gpus=4)), make_plan(split, Hardware(gpus=4))
    assert four.checkpoint == one.checkpoint
    assert four.weights < one.weights / 3
    assert four.memory < one.memory
    with pytest.raises(ConfigError, match="shard=4 does not divide the number of processes, 6"):
        make_plan(split, Hardware(gpus=6))


def test_weights_are_no_activations() -> None:
    wide = TransformerConfig(width=256, depth=2, heads=2, hidden=2048)
    recipe, task = fitted(replace(translating(batch_tokens=120), model=wide))
    found = measured_pass(recipe, task, CPU, shards=1, whole=True).activations
    assert found < state_bytes(recipe.model, recipe.train, gpus=1)["weights"] / 1.5


def test_a_model_that_is_not_made_is_told_from_smaller_ones() -> None:
    recipe, task = fitted(writing(depth=6))
    whole = measured_pass(recipe, task, CPU, shards=1, whole=True)
    told = measured_pass(recipe, task, CPU, shards=1, whole=False)
    assert told == pytest.approx(whole, rel=0.02)


def test_two_gpus_need_about_half_the_activations_each() -> None:
    recipe, task = fitted(writing())
    one, two = (measured_pass(recipe, task, CPU, shards=n, whole=True) for n in (1, 2))
    assert two.activations == pytest.approx(one.activations / 2, rel=0.2)


def test_a_plan_is_what_training_then_takes(tmp_path: Path) -> None:
    recipe = translating(epochs=2.0, steps=100, accumulate=2)
    planned = make_plan(recipe, Hardware())
    train(recipe, tmp_path / "run", lambda event: None)
    run = RunFolder(tmp_path / "run")
    state = run.newest_state()
    assert planned.updates == state["step"]
    assert planned.epochs == pytest.approx(2.0, rel=0.1)
    assert planned.tokens == pytest.approx(state["seen"], rel=0.1)
    folders = sorted(run.checkpoints.glob("step-*"))
    sizes = [sum(file.stat().st_size for file in folder.iterdir()) for folder in folders]
    assert sizes == pytest.approx([planned.checkpoint] * len(folders), rel=0.1)
    assert planned.checkpoints > sum(sizes) + (run.path / "model.safetensors").stat().st_size
    assert planned.memory < planned.memory_there
    assert planned.hours == pytest.approx(planned.tokens / planned.tokens_per_second / 3600)  # type: ignore[operator]
    assert planned.hours_from.startswith("measured on cpu: ")


class OperationClock(FlopCounterMode):
    """Tells the time in operations, a second for each billion: nobody else can disturb it."""

    def perf_counter(self) -> float:
        return self.get_total_flops() / 1e9


@pytest.mark.parametrize("make", [translating, writing])
def test_hours_are_those_that_the_updates_then_take(
    make: Callable[[], Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, at = make(), list[float]()
    settings = replace(recipe.train, steps=30, accumulate=2, validate_every=30, log_every=1)
    recipe = replace(recipe, train=settings)

    def watch(event: object) -> None:
        if isinstance(event, Update):
            at.append(clock.perf_counter())

    with OperationClock(display=False) as clock:
        monkeypatch.setattr(plan, "time", clock)
        hours = make_plan(recipe, Hardware()).hours
        train(recipe, tmp_path / "run", watch)
    assert hours is not None
    a_step = (at[-1] - at[0]) / (len(at) - 1)
    assert a_step > 0
    assert 3600 * hours == pytest.approx(30 * a_step, rel=0.1)


def test_hours_are_measured_with_as_many_threads_as_training_would_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(threads, "cores_taken", lambda _, window: 1.0)
    monkeypatch.setattr(threads, "threads_beside", lambda *_, **__: 1)
    monkeypatch.setattr(
        plan, "measured_rate", lambda *_: taken.append(torch.get_num_threads()) or 5.0
    )
    with restored_threads():
        torch.set_num_threads(2)
        made = make_plan(writing(), Hardware())
        assert torch.get_num_threads() == 2
    assert taken == [1]
    assert "1 of 2 threads: others keep 1.0 of" in made.notes[0]


def test_what_a_run_starts_from_is_planned_with_its_tokenizer(tmp_path: Path) -> None:
    train(writing(), tmp_path, lambda event: None)
    asked = replace(writing(), init=str(tmp_path), train=replace(SETTINGS, lora=2))
    learns = replace(asked, task=replace(asked.task, level="characters"))
    assert make_plan(learns, Hardware(rate=1.0)) == make_plan(asked, Hardware(rate=1.0))
    assert (
        make_plan(asked, Hardware(rate=1.0)).gradients
        < make_plan(writing(), Hardware(rate=1.0)).gradients
    )


def test_what_training_refuses_is_not_planned(tmp_path: Path) -> None:
    for init, told in (("", "name those to start from with --init"), ("nowhere", "is not there")):
        asked = replace(writing(), init=init, train=replace(SETTINGS, freeze=1))
        with pytest.raises(ConfigError, match=told):
            make_plan(asked, Hardware(rate=1.0))


def test_hours_say_where_they_are_from() -> None:
    recipe = writing()
    given = make_plan(recipe, Hardware(gpus=8, rate=1000.0))
    assert given.hours == pytest.approx(given.tokens / 1000 / 3600)
    assert "1,000 tokens a second that were given" in given.hours_from
    guessed = make_plan(recipe, Hardware(gpu="h200"))
    seconds = guessed.updates * guessed.operations / (SHARE_OF_PEAK * 67e12)
    assert guessed.hours == pytest.approx(seconds / 3600)
    assert guessed.hours_from.startswith("estimate, not measured: ")
    assert "35% of h200's 67 Tflop/s in float32" in guessed.hours_from
    unknown = make_plan(recipe, Hardware(gpu="0.0001"))
    assert unknown.hours is None
    assert (
        unknown.hours_from == "not known; name a GPU that is, or give tokens a second with --rate"
    )
    assert "more memory than there is" in unknown.notes[-1]


def test_what_is_learnt_from_is_named_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.classification.data.HELD_BACK", 4)
    recipe = replace(
        RECIPES["vit"],
        model=replace(PRESETS["vit-nano"], image=32),
        task=ClassificationSettings(scenes=12, image=32),
        train=replace(SETTINGS, batch_tokens=4),
    )
    assert "5 images a second that were given" in make_plan(recipe, Hardware(rate=5.0)).hours_from
    assert "give images a second" in make_plan(recipe, Hardware(gpu="0.0001")).hours_from


def test_what_is_kept_on_disk_is_what_was_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("saccade.tasks.corpus.KEPT_FROM", 0)
    assert cached_bytes() in (0, None)
    for side in ("en", "de"):
        text = "".join(f"a line of {side} {number}\n" for number in range(300))
        (tmp_path / f"train.{side}").write_text(text)
    task = TranslationSettings(data=str(tmp_path), source="en", target="de", vocabulary=300)
    kept = make_task(replace(translating(), task=task))
    tokens = [path for path in (tmp_path / "cache").glob("tokens-*/**/*") if path.is_file()]
    assert kept.batches_per_epoch
    assert cached_bytes() == sum(path.stat().st_size for path in tokens)

"""Devices that are not here, imitated on the CPU: one without float64 and fused optimizers, such
as MPS; and one whose tensors mix with no others and are not waited for, such as a GPU.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from saccade.blocks.positions import FixedPositions, sinusoids
from saccade.config import ModelConfig
from saccade.decode.greedy import Greedy
from saccade.decode.sample import Sampler
from saccade.errors import ConfigError, RunError
from saccade.models.text.convolutional import ConvSeq2SeqConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.seq2seq import Seq2SeqConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.base import Fillable, Preparation
from saccade.train.devices.distributed import choose_device
from saccade.train.events import Skipped, Update
from saccade.train.fit import Objective, Trainer
from saccade.train.recipes import RECIPES
from saccade.train.run import make_task
from tests.gpu.corpora import NEEDS, hurried
from tests.marks import one_fast
from tests.train.small import small_recipe, write_corpus
from tests.train.test_fit import ALONE, everything, trainer


class Float64Refused(TorchDispatchMode):
    """A device that has no float64; tensors elsewhere may."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(found):
            if isinstance(leaf, Tensor) and leaf.device.type == self.device:
                assert leaf.dtype != torch.float64, f"{func} makes float64"
        return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.optimizers.optimizer.FUSED", ())


SIZES: dict[str, Any] = {"width": 16, "dropout": 0.1}
MODELS: list[ModelConfig] = [
    TransformerConfig(**SIZES, depth=1, heads=2, hidden=32),
    TransformerConfig(**SIZES, depth=1, heads=2, hidden=32, norm="batch", positions="learned"),
    RnnAttentionConfig(**SIZES),
    Seq2SeqConfig(**SIZES),
    ConvSeq2SeqConfig(**SIZES, depth=1),
]


@pytest.mark.usefixtures("unfused")
@pytest.mark.parametrize("optimizer", one_fast(["adamw", "muon", "lamb"]))
@pytest.mark.parametrize("config", one_fast(MODELS), ids=lambda one: type(one).__name__)
def test_an_update_makes_no_float64_and_needs_no_fused_optimizer(
    config: ModelConfig, optimizer: str, data: Path
) -> None:
    recipe = small_recipe(data, optimizer=optimizer)
    task = make_task(recipe)
    one = Trainer(task.fit(config).build(), task, recipe.train, ALONE)
    for part in one.model.modules():
        if isinstance(part, FixedPositions):
            part(0, 64)  # computed elsewhere: see below
    for part in () if one.average is None else one.average.model.modules():
        if isinstance(part, FixedPositions):
            part(0, 64)
    with Float64Refused("cpu"):
        assert all(isinstance(one.update(), Update) for _ in range(2))
        one.validate()


def test_positions_are_computed_where_float64_is() -> None:
    there = FixedPositions(sinusoids, 8).to("meta")
    with Float64Refused("meta"):
        assert there(0, 5).device.type == "meta"
    here = FixedPositions(sinusoids, 8)
    assert here(0, 5).dtype == torch.float32


@pytest.mark.parametrize("sampler", [Sampler(), Sampler(top_k=3, top_p=0.5)])
def test_words_are_drawn_without_float64(sampler: Sampler) -> None:
    with Float64Refused("meta"):
        state = Greedy(sampler=sampler).state(2, 4, 1, torch.device("meta"))
        assert state.uniforms.dtype == torch.float32
        assert sampler(torch.zeros(2, 9, device="meta"), state.uniforms[:, 0]).shape == (2,)


def test_a_word_that_was_cut_is_never_drawn_though_a_draw_is_rounded_to_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("saccade.decode.sample.widest", lambda device: torch.float32)
    logits = torch.tensor([[-9.0, 0.0, 1.0]])
    draw = torch.tensor([1 - 1e-12], dtype=torch.float64)
    assert Sampler(top_k=2)(logits, draw).item() == 1


@pytest.mark.usefixtures("unfused")
@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lamb"])
@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_without_a_fused_optimizer_what_is_not_finite_is_skipped_too(
    optimizer: str, policy: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(data, bad_loss=policy, optimizer=optimizer)
    one.update()
    before, real = everything(one), one.task.losses
    monkeypatch.setattr(
        one.task, "losses", lambda *given: {n: x * math.nan for n, x in real(*given).items()}
    )
    if policy == "stop":
        with pytest.raises(RunError, match="update 2: "):
            one.update()
    else:
        assert isinstance(one.update(), Skipped)
    assert all(a.equal(b) for a, b in zip(before, everything(one), strict=True))


@pytest.mark.parametrize("fused", [("cpu",), ()], ids=["fused", "unfused"])
def test_a_forward_that_is_not_finite_leaves_no_trace_in_statistics_or_their_average(
    fused: tuple[str, ...], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.train.optimizers.optimizer.FUSED", fused)
    recipe = small_recipe(data, bad_loss="skip")
    task = make_task(recipe)
    one = Trainer(task.fit(MODELS[1]).build(), task, recipe.train, ALONE)
    one.update()
    norms = [part for part in one.model.modules() if isinstance(part, nn.BatchNorm1d)]
    assert norms
    before = everything(one)
    hook = norms[0].register_forward_pre_hook(lambda module, given: (given[0] * math.nan,))
    assert isinstance(one.update(), Skipped)
    assert all(a.equal(b) for a, b in zip(before, everything(one), strict=True))
    hook.remove()
    assert isinstance(one.update(), Update)
    moved = norms[0].running_mean
    assert moved is not None
    assert moved.isfinite().all()
    assert not any(moved.equal(old) for old in before)


def test_a_model_without_statistics_copies_nothing(data: Path) -> None:
    assert trainer(data)._statistics.copied() == []


def test_meta_is_no_device_to_train_on() -> None:
    with pytest.raises(ConfigError, match=r"device='meta' cannot be used here .*; try cpu"):
        choose_device("meta")


META = torch.device("meta")
# Of each kind of work with each kind of model the last recipe on built-in data, unless it begins
# with another run.
UPDATES = {
    (type(one.task), type(one.model)): name
    for name, one in RECIPES.items()
    if name not in NEEDS and not one.stages
}


@pytest.fixture
def autocast_on_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none, and it would change nothing."""
    enabled, autocast = torch.is_autocast_enabled, torch.autocast

    def is_enabled(device: str = "cpu") -> bool:
        return device != "meta" and enabled(device)

    def switch(device: str, *how: Any, **more: Any) -> AbstractContextManager[Any]:
        return nullcontext() if device == "meta" else autocast(device, *how, **more)

    monkeypatch.setattr(torch, "is_autocast_enabled", is_enabled)
    monkeypatch.setattr(torch, "autocast", switch)


@pytest.mark.slow
@pytest.mark.usefixtures("autocast_on_meta")
@pytest.mark.parametrize("name", UPDATES.values())
def test_an_update_mixes_no_devices_and_asks_for_no_number(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors on `meta` have no numbers, so that whoever asks for one is told."""
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    for module in ("captioning", "classification", "detection", "joint", "reconstruction"):
        monkeypatch.setattr(f"saccade.tasks.{module}.data.HELD_BACK", 8)
    # A GPU matches objects by a kernel; without it the CPU must see the costs.
    monkeypatch.setattr(
        "saccade.tasks.detection.matching.assigned", lambda cost, there: there.long()
    )
    recipe = hurried(name, tmp_path / "data", steps=3)
    few = {"pairs": 200, "sentences": 200, "scenes": 40, "count": 80}
    fewer: Any = {key: count for key, count in few.items() if key in vars(recipe.task)}
    budget = min(600, recipe.train.batch_tokens)
    task = replace(recipe.task, **fewer).prepare(Preparation(budget=budget, seed=0))
    objective = Objective(task.fit(recipe.model).build().to(META), task)
    batch = task.batch(0)
    losses = objective((batch.filled() if isinstance(batch, Fillable) else batch).to(META))
    reduce(torch.add, losses.values()).backward()
    assert any(weight.grad is not None for weight in objective.parameters())

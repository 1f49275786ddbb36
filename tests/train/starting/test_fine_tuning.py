"""Weights that are to stay as they are do, bit for bit, and cost no gradient and no state."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from saccade.errors import ConfigError, RunError
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.vit import VitConfig
from saccade.tasks.classification import data as classified
from saccade.tasks.classification.data import ClassificationSettings
from saccade.train.recipe import Recipe
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from saccade.train.starting.fine_tuning import fine_tune, learning
from tests.marks import one_fast
from tests.train.small import (
    HaltError,
    halt_at,
    ignore,
    same_run,
    small_language,
    small_recipe,
    write_corpus,
)

GPT = GptConfig(width=16, depth=3, heads=2, longest=32, dropout=0.1)
VIT = VitConfig(image=32, patch=8, width=12, depth=2)


def language(init: Path | str = "", **changes: Any) -> Recipe:
    given = {"steps": 6, "validate_every": 3, "save_every": 1, "ema": 0.9, **changes}
    return replace(small_language(**given), model=GPT, init=str(init))


def classifier(init: Path | str = "", model: Any = VIT, **changes: Any) -> Recipe:
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=model,
        task=ClassificationSettings(scenes=12, image=32),
        train=replace(
            TrainSettings(steps=2, batch_tokens=8, validate_every=2, device="cpu"), **changes
        ),
        init=str(init),
    )


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classified, "HELD_BACK", 5)


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def changed(one: dict[str, Tensor], other: dict[str, Tensor]) -> set[str]:
    assert one.keys() == other.keys()
    counts = {name for name in one if name.endswith("num_batches_tracked")}  # which nobody reads
    return {name for name in one.keys() - counts if not torch.equal(one[name], other[name])}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "run"
    train(language(), folder, ignore)
    return folder


@pytest.mark.parametrize(
    ("freeze", "blocks"), one_fast([(1, {1, 2}), (2, {2}), (3, set()), (99, set())])
)
def test_frozen_blocks_and_what_is_beneath_stay_bit_for_bit(
    freeze: int, blocks: set[int], base: Path, tmp_path: Path
) -> None:
    train(language(base, freeze=freeze), tmp_path / "run", ignore)
    moved = changed(weights(base), weights(tmp_path / "run"))
    found = {int(name.split(".")[1]) for name in moved if name.startswith("decoder.")}
    assert found == blocks
    assert {name for name in moved if not name.startswith("decoder.")} == {
        "norm.weight",
        "norm.bias",
    }
    last = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    names = json.loads((last / "state.json").read_text())["parameters"]
    state = {names[int(key.split(".")[0])] for key in load_file(last / "optimizer.safetensors")}
    assert all(name.startswith(("norm", *(f"decoder.{n}." for n in blocks))) for name in state)


def test_frozen_blocks_get_no_gradient(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[tuple[int, ...]]] = []
    step = torch.optim.AdamW.step

    def watched(optimizer: Any, *rest: Any) -> Any:
        every = [p for group in optimizer.param_groups for p in group["params"]]
        seen.append({tuple(p.shape) for p in every if p.grad is not None})
        return step(optimizer, *rest)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    train(language(base, freeze=3, steps=1, validate_every=1), tmp_path / "run", ignore)
    assert seen == [{(16,)}]  # the last norm


def test_a_frozen_batch_norm_keeps_its_statistics(tmp_path: Path) -> None:
    model = ResNetConfig(depth=10, width=4)
    train(classifier(model=model), tmp_path / "base", ignore)
    train(classifier(tmp_path / "base", model, freeze=99), tmp_path / "run", ignore)
    moved = changed(weights(tmp_path / "base"), weights(tmp_path / "run"))
    assert moved == {"fc.weight", "fc.bias"}
    train(classifier(tmp_path / "base", model, freeze=1), tmp_path / "one", ignore)
    moved = changed(weights(tmp_path / "base"), weights(tmp_path / "one"))
    assert not any(name.startswith(("bn1", "conv1", "layer1")) for name in moved)
    assert any("running_mean" in name for name in moved)


def test_lora_changes_queries_and_values_alone_and_the_files_beside_say_how(
    base: Path, tmp_path: Path
) -> None:
    recipe = language(base, lora=3, lora_alpha=6.0, learning_rate=1e-2)
    train(recipe, tmp_path / "run", ignore)
    before, after = weights(base), weights(tmp_path / "run")
    sites = {f"decoder.{i}.self_attention.to_{x}.weight" for i in range(3) for x in "qv"}
    moved = changed(before, after)
    assert moved == sites | {"norm.weight", "norm.bias"}
    adapter = load_file(tmp_path / "run" / "adapter_model.safetensors")
    config = json.loads((tmp_path / "run" / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 3, 6.0)
    assert config["base_model_name_or_path"] == str(base)
    prefix, used = "base_model.model.", set[str]()
    for module in config["target_modules"]:  # as PEFT merges
        a, b = (f"{prefix}{module}.lora_{x}.weight" for x in "AB")
        used |= {a, b}
        delta = config["lora_alpha"] / config["r"] * adapter[b] @ adapter[a]
        name = f"{module}.weight"
        torch.testing.assert_close(before[name] + delta, after[name])
    for name in adapter.keys() - used:
        leaf = name.removeprefix(prefix)
        assert leaf.rpartition(".")[0] in config["modules_to_save"]
        assert any(torch.equal(adapter[name], after[own]) for own in ("norm.weight", "norm.bias"))
    card = (tmp_path / "run" / "README.md").read_text()
    assert f"from the weights of {base} (LoRA of rank 3; the adapter alone is in" in card


def test_an_adapter_has_the_names_that_hugging_face_has(tmp_path: Path) -> None:
    train(classifier(), tmp_path / "base", ignore)
    train(classifier(tmp_path / "base", lora=2), tmp_path / "run", ignore)
    moved = changed(weights(tmp_path / "base"), weights(tmp_path / "run"))
    assert {name for name in moved if name.startswith(("head", "norm"))} == {
        *("head.weight", "head.bias", "norm.weight", "norm.bias")
    }
    config = json.loads((tmp_path / "run" / "adapter_config.json").read_text())
    attention = "vit.encoder.layer.{}.attention.attention.{}"
    assert config["target_modules"] == [
        attention.format(i, name) for i in range(2) for name in ("query", "value")
    ]
    assert config["modules_to_save"] == ["classifier", "vit.layernorm"]
    names = load_file(tmp_path / "run" / "adapter_model.safetensors").keys()
    assert f"base_model.model.{attention.format(0, 'query')}.lora_A.weight" in names
    assert "base_model.model.classifier.bias" in names


def test_with_lora_above_frozen_blocks_only_those_above_are_adapted(
    base: Path, tmp_path: Path
) -> None:
    train(language(base, lora=3, freeze=2), tmp_path / "run", ignore)
    moved = changed(weights(base), weights(tmp_path / "run"))
    assert {name.split(".")[1] for name in moved if name.startswith("decoder")} == {"2"}


@pytest.mark.parametrize(
    "how", one_fast([{"lora": 3}, {"freeze": 2}, {"lora": 3, "optimizer": "muon"}])
)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    how: dict[str, Any], base: Path, tmp_path: Path
) -> None:
    recipe = language(base, **how)
    train(recipe, tmp_path / "whole", ignore)
    with pytest.raises(HaltError):
        train(recipe, tmp_path / "halted", halt_at(4))
    train(recipe, tmp_path / "halted", ignore)
    assert same_run(tmp_path / "whole", tmp_path / "halted") == []
    adapters = [tmp_path / one / "adapter_model.safetensors" for one in ("whole", "halted")]
    assert not how.get("lora") or adapters[0].read_bytes() == adapters[1].read_bytes()


def test_a_translator_takes_lora_too_and_only_its_matrices_learn(tmp_path: Path) -> None:
    data = write_corpus(tmp_path / "data")
    train(small_recipe(data, steps=5), tmp_path / "base", ignore)
    recipe = replace(small_recipe(data, steps=5, lora=2), init=str(tmp_path / "base"))
    train(recipe, tmp_path / "run", ignore)
    moved = changed(weights(tmp_path / "base"), weights(tmp_path / "run"))
    assert moved
    assert all(name.endswith(("to_q.weight", "to_v.weight")) for name in moved)


def test_another_choice_of_what_learns_is_another_run(base: Path, tmp_path: Path) -> None:
    train(language(base, lora=3), tmp_path / "run", ignore)
    message = r"started with train\.lora=3, now 2; .*--change cannot: other weights would learn"
    with pytest.raises(RunError, match=message):
        train(language(base, lora=2), tmp_path / "run", ignore, change=True)


@pytest.mark.slow
def test_a_run_of_lora_is_a_start_like_any_other(base: Path, tmp_path: Path) -> None:
    train(language(base, lora=3), tmp_path / "first", ignore)
    train(language(tmp_path / "first", steps=1, validate_every=1), tmp_path / "second", ignore)
    assert weights(tmp_path / "second").keys() == weights(base).keys()


class Bare(nn.Module):
    """Blocks, and nothing above them."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.blocks)


def test_frozen_parts_stand_still_in_training_and_the_rest_does_not() -> None:
    model = GPT.build()
    still = fine_tune(model, TrainSettings(freeze=1))
    assert {model.embedding, model.decoder[0]} <= set(still)
    assert not {model, model.decoder[1], model.norm} & set(still)
    assert fine_tune(GPT.build(), TrainSettings()) == []


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (language(lora=4), "lora=4 keeps weights as they are, and these would be fresh; name"),
        (language(freeze=1), "freeze=1 keeps weights as they are, and these would be fresh"),
        (language("x", lora=16), "lora=16 must be below 16, the width of what it adapts; 4 to"),
        (
            replace(language("x", lora=4), model=RnnLanguageConfig(width=8)),
            "lora=4: RnnLanguageModel has no matrices of queries and values to adapt; leave",
        ),
        (
            replace(language("x", freeze=4), model=RnnLanguageConfig(width=8)),
            "freeze=4: RnnLanguageModel does not say which of its layers lies above which;",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_any_data_are_read(
    recipe: Recipe, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*args: Any) -> None:
        raise AssertionError("data were read")

    monkeypatch.setattr(type(recipe.task), "prepare", read)
    monkeypatch.setattr("saccade.train.run.check_start", lambda recipe: Path(recipe.init))
    monkeypatch.setattr("saccade.train.run.lineage", lambda init: (init,))
    with pytest.raises(ConfigError) as error:
        train(recipe, tmp_path / "run", ignore)
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)


def test_nothing_left_to_learn_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^freeze=2 leaves nothing of Bare to learn; give less$"):
        learning(Bare(), TrainSettings(freeze=2))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"freeze": -1}, "freeze=-1 must be 0 or more"),
        ({"lora": -1}, "lora=-1 must be 0 or more"),
        ({"lora_alpha": 0.0}, "lora_alpha=0.0 must be above 0"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}$"):
        TrainSettings(**wrong)


def test_what_does_not_learn_needs_no_memory_for_it() -> None:
    frozen, lora = TrainSettings(freeze=3), TrainSettings(lora=2)
    for settings in (frozen, lora):
        assert sum(p.numel() for p in learning(GPT.build(), settings)) == 2 * GPT.width

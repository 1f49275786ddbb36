"""The files for PEFT hold what has learnt, and say where it belongs."""

import json

import torch
from safetensors.torch import load
from torch import Tensor, nn

from saccade.blocks.lora import adapt, adapters
from saccade.train.starting.adapter import CONFIG, WEIGHTS, adapter_files


class Readout(nn.Module):
    """A head with a weight of its own beside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4))
        self.dense = nn.Linear(4, 4)


class Toy(nn.Module):
    """One layer to adapt, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.readout = nn.Linear(4, 4), Readout()


def files(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, object]]:
    learnt = [name for name, p in model.named_parameters() if p.requires_grad]
    found = adapter_files(model, learnt=learnt, base="somewhere")
    return load(found[WEIGHTS]), json.loads(found[CONFIG])


def test_what_has_learnt_is_there_and_nothing_else() -> None:
    model = Toy()
    model.to_q.requires_grad_(False)
    adapt(model.to_q, rank=2, alpha=8.0)
    tensors, config = files(model)
    assert set(tensors) == {
        "base_model.model.to_q.lora_A.weight",
        "base_model.model.to_q.lora_B.weight",
        "base_model.model.readout.bias",
        "base_model.model.readout.dense.weight",
        "base_model.model.readout.dense.bias",
    }
    assert torch.equal(tensors["base_model.model.to_q.lora_A.weight"], adapters(model)["to_q"].a)
    assert config["target_modules"] == ["to_q"]
    assert config["modules_to_save"] == ["readout"]
    assert (config["r"], config["lora_alpha"]) == (2, 8.0)
    assert config["base_model_name_or_path"] == "somewhere"


def test_where_nothing_is_adapted_there_are_no_files() -> None:
    assert adapter_files(Toy(), learnt=["readout.bias"], base="") == {}

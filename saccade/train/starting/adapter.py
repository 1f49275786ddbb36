"""What LoRA has learnt, by itself, in the two files that PEFT reads.

The names are Hugging Face's where the family has a table of them, else ours. PEFT adds
lora_alpha / r · lora_B lora_A to the weight, and takes the head as it is.
"""

import json
from collections.abc import Iterable

from torch import Tensor, nn

from saccade.blocks.lora import adapters
from saccade.models.names import LIBRARIES
from saccade.models.names.table import located
from saccade.train.storage.checkpoint import serialise

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
INSIDE = "base_model.model."  # what PEFT calls the model within its own


def adapter_files(model: nn.Module, *, learnt: Iterable[str], base: str) -> dict[str, bytes]:
    """By file name; none where nothing is adapted. `learnt` are the weights that learn."""
    added = adapters(model)
    if not added:
        return {}
    tensors, heads = dict[str, Tensor](), set[str]()
    state, called = model.state_dict(), _names(model, added)
    for path, lora in added.items():
        tensors[f"{INSIDE}{called[f'{path}.weight']}.lora_A.weight"] = lora.a
        tensors[f"{INSIDE}{called[f'{path}.weight']}.lora_B.weight"] = lora.b
    for name in learnt:
        if ".parametrizations." in name:
            continue
        module, _, leaf = name.rpartition(".")
        heads.add(called.get(name, module))
        tensors[f"{INSIDE}{called.get(name, module)}.{leaf}"] = state[name]
    first = next(iter(added.values()))
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": base,
        "r": first.rank,
        "lora_alpha": first.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": [called[f"{path}.weight"] for path in added],
        "modules_to_save": _outermost(heads) or None,
    }
    return {WEIGHTS: serialise(tensors), CONFIG: json.dumps(config, indent=2).encode()}


def _outermost(paths: set[str]) -> list[str]:
    """Without those that lie within another."""
    return sorted(p for p in paths if not any(p.startswith(f"{other}.") for other in paths))


def _names(model: nn.Module, added: Iterable[str]) -> dict[str, str]:
    """What the modules of our tensors are called; ours where theirs joins several in one tensor."""
    wanted = [f"{path}.weight" for path in added]
    ours = {name: name.rpartition(".")[0] for name in wanted}
    table = LIBRARIES.get(type(model), {}).get("huggingface")
    if table is None:
        return ours
    names = [name for name in model.state_dict() if "parametrizations" not in name]
    places = located(table, [*names, *wanted])
    if any(name not in places or places[name].parts > 1 for name in wanted):
        return ours
    return {name: at.name.rpartition(".")[0] for name, at in places.items()}

"""A discrete VAE as bytes, for runs of models that write its codes and must keep it.

safetensors, with the sizes as JSON among its metadata. Reading them runs no code, and takes no more
memory than the bytes do.
"""

import json
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from saccade.config import from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.models.outline import outline

ASSET = "dvae.safetensors"
_CONFIG = "config"
_LENGTH = 8  # bytes that say how long the header is
_MOST = 1 << 24  # bytes of a header, which names some hundred tensors


def dvae_asset(model: Dvae) -> bytes:
    """Sizes and weights."""
    weights = {name: x.detach().cpu().contiguous() for name, x in model.state_dict().items()}
    return save(weights, metadata={_CONFIG: json.dumps(to_dict(model.config))})


def read_dvae_asset(raw: bytes) -> Dvae:
    """The inverse of what a run keeps; a ValueError if it cannot be."""
    header = _header(raw)
    metadata = header.pop("__metadata__", {})
    try:
        config = from_dict(DvaeConfig, json.loads(metadata[_CONFIG]), where=_CONFIG)
        model = _outline(config, most=len(header))
    except (ConfigError, KeyError, TypeError) as error:
        raise ValueError(f"no sizes of a discrete VAE in it: {error}") from None
    try:
        weights = load(raw)
    except (SafetensorError, KeyError) as error:  # KeyError: a kind of numbers that torch has not
        raise ValueError(f"not whole: {error}") from None
    expected = {name: tuple(x.shape) for name, x in model.state_dict().items()}
    found = {name: tuple(x.shape) for name, x in weights.items()}
    if found != expected:
        name = next(n for n in {**expected, **found} if expected.get(n) != found.get(n))
        raise ValueError(
            f"{name} has shape {found.get(name)}, and the sizes want {expected.get(name)}"
        )
    model.load_state_dict(weights, assign=True)
    return model.eval()


def _header(raw: bytes) -> dict[str, Any]:
    """What the file says of itself, before anything is allocated."""
    length = int.from_bytes(raw[:_LENGTH], "little")
    if not 0 < length <= min(_MOST, len(raw) - _LENGTH):
        raise ValueError("no safetensors: the header is longer than the bytes")
    header = json.loads(raw[_LENGTH : _LENGTH + length])
    if not isinstance(header, dict):
        raise ValueError("no safetensors: the header is no table")
    return header


def _outline(config: DvaeConfig, *, most: int) -> Dvae:
    """The model without its weights; one of more blocks than there are tensors is not made."""
    if config.groups * config.blocks > most:
        raise ConfigError(f"groups={config.groups} of blocks={config.blocks} have more tensors")
    model = outline(config)
    assert isinstance(model, Dvae)
    return model

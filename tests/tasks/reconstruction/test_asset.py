"""A discrete VAE as bytes: it comes back as it was, and forged bytes are refused."""

import json
from typing import Any

import pytest
import torch
from safetensors.torch import save

from saccade.config import to_dict
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.tasks.reconstruction.asset import dvae_asset, read_dvae_asset

TINY = DvaeConfig(image=16, codes=7, width=4, groups=3, blocks=1, code_width=6)


def model() -> Dvae:
    torch.manual_seed(0)
    return TINY.build()


def forged(config: Any, weights: dict[str, torch.Tensor] | None = None) -> bytes:
    return save(weights or dict(model().state_dict()), metadata={"config": json.dumps(config)})


def test_it_comes_back_as_it_was() -> None:
    ours = model().eval()
    again = read_dvae_asset(dvae_asset(ours))
    assert again.config == TINY
    assert not again.training
    images = torch.randint(0, 256, (2, 3, 16, 16)).byte()
    assert torch.equal(again.encode(images), ours.encode(images))
    assert dvae_asset(again) == dvae_asset(ours)


def test_drawing_up_an_outline_changes_no_random_state() -> None:
    raw = dvae_asset(model())
    before = torch.get_rng_state()
    read_dvae_asset(raw)
    assert torch.equal(before, torch.get_rng_state())


GOOD = to_dict(TINY)
WRONG: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no safetensors"),
    "no safetensors": (b"\xff" * 40, "header is longer"),
    "a header that ends early": ((2**40).to_bytes(8, "little") + b"{}", "header is longer"),
    "no JSON": (b"\x04" + bytes(7) + b"nono", "Expecting value"),
    "a header that is no table": (b"\x02" + bytes(7) + b"[]", "no table"),
    "no sizes": (save({"x": torch.zeros(1)}), "no sizes of a discrete VAE"),
    "sizes that cannot be": (forged({**GOOD, "image": 15}), "image=15 is not cut"),
    "unknown settings": (forged({**GOOD, "depth": 3}), "config.depth is not a setting"),
    "other sizes": (
        forged({**GOOD, "codes": 8}),
        r"encoder.output.weight has shape \(7, 16, 1, 1\), and the sizes want \(8, 16, 1, 1\)",
    ),
    "huge sizes": (forged({**GOOD, "codes": 10**9}), "has shape"),
    "sizes beyond counting": (forged({**GOOD, "width": 4 * 10**18}), "no model of such sizes"),
    "endless blocks": (forged({**GOOD, "blocks": 10**9}), "have more tensors"),
    "weights that are missing": (forged(GOOD, {"x": torch.zeros(1)}), "more tensors|has shape"),
    "cut off": (dvae_asset(model())[:-3], "not whole"),
}


@pytest.mark.parametrize("which", WRONG)
def test_bytes_that_are_none_are_refused(which: str) -> None:
    raw, message = WRONG[which]
    with pytest.raises(ValueError, match=message):
        read_dvae_asset(raw)

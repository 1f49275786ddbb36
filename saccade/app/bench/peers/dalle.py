"""DALLE-pytorch, the program that most people draw images with who train a DALL·E of their own.

At the same width its MLPs have half as many weights again as ours, for they are gated. Its
`generate_images` reads text and image from the start for every code: without guidance it forgets to
pass its cache on, even where `use_cache` asks for it (version 1.6.6).
"""

from functools import partial
from importlib import import_module
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.models.image_tokens.dalle import COLUMN, NEIGHBOURS, ROW, DalleConfig, sees_of_image

NEEDS = "dalle_pytorch"
SEES = {ROW: "axial_row", COLUMN: "axial_col", NEIGHBOURS: "conv_like"}
PLACES = 4  # of an image, at which one code each is drawn: all of them would take minutes


def make_dalle(config: DalleConfig) -> Any:
    """Random weights in our sizes. It wants a VAE, which here leaves codes as they are."""
    theirs: Any = import_module(NEEDS)
    vae = theirs.DiscreteVAE(
        image_size=2 * config.grid,
        num_layers=1,
        num_tokens=config.codes,
        codebook_dim=8,
        hidden_dim=8,
    )
    vae.decode = _as_they_are
    return theirs.DALLE(
        dim=config.width,
        vae=vae,
        num_text_tokens=config.vocabulary,
        text_seq_len=config.text,
        depth=config.depth,
        heads=config.heads,
        dim_head=config.width // config.heads,
        attn_types=tuple(SEES[kind] for kind in sees_of_image(config)),
    )


def _as_they_are(codes: Tensor) -> Tensor:
    return codes


def _whatever_is_shown(codes: Tensor, image: Tensor) -> Tensor:
    return codes


class SomeCodes:
    """One code at the middle of each of equal parts of the image, by `generate_images` itself.

    What a code costs grows evenly with how many there are, so that these stand for all.
    """

    def __init__(self, model: Any, text: Int[Tensor, "B T"], begun: Int[Tensor, "B cells"]) -> None:
        side = model.vae.image_size
        self.model, self.text = model, text
        self.image = torch.zeros(len(text), 3, side, side, device=text.device)
        model.vae.get_codebook_indices = partial(_whatever_is_shown, begun)
        cells = begun.shape[1]
        parts = min(PLACES, cells)
        self.places = [(2 * part + 1) * cells // (2 * parts) for part in range(parts)]
        self.share = parts / cells

    def __call__(self) -> list[Int[Tensor, "B n"]]:
        """The codes up to and with each of these."""
        return [self._drawn(place) for place in self.places]

    def _drawn(self, place: int) -> Int[Tensor, "B n"]:
        self.model.image_seq_len = place + 1  # where it stops
        return self.model.generate_images(self.text, img=self.image, num_init_img_tokens=place)

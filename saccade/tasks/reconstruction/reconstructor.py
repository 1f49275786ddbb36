"""Using a trained discrete VAE: an image as codes, and what comes back of it."""

from typing import NamedTuple

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.square import fit_square
from saccade.errors import DataError
from saccade.metrics.reconstruction import psnr, squared_error
from saccade.models.image_tokens.dvae import Dvae
from saccade.tasks.reconstruction.data import ReconstructionSettings

BATCH, GPU_BATCH = 32, 256  # images at a time


class Reconstructed(NamedTuple):
    """The codes of an image row by row, what they stand for, and how much was lost, in decibels."""

    codes: Int[Tensor, "h w"]
    pixels: UInt8[Tensor, "3 H W"]
    psnr: float


class Reconstructor:
    """A model, and how images are made to fit."""

    def __init__(self, model: Dvae, settings: ReconstructionSettings) -> None:
        self.model, self.settings = model.eval(), settings
        self.device = next(model.parameters()).device

    @property
    def batch(self) -> int:
        """How many images are told at a time."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 size size"]:
        """An image upright and square, just as those that were learnt from.

        `name` is for messages, where the image has none of its own.
        """
        size = self.settings.image
        return fit_square(pixels_of(image, name=name, short=2 * size), size, self.settings.fit)

    @torch.inference_mode()
    def reconstruct(self, images: UInt8[Tensor, "B 3 H W"]) -> list[Reconstructed]:
        """Prepared images as codes, and as these tell them. No image depends on another."""
        return [one for some in images.split(self.batch) for one in self._told(some)]

    def _told(self, images: UInt8[Tensor, "B 3 H W"]) -> list[Reconstructed]:
        codes = self.model.codes(images.to(self.device))
        made = self.model.decode(codes).cpu()
        errors = squared_error(images, made).tolist()
        side = self.model.config.grid
        grids = codes.cpu().unflatten(1, (side, side))
        return [
            Reconstructed(grid, pixels, psnr(error))
            for grid, pixels, error in zip(grids, made, errors, strict=True)
        ]

    @torch.inference_mode()
    def decode(self, codes: Int[Tensor, "B cells"]) -> UInt8[Tensor, "B 3 H W"]:
        """The images that codes stand for; refuses what are none."""
        cells, known = self.model.config.grid**2, self.model.config.codes
        if codes.dim() != 2 or codes.shape[1] != cells:
            raise DataError(
                f"codes of shape {tuple(codes.shape)}: an image has {cells}, row by row; give "
                f"(images, {cells})"
            )
        if codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < known:
            strange = next(one for one in codes.flatten().tolist() if not 0 <= one < known)
            raise DataError(f"code {strange} is none: there are 0 to {known - 1}")
        return torch.cat(
            [self.model.decode(some.to(self.device)) for some in codes.split(self.batch)]
        ).cpu()

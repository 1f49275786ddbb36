"""A trained discrete VAE in Python: an image as codes, and the image again from these."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import torch
from jaxtyping import Int, UInt8
from PIL import Image
from torch import Tensor

from saccade.app.kinds.base import LoadedRun, TrainedModel
from saccade.app.kinds.many_images import in_batches
from saccade.app.look.draw.figure import save_by_ending
from saccade.app.look.draw.pairs import draw_pairs
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.images import pillow_image
from saccade.data.images.given import AnyImage
from saccade.errors import DataError
from saccade.models.image_tokens.dvae import Dvae
from saccade.tasks.base import Progress, silent
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.reconstruction.reconstructor import Reconstructor


@dataclass(frozen=True)
class CodesPrediction:
    """An image as codes, row by row, and what comes back of it.

    `given` are its pixels as the model saw them, `pixels` those that the codes stand for; `psnr`
    says in decibels how near they are.
    """

    name: str
    given: UInt8[Tensor, "3 H W"]
    pixels: UInt8[Tensor, "3 H W"]
    codes: Int[Tensor, "h w"]
    psnr: float

    @property
    def image(self) -> Image.Image:
        """What the codes stand for."""
        return pillow_image(self.pixels)

    def save(self, path: str | Path) -> Path:
        """Both images side by side."""
        drawn = draw_pairs([(self.given, self.pixels)])
        return save_by_ending(path, {".png": lambda: png_bytes(drawn)})

    def __repr__(self) -> str:
        rows, columns = self.codes.shape
        return f"CodesPrediction({self.name!r}, {rows} × {columns} codes, psnr={self.psnr:.2f})"


class ReconstructionModel(TrainedModel[Reconstructor]):
    """A trained discrete VAE."""

    @overload
    def predict(self, image: AnyImage) -> CodesPrediction: ...
    @overload
    def predict(self, image: list[Any], *, progress: Progress = ...) -> list[CodesPrediction]: ...
    def predict(
        self, image: Any, *, progress: Progress = silent
    ) -> CodesPrediction | list[CodesPrediction]:
        """Tell an image by codes, or many: files, their bytes, Pillow images, arrays or tensors of
        uint8.
        """
        made: list[CodesPrediction] = []
        for some in in_batches(image, self.tool.batch, self.tool.prepare, progress):
            found = self.tool.reconstruct(torch.stack([given.prepared for given in some]))
            made += [
                CodesPrediction(given.name, given.prepared, one.pixels, one.codes, one.psnr)
                for given, one in zip(some, found, strict=True)
            ]
        return made if isinstance(image, list) else made[0]

    def decode(self, codes: Any) -> list[Image.Image]:
        """The images that codes stand for: a row of them for each, as a list or a tensor."""
        try:
            rows = torch.as_tensor(codes)
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(
                f"codes are no table of numbers ({error}); give a row for each image"
            ) from None
        if rows.is_floating_point() or rows.dtype == torch.bool:
            raise DataError(f"codes of {rows.dtype} are none; give whole numbers")
        return [pillow_image(one) for one in self.tool.decode(rows.long())]


def load_reconstructor(run: LoadedRun) -> ReconstructionModel:
    settings, network = run.recipe.task, run.network
    assert isinstance(settings, ReconstructionSettings)
    assert isinstance(network, Dvae)
    return ReconstructionModel(run.name, run.recipe, Reconstructor(network, settings))

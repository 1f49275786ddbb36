"""How models that tell of images see one: as a grid of vectors."""

from dataclasses import replace

from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.standard_pixels import StandardPixels


class GridEncoder(nn.Module):
    """An image as a grid of vectors, row by row.

    z = encoder((pixels − mean) / deviation)        h × w cells
    """

    def __init__(self, encoder: str, *, stage: int, frozen: bool) -> None:
        """`stage` 0 is the last one."""
        super().__init__()
        self.encoder = replace(encoder_config(encoder), classes=0).build()
        self.stage = self.encoder.checked(stage or None)
        self.encoder.drop_after(self.stage)
        if frozen:
            self.encoder.freeze()
        self.standard = StandardPixels()

    @property
    def channels(self) -> int:
        """How wide the vector of a cell is."""
        return self.encoder.channels(self.stage)

    def forward(self, images: UInt8[Tensor, "B 3 H W"]) -> tuple[Float[Tensor, "B cells C"], Axis]:
        """The vectors of all cells, and where they lie."""
        pixels = self.standard(images)
        grid = self.encoder.grid(pixels, self.stage)
        return grid.flatten(2).mT, self._axis(grid.shape[2], grid.shape[3], pixels.shape[2])

    def _axis(self, height: int, width: int, pixels: int) -> Axis:
        first, apart = (height * share / pixels for share in self.encoder.cells(self.stage))
        return Axis("source", "grid", height, width, first=first, apart=apart)

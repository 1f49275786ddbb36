"""What others call our tensors: for each family a table for each library."""

from collections.abc import Callable

from torch import Tensor, nn

from saccade.models.names import convnext, mvit, swin, vit
from saccade.models.names.table import Names
from saccade.models.vision.convnext import ConvNext
from saccade.models.vision.mvit import Mvit
from saccade.models.vision.swin import Swin
from saccade.models.vision.vit import Vit

LIBRARIES: dict[type[nn.Module], dict[str, Names]] = {
    Vit: vit.LIBRARIES,
    Swin: swin.LIBRARIES,
    Mvit: mvit.LIBRARIES,
    ConvNext: convnext.LIBRARIES,
}
# By the last part of its name, what can be made to fit another grid: its vectors, for so many rows.
RESIZED: dict[str, Callable[[Tensor, int], Tensor | None]] = {
    "positions": vit.fitted,
    "offsets": swin.fitted,
    "down": mvit.fitted,
    "across": mvit.fitted,
}

"""What others call our tensors: for each family a table for each library."""

from collections.abc import Callable

from torch import Tensor, nn

from saccade.models.names import convnext, mobilenet, mvit, resnet, swin, vit
from saccade.models.names.table import Names
from saccade.models.vision.attention_resnet import AttentionResNet
from saccade.models.vision.convnext import ConvNext
from saccade.models.vision.mobilenet import MobileNet
from saccade.models.vision.mvit import Mvit
from saccade.models.vision.resnet import ResNet
from saccade.models.vision.swin import Swin
from saccade.models.vision.vit import Vit

LIBRARIES: dict[type[nn.Module], dict[str, Names]] = {
    ResNet: resnet.LIBRARIES,
    AttentionResNet: resnet.LIBRARIES,
    MobileNet: mobilenet.LIBRARIES,
    Vit: vit.LIBRARIES,
    Swin: swin.LIBRARIES,
    Mvit: mvit.LIBRARIES,
    ConvNext: convnext.LIBRARIES,
}
# What scores the classes, which are others for other data.
HEADS: dict[type[nn.Module], str] = {
    **dict.fromkeys(LIBRARIES, "head"),
    **dict.fromkeys((ResNet, AttentionResNet), "fc"),
    MobileNet: "classifier.1",
}
# By the last part of its name, what can be made to fit another grid: its vectors, for so many rows.
RESIZED: dict[str, Callable[[Tensor, int], Tensor | None]] = {
    "positions": vit.fitted,
    "offsets": swin.fitted,
    "down": mvit.fitted,
    "across": mvit.fitted,
}

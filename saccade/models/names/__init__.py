"""What others call our tensors: for each family a table for each library."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from saccade.models.detection.detr import Detr
from saccade.models.joint.vilbert import Vilbert
from saccade.models.names import (
    bert,
    convnext,
    detr,
    gpt,
    marian,
    mobilenet,
    mvit,
    resnet,
    swin,
    vit,
)
from saccade.models.names.table import Names
from saccade.models.text.bert import Bert
from saccade.models.text.electra import Electra
from saccade.models.text.foreign import ForeignEncoder
from saccade.models.text.gpt import Gpt
from saccade.models.text.transformer import Transformer
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
    Bert: bert.LIBRARIES,
    Electra: bert.DISCRIMINATOR,
    Gpt: gpt.LIBRARIES,
    Transformer: marian.LIBRARIES,
    Detr: detr.LIBRARIES,
    Vilbert: bert.TEXT_STREAM,
}
# Names that a file may have for one tensor, the first of which is in a table.
TIED: dict[type[nn.Module], tuple[tuple[str, ...], ...]] = {
    Bert: bert.TIED,
    Electra: bert.TIED,
    Vilbert: bert.TIED,
    Gpt: gpt.TIED,
    Transformer: marian.TIED,
}


class Head(NamedTuple):
    """What is read off at the end, and is another for other data: parts that are taken whole or
    not at all. One that is not taken starts at zero, or as it was drawn.
    """

    parts: tuple[str, ...]
    zero: bool = True


HEADS: dict[type[nn.Module], Head] = {
    **dict.fromkeys((Vit, Swin, Mvit, ConvNext), Head(("head",))),
    **dict.fromkeys((ResNet, AttentionResNet), Head(("fc",))),
    MobileNet: Head(("classifier.1",)),
    Bert: Head(bert.HEAD, zero=False),
    Detr: Head(detr.HEAD, zero=False),
    Vilbert: Head(("answer", "fit", "choose", "tells", "words"), zero=False),
    ForeignEncoder: Head(("pooler", "classifier", "tagger"), zero=False),
}


def tables(model: nn.Module) -> dict[str, Names]:
    """Those of its family, less what means something else in a model that was built otherwise."""
    found = LIBRARIES.get(type(model), {})
    if not isinstance(model, Detr) or not model.config.anchored:
        return found
    return {
        library: {ours: x for ours, x in names.items() if not ours.startswith(detr.OF_PLAIN)}
        for library, names in found.items()
    }


# By the last part of its name, what fits another grid or length: its vectors, for so many rows.
RESIZED: dict[str, Callable[[Tensor, int], Tensor | None]] = {
    "positions": vit.fitted,
    "table": gpt.fitted,
    "offsets": swin.fitted,
    "down": mvit.fitted,
    "across": mvit.fitted,
}

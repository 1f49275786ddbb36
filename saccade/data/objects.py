"""Objects in an image: a box and a class each. Boxes are shares of the upright image's sides."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class NamedBox(NamedTuple):
    """An object as somebody's data have it.

    `ignored` marks a crowd (COCO) or a difficult object (Pascal VOC): nothing is learnt from it,
    and whether it is found counts neither way.
    """

    label: str
    left: float
    top: float
    right: float
    bottom: float
    ignored: bool = False


class Objects(NamedTuple):
    """All objects of one image; boxes are left, top, right, bottom."""

    boxes: Float[Tensor, "n 4"]
    labels: Int[Tensor, " n"]
    ignored: Bool[Tensor, " n"]

    @classmethod
    def of(cls, found: Sequence[NamedBox], classes: Sequence[str]) -> "Objects":
        """Named boxes with the numbers of their classes."""
        places = {name: number for number, name in enumerate(classes)}
        boxes = torch.tensor([box[1:5] for box in found], dtype=torch.float32).view(-1, 4)
        labels = torch.tensor([places[box.label] for box in found], dtype=torch.long)
        return cls(boxes, labels, torch.tensor([box.ignored for box in found], dtype=torch.bool))

    def learnt_from(self) -> "Objects":
        """Those that are not ignored."""
        kept = ~self.ignored
        return Objects(self.boxes[kept], self.labels[kept], self.ignored[kept])

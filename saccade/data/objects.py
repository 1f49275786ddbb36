"""Objects in an image: a box and a class each. Boxes are shares of the upright image's sides."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.batching.packed_rows import LazyRows


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


@dataclass(frozen=True, eq=False)
class ObjectRows(LazyRows[Objects]):
    """The objects of many images end to end: those of image i from `starts[i]` to `starts[i + 1]`.

    An object takes 25 bytes.
    """

    every: Objects
    starts: Int[Tensor, " boundaries"]

    @classmethod
    def of(cls, rows: Iterable[Sequence[NamedBox]], classes: Sequence[str]) -> "ObjectRows":
        """Named boxes with the numbers of their classes."""
        places = {name: number for number, name in enumerate(classes)}
        boxes, labels, ignored, starts = array("f"), array("q"), array("b"), array("q", [0])
        for row in rows:
            for box in row:
                boxes.extend(box[1:5])
                labels.append(places[box.label])
                ignored.append(box.ignored)
            starts.append(len(labels))
        flat = torch.tensor(boxes, dtype=torch.float32).view(-1, 4)
        numbers = torch.tensor(labels, dtype=torch.long)
        said = torch.tensor(ignored, dtype=torch.bool)
        return cls(Objects(flat, numbers, said), torch.tensor(starts, dtype=torch.long))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectRows):
            return NotImplemented
        mine, others = (*self.every, self.starts), (*other.every, other.starts)
        return all(map(torch.equal, mine, others))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, number: int) -> Objects:
        here = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Objects(*(part[here] for part in self.every))

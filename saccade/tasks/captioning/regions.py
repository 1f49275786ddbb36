"""Which part of an image a word of its caption means, where that is known.

Of shapes everything is known. A user's rows may say it (docs/reasons.md): `boxes` for words,
`mask_file_name` for whoever the group's words mean, `group` for which group that is.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from saccade.data import shapes
from saccade.data.images.decode import upright_size
from saccade.data.images.members import Member
from saccade.data.images.regions import fitted_boxes, fitted_mask
from saccade.data.images.square import Fit
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Mention, Scene
from saccade.errors import DataError
from saccade.metrics.outcomes import WordGroup
from saccade.metrics.pointing import inside_boxes

BOXES, MASK, GROUP = "boxes", "mask_file_name", "group"
_NOUNS = {*shapes.KINDS, *shapes.CONTEXTS, *shapes.GROUPS, shapes.NEUTRAL}
_FIGURES = {*shapes.GROUPS, shapes.NEUTRAL}


class Region(NamedTuple):
    """What a word means: the box it can be seen in, and its very pixels where they are known."""

    word: str
    box: Bool[Tensor, "H W"]
    pixels: Bool[Tensor, "H W"]


Meaning = Callable[[Sequence[str], int], Region | None]


def in_scene(scene: Scene, size: int) -> Meaning:
    """The object that a noun means: the one that has the colour and size said before it.

    Whatever group a caption says, it means the figure; what is not in the scene means nothing.
    """
    masks = torch.from_numpy(shapes.masks(scene, size))

    def meant(words: Sequence[str], place: int) -> Region | None:
        if words[place] not in _NOUNS:
            return None
        number = meant_object(words, place, scene)
        if number is None:
            return None
        pixels = masks[number]
        return Region(words[place], _around(pixels), pixels)

    return meant


def in_row(row: ImageRow, groups: Sequence[WordGroup], size: int, fit: Fit) -> Meaning:
    """What a user's row says that words mean."""
    boxes = marked_boxes(row)
    people = {word for group in groups for word in group.words}
    figure = figure_in_row(row, groups, size, fit)

    def meant(words: Sequence[str], place: int) -> Region | None:
        word = words[place].lower()
        if word in people:
            return None if figure is None else Region(word, figure, figure)
        if word not in boxes:
            return None
        inside = _inside(row, boxes[word], size, fit)
        return Region(word, inside, inside) if inside.any() else None

    return meant


def figure_in_row(
    row: ImageRow, groups: Sequence[WordGroup], size: int, fit: Fit
) -> Bool[Tensor, "H W"] | None:
    """Where the one is whom a group's word means: by its mask, or by boxes for any of the words."""
    mask = row.extras.get(MASK)
    if isinstance(mask, Member):
        found = fitted_mask(mask, *upright_size(row.image), size=size, fit=fit)
        if found is None:
            raise _bad(row, f"the mask {mask.name} has other proportions than its image")
        return found if found.any() else None
    boxes = marked_boxes(row)
    mine = [boxes[word] for group in groups for word in group.words if word in boxes]
    if not mine:
        return None
    found = _inside(row, torch.cat(mine), size, fit)
    return found if found.any() else None


def marked_boxes(row: ImageRow) -> dict[str, Float[Tensor, "boxes 4"]]:
    """The boxes of each word, left, top, right and bottom: in pixels, or in shares up to 1."""
    said = row.extras.get(BOXES)
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise _bad(row, f"{BOXES!r} must be an object of words and lists of boxes")
    found: dict[str, Tensor] = {}
    for word, boxes in cast(dict[str, Any], said).items():
        try:
            found[word.lower()] = torch.tensor(boxes, dtype=torch.float64).view(-1, 4)
        except (TypeError, ValueError, RuntimeError):
            raise _bad(
                row, f"{BOXES!r} of {word[:60]!r} must be lists of four numbers: x1, y1, x2, y2"
            ) from None
    return found


def on_square(row: ImageRow, boxes: Float[Tensor, "boxes 4"], fit: Fit) -> Float[Tensor, "boxes 4"]:
    """Marked boxes where they lie on the square image, as shares of its sides."""
    height, width = upright_size(row.image)
    if (boxes > 1).any():
        boxes = boxes / torch.tensor([width, height, width, height], dtype=boxes.dtype)
    return fitted_boxes(boxes, height, width, fit)


def group_of(row: ImageRow, groups: Sequence[WordGroup]) -> str | None:
    """The group that a row is of, by any of its words; None where it says none of these."""
    said = str(row.extras.get(GROUP, "")).lower()
    return next((group.name for group in groups if said in group.words), None)


@runtime_checkable
class Hidden(Protocol):
    """Images by number with the figure painted out, and whether there was one to paint out."""

    def fingerprint(self) -> str:
        """Changes when what is hidden does."""
        ...

    def __getitem__(
        self, numbers: Int[Tensor, " B"]
    ) -> tuple[UInt8[Tensor, "B 3 H W"], Bool[Tensor, " B"]]: ...


@dataclass(frozen=True)
class HiddenScenes:
    """Scenes of shapes without their figures."""

    images: UInt8[Tensor, "n 3 H W"]

    @classmethod
    def of(cls, scenes: Sequence[Scene], size: int) -> "HiddenScenes":
        images = [torch.from_numpy(shapes.hidden(scene, size)) for scene in scenes]
        return cls(torch.stack(images).permute(0, 3, 1, 2).contiguous())

    def fingerprint(self) -> str:
        return hashlib.sha256(self.images.numpy().tobytes()).hexdigest()

    def __getitem__(
        self, numbers: Int[Tensor, " B"]
    ) -> tuple[UInt8[Tensor, "B 3 H W"], Bool[Tensor, " B"]]:
        return self.images[numbers], torch.ones(len(numbers), dtype=torch.bool)


class HiddenRows:
    """A user's images, marked parts painted over with the mean colour of the rest."""

    def __init__(
        self,
        images: Any,
        rows: Sequence[ImageRow],
        groups: Sequence[WordGroup],
        size: int,
        fit: Fit,
    ) -> None:
        self._pictures, self._rows, self._groups = images, rows, groups
        self._size = size
        self._fit: Fit = fit
        self._known: dict[int, np.ndarray] = {}  # an eighth of a byte to a pixel
        words = {word for group in groups for word in group.words}
        # All are asked: boxes that cannot be read are told of now, not in the middle of training.
        marked = [MASK in row.extras or bool(words & set(marked_boxes(row))) for row in rows]
        if not any(marked):
            raise DataError(
                f"no row marks whom to hide: none has {MASK!r}, or {BOXES!r} for any of "
                f"{', '.join(sorted(words))}; see docs/reasons.md"
            )

    def fingerprint(self) -> str:
        made = hashlib.sha256()
        for row in self._rows:
            mask = row.extras.get(MASK)
            # Its bytes and not its place: data may move while a run is stopped.
            seen = hashlib.sha256(mask.read()).hexdigest() if isinstance(mask, Member) else ""
            made.update(repr((row.extras.get(BOXES), seen)).encode())
        return made.hexdigest()

    def __getitem__(
        self, numbers: Int[Tensor, " B"]
    ) -> tuple[UInt8[Tensor, "B 3 H W"], Bool[Tensor, " B"]]:
        images = self._pictures[numbers].clone()
        gone = torch.stack([self._figure(number) for number in numbers.tolist()])
        for image, part in zip(images, gone):
            if part.any():
                rest = image.flatten(1) if part.all() else image[:, ~part]
                image[:, part] = rest.float().mean(dim=1, keepdim=True).round().to(image)
        return images, gone.flatten(1).any(dim=1)

    def _figure(self, number: int) -> Bool[Tensor, "H W"]:
        size = self._size
        if number not in self._known:
            found = figure_in_row(self._rows[number], self._groups, size, self._fit)
            none = torch.zeros(size, size, dtype=torch.bool)
            self._known[number] = np.packbits((none if found is None else found).numpy())
        bits = np.unpackbits(self._known[number], count=size * size)
        return torch.from_numpy(bits).bool().view(size, size)


def meant_object(words: Sequence[str], place: int, scene: Scene) -> int | None:
    """The one object that a noun with its colour and size fits."""
    if words[place] in _FIGURES:
        return None if scene.group is None else scene.objects.index(scene.main)
    before = list(reversed(words[max(0, place - 2) : place]))
    colour = before[0] if before and before[0] in shapes.COLOURS else None
    sized = before[1] if colour and before[1:] and before[1] in shapes.SIZES else None
    named = Mention(words[place], colour, sized)
    fitting = [number for number, thing in enumerate(scene.objects) if named.fits(thing)]
    return fitting[0] if len(fitting) == 1 else None


def _around(pixels: Bool[Tensor, "H W"]) -> Bool[Tensor, "H W"]:
    """The smallest box that holds these pixels."""
    box = torch.zeros_like(pixels)
    rows, columns = pixels.any(dim=1).nonzero()[:, 0], pixels.any(dim=0).nonzero()[:, 0]
    if len(rows):
        box[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    return box


def _inside(
    row: ImageRow, boxes: Float[Tensor, "boxes 4"], size: int, fit: Fit
) -> Bool[Tensor, "H W"]:
    return inside_boxes(on_square(row, boxes, fit), (size, size))


def _bad(row: ImageRow, why: str) -> DataError:
    return DataError(f"{row.file}, row {row.line}: {why}")

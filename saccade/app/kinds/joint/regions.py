"""Who says where the regions of an image are: a detector, a file, or whoever asks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from saccade.app.kinds.base import Chosen, HeldOut
from saccade.app.kinds.detection.model import DetectionModel
from saccade.data.images.given import AnyImage, size_of
from saccade.data.readers.images.boxes.checks import CORNERS, checked_box
from saccade.data.readers.images.region_files import (
    PixelBox,
    likeliest,
    pixel_box,
    read_region_file,
)
from saccade.data.readers.report import BadRow
from saccade.errors import ConfigError, DataError
from saccade.printable import printable
from saccade.tasks.joint.detected import find_regions
from saccade.tasks.joint.pairs import PairTool, RegionBoxes
from saccade.train.storage.folder import RunFolder

Regions = Callable[[AnyImage, str], RegionBoxes | None]  # of an image and its name


def regions_by(
    name: str, tool: PairTool, detector: str | None, boxes: Path | None, device: str
) -> Regions:
    """Who says it, as a command names them; refuses both, and neither where one is needed."""
    given = [one for one in (detector, boxes) if one is not None]
    if not tool.wants_boxes:
        if given:
            raise ConfigError(
                f"{name} looks at the cells of a grid, not at boxes; leave --detector and --boxes "
                "out"
            )
        return lambda image, called: None
    if len(given) != 1:
        what = "both were given" if given else "nobody says where they are"
        raise ConfigError(
            f"{name} looks at boxes, and {what}: name a detector with --detector RUN, or a file of "
            "boxes with --boxes FILE"
        )
    return _detected(detector, device) if detector is not None else _from_file(Path(str(boxes)))


def _detected(run: str, device: str) -> Regions:
    from saccade.app.api import load
    from saccade.app.kinds import kind_for

    if kind_for(RunFolder(Path(run)).load_recipe().task).name != "detection":
        raise ConfigError(
            f"--detector {run} finds no objects; name a run that does, such as DETR's"
        )
    model: DetectionModel = load(run, device=device)

    def regions(image: AnyImage, called: str) -> RegionBoxes:
        (found,) = find_regions(model.tool, model.tool.prepare(image, name=called)[None])
        best = found.chances.argmax(dim=1).tolist()
        return RegionBoxes(found.boxes, tuple(model.classes[kind] for kind in best))

    return regions


def _from_file(path: Path) -> Regions:
    file = read_region_file(path)
    return lambda image, called: in_shares(
        likeliest(file.of(called)),
        size_of(image, name=called),
        where=f"{printable(path)}, {printable(called)}",
    )


def in_shares(boxes: Sequence[PixelBox], size: tuple[int, int], *, where: str) -> RegionBoxes:
    """Boxes in pixels of an image of this height and width, as shares of its sides."""
    for one in boxes:
        try:
            checked_box(one.label, one.box, CORNERS, size)
        except BadRow as bad:
            raise DataError(f"{where}: {bad}") from None
    height, width = size
    sides = torch.tensor([width, height, width, height], dtype=torch.float32)
    corners = torch.tensor([one.box for one in boxes], dtype=torch.float32).view(-1, 4)
    return RegionBoxes((corners / sides).clamp(0, 1), tuple(one.label for one in boxes))


def given_regions(boxes: Any, size: tuple[int, int]) -> RegionBoxes:
    """Boxes as a program gives them: rows of left, top, right and bottom in pixels."""
    if not isinstance(boxes, Iterable):
        raise DataError(f"boxes={boxes!r} must be rows of left, top, right and bottom in pixels")
    rows: list[Any] = boxes.tolist() if isinstance(boxes, torch.Tensor) else list(boxes)
    found = [PixelBox(pixel_box(one, f"boxes[{number}]")) for number, one in enumerate(rows)]
    return in_shares(found, size, where="boxes")


@dataclass(frozen=True, kw_only=True)
class HeldOutPairs(HeldOut):
    """Which data to score on, and who says where their regions are.

    Args:
        boxes: a file that says where the regions of other data are, as in training.
        detector: a run that finds them, as in training.
    """

    boxes: str = ""
    detector: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.boxes or self.detector) and not self.data:
            raise ConfigError(
                "--boxes and --detector are of other images than the run's own; name these with "
                "--data, too"
            )

    def settings(self, own: Chosen, **more: Any) -> Chosen:
        """In place of the run's own file or detector, which know nothing of other images."""
        if self.boxes or self.detector:
            more = {"boxes": self.boxes, "detector": self.detector, **more}
        return super().settings(own, **more)

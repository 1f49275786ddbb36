"""Who says where the regions of the user's images lie: their rows, else a file or a detector."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.images.members import Member
from saccade.data.readers.images.boxes.checks import CORNERS, Size, checked_box
from saccade.data.readers.images.boxes.rows import header_size
from saccade.data.readers.images.region_files import (
    PixelBox,
    RegionFile,
    likeliest,
    read_region_file,
)
from saccade.data.readers.report import BadRow, Problem, collect, count_by_kind, counted
from saccade.errors import DataError
from saccade.printable import printable
from saccade.tasks.base import OpenRun, Progress
from saccade.tasks.detection.detector import ObjectDetector
from saccade.tasks.joint.data import (
    UNKNOWN,
    FoundClasses,
    JointSettings,
    Sighted,
    square_boxes,
)
from saccade.tasks.joint.detected import detected, found_by_what, opened_detector


class _FileBox(NamedTuple):
    """A good box of an image, by its corners on the square one, and its class by number."""

    image: int
    box: tuple[float, ...]
    kind: int


class RegionPlaces:
    """What settings name to say where regions are; opened when it is first needed.

    Images whose rows give boxes keep them. `option` is what a message calls the detector.
    """

    def __init__(
        self, settings: JointSettings, open_run: OpenRun, option: str = "--detector"
    ) -> None:
        self.settings, self._open_run, self._option = settings, open_run, option

    @cached_property
    def _detector(self) -> ObjectDetector:
        run = self._open_run(self.settings.detector, self._option)
        return opened_detector(run, self._option)

    @cached_property
    def _file(self) -> RegionFile:
        return read_region_file(Path(self.settings.boxes))

    def of(self, settings: JointSettings) -> "RegionPlaces":
        """What other settings name."""
        return RegionPlaces(settings, self._open_run, self._option)

    def __call__(self, sighted: Sighted, progress: Progress) -> Sighted:
        """Images with their regions. Those of which nobody knows any are seen as a whole."""
        bare = (sighted.counts == 0).nonzero()[:, 0]
        named = self.settings.boxes or self.settings.detector
        if not named or not sighted.files or not len(bare):
            return sighted
        files = [sighted.files[number] for number in bare.tolist()]
        if self.settings.boxes:
            return self._from_file(sighted, bare, files)
        return self._detected(sighted, bare, files, progress)

    def _detected(
        self, sighted: Sighted, bare: Int[Tensor, " n"], files: list[Member], progress: Progress
    ) -> Sighted:
        detector, run = self._detector, printable(self.settings.detector)
        rows = detected(detector, files, self.settings.fit, progress)
        counts = rows.all("counts")
        if not counts.any():
            raise DataError(
                f"{run} finds nothing in any of {sighted.report}; train it on such images, name "
                "another detector, or pass --model.regions cells"
            )
        boxes = rows.all("boxes").split(counts.tolist())
        first = torch.full((len(sighted),), UNKNOWN)
        first[bare] = counts.cumsum(0) - counts
        nothing = f"{run} finds nothing in"
        made = _placed(sighted, bare, list(boxes), nothing=nothing)
        return replace(
            made,
            names=detector.classes,
            found=FoundClasses(rows, first),
            basis=f"{sighted.fingerprint()} {found_by_what(detector)}",
        )

    def _from_file(self, sighted: Sighted, bare: Int[Tensor, " n"], files: list[Member]) -> Sighted:
        file, names = self._file, self._file.labels
        given = [likeliest(file.find(one.name) or file.find(str(one.path)) or []) for one in files]
        if not any(given):
            raise DataError(
                f"{printable(file.path)} has boxes of none of {sighted.report}; name a file that "
                "has, or a detector with --detector RUN"
            )
        rows = _checked(file, given, files, names)
        good, skipped = collect(
            rows, [file.path.name], _good_and_bad, skip_bad=self.settings.skip_bad
        )
        boxes: list[list[tuple[float, ...]]] = [[] for _ in files]
        kinds: list[list[int]] = [[] for _ in files]
        for one in good:
            boxes[one.image].append(one.box)
            kinds[one.image].append(one.kind)
        fitted = [
            square_boxes(some, header_size(member), self.settings.fit)
            for some, member in zip(boxes, files)
        ]
        nothing = f"{printable(file.path.name)} has no boxes of"
        made = _placed(sighted, bare, fitted, [torch.tensor(k).long() for k in kinds], nothing)
        bad = counted(sum(skipped.values()), "bad region")
        told = [f"{printable(file.path.name)}: {bad} left out ({count_by_kind(skipped)})"]
        return replace(made, names=names, notes=(*made.notes, *told * bool(skipped)))


def _placed(
    sighted: Sighted,
    bare: Int[Tensor, " n"],
    boxes: list[Float[Tensor, "_ 4"]],
    kinds: list[Int[Tensor, " _"]] | None = None,
    nothing: str = "",
) -> Sighted:
    """With boxes of the bare images, and a line about those that stay so."""
    every, known = list[Tensor](), list[Tensor]()
    where = {number: place for place, number in enumerate(bare.tolist())}
    for number, count in enumerate(sighted.counts.tolist()):
        place = where.get(number)
        own = sighted.boxes[number, :count] if place is None else boxes[place]
        of_class = None if place is None or kinds is None else kinds[place]
        every.append(own)
        known.append(torch.full((len(own),), UNKNOWN) if of_class is None else of_class)
    made = Sighted.of(sighted.images, every, known, sighted.names, sighted.report)
    still = int((made.counts == 0).sum())
    told = f"{nothing} {still:,} of {counted(len(made), 'image')}: each is seen as a whole"
    return replace(made, files=sighted.files, notes=(told,) * (still > 0))


def _checked(
    file: RegionFile, given: list[list[PixelBox]], files: list[Member], names: tuple[str, ...]
) -> Iterator[_FileBox | Problem]:
    """The boxes of each image, or what is wrong with one."""
    numbers = {name: number for number, name in enumerate(names)}
    for image, (boxes, member) in enumerate(zip(given, files)):
        size: Size = header_size(member)
        for one in boxes:
            try:
                good = checked_box(one.label, one.box, CORNERS, size).box
            except BadRow as bad:
                yield Problem(file.path.name, one.place, str(bad))
                continue
            sides = good.left, good.top, good.right, good.bottom
            yield _FileBox(image, sides, numbers.get(one.label, UNKNOWN))


def _good_and_bad(
    good: Sequence[_FileBox],
    problems: list[Problem],
    duplicates: int,
    files: list[str],
    kinds: dict[str, int],
) -> tuple[Sequence[_FileBox], dict[str, int]]:
    return good, kinds

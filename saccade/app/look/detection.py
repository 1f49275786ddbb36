"""The look document of objects: where each was looked for, and what is truly there."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.axis import grid_entry
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.classification import MEAN_OF_HEADS
from saccade.app.look.document import (
    AxisEntry,
    FoundEntry,
    LookDocument,
    LookEntry,
    MarkedBox,
    ObjectsEntry,
    SiteEntry,
    TrueEntry,
)
from saccade.app.look.draw.boxes import colour_of
from saccade.app.look.images import SIDES, ShownImage, image_entries, names_of
from saccade.app.look.matrix import layer_heads
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.site import EIGHT_BITS
from saccade.data.objects import Objects
from saccade.metrics.box_matching import taken_objects
from saccade.metrics.detection import FoundObjects
from saccade.tasks.base import Progress, silent
from saccade.tasks.detection.detector import FoundObject, ObjectDetector
from saccade.tasks.detection.maps import MOST, POINTS, ObjectMaps, object_maps

OBJECTS, IMAGE, GRID_POINTS = "objects", "image", "points"
TEXT_BYTES = 4 / 3  # characters to a byte
QUERIES_SHARE = 0.4  # of the budget
NO_ENCODER = "where the points of an image look is kept for few images at a time"
NO_POINTS = "where the points of an image look was left out, for it does not fit the budget"


@dataclass(frozen=True)
class BoxedImage:
    """An image to look at, and the objects in it where they are known."""

    shown: ShownImage
    truth: Objects | None = None


def objects_text(labels: Sequence[str]) -> str:
    """How many there are of each, as 2 circles, 1 star."""
    counts = {label: labels.count(label) for label in labels}
    parts = [f"{n} {label if n == 1 else _plural(label)}" for label, n in counts.items()]
    return ", ".join(parts) or "nothing"


def _plural(noun: str) -> str:
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def object_look(
    model: NamedModel[ObjectDetector], subject: BoxedImage, how: LookSettings, select: Selection
) -> ImageLook:
    """Where each object was looked for: a film with a frame for each.

    Layers are those in which objects look at the image; the last by default, as in the paper.
    """
    tool, shown = model.tool, subject.shown
    maps = object_maps(tool, shown.seen_by(tool), points=0)
    name, heads = layer_heads(maps.across, select)
    drawn = heads.mean(dim=0) if select.head is None else heads[select.head]
    told = [one for one in maps.found if one.score >= how.threshold]
    select.check_rows(len(told))
    which = "mean of its heads" if select.head is None else f"head {select.head}"
    return ImageLook(
        rows=[f"{one.label} {one.score:.2f}" for one in told],
        maps=drawn[[maps.row(one) for one in told]],
        lattice=maps.cells,
        image=shown.pixels,
        title=f"{model.name}: where it looked on {shown.name}, {name}, {which}",
        caption=objects_text([one.label for one in told]),
        document=lambda: object_document([model], [subject], how),
        boxes=tuple(MarkedBox(label=one.label, box=_rounded(one.box)) for one in told),
        colours=tuple(colour_of(number) for number in range(len(told))),
    )


def object_document(
    models: Sequence[NamedModel[ObjectDetector]],
    subjects: Sequence[BoxedImage],
    how: LookSettings,
    *,
    progress: Progress = silent,
) -> LookDocument:
    """What one model or two find in images, and where they looked for it."""
    blobs, looks = Blobs(), list[LookEntry]()
    few = len(subjects) <= SIDES[0][0]
    if not few:
        blobs.note(NO_ENCODER)
    room = how.budget / (len(models) * len(subjects))
    for model in models:
        for number, subject in enumerate(subjects):
            pixels = subject.shown.seen_by(model.tool)
            maps = object_maps(model.tool, pixels, points=POINTS if few else 0)
            if maps.left_out:
                blobs.note(f"of an image the {MOST} likeliest objects are kept")
            looks.append(_entry(model, subject, maps, how, room, blobs, number))
            progress(len(looks), len(models) * len(subjects))
    shown, names = [one.shown for one in subjects], [model.name for model in models]
    entries = image_entries(shown, [model.tool for model in models])
    return LookDocument.of("detection", names, names_of(shown), looks, blobs, entries)


def _entry(
    model: NamedModel[ObjectDetector],
    subject: BoxedImage,
    maps: ObjectMaps,
    how: LookSettings,
    room: float,
    blobs: Blobs,
    number: int,
) -> LookEntry:
    told = [one.label for one in maps.found if one.score >= how.threshold]
    names = [next(o.label for o in maps.found if o.query == query) for query in maps.queries]
    words = [(place, place + 1) for place in range(len(names))]
    axes = {
        OBJECTS: AxisEntry(tokens=names, words=words, prompt=len(names)),
        IMAGE: AxisEntry(kind="grid", grid=grid_entry(maps.cells)),
    }
    if maps.inner:
        axes[GRID_POINTS] = AxisEntry(kind="grid", grid=grid_entry(maps.points))
    return LookEntry(
        run=model.name,
        label="best",
        text=objects_text(told),
        score=round(maps.found[0].score, 6),
        log_probability=None,
        finished=None,
        axes=axes,
        sites=_sites(maps, room, blobs),
        image=number,
        objects=_objects(maps, subject.truth, model.tool.classes, how.threshold),
    )


def _objects(
    maps: ObjectMaps, truth: Objects | None, classes: Sequence[str], threshold: float
) -> ObjectsEntry:
    matched = (
        [(None, False)] * len(maps.found) if truth is None else taken(maps.found, truth, classes)
    )
    found = [
        FoundEntry(
            label=one.label,
            score=round(one.score, 6),
            box=_rounded(one.box),
            row=maps.row(one),
            takes=takes,
            excused=excused,
        )
        for one, (takes, excused) in zip(maps.found, matched)
    ]
    there = truth and [
        TrueEntry(label=classes[int(label)], box=_rounded(box.tolist()), ignored=bool(ignored))
        for box, label, ignored in zip(*truth)
    ]
    return ObjectsEntry(found=found, truth=there, threshold=threshold)


def taken(
    found: Sequence[FoundObject], truth: Objects, classes: Sequence[str]
) -> list[tuple[int | None, bool]]:
    """The true object that each found one takes, and whether it lies in one that is ignored: the
    same wherever the threshold is.
    """
    boxes = torch.tensor([one.box for one in found]).view(-1, 4)
    labels = torch.tensor([classes.index(one.label) for one in found], dtype=torch.long)
    scores = torch.tensor([one.score for one in found])
    takes, excused = taken_objects(FoundObjects(boxes, labels, scores), truth)
    return [(None if n < 0 else n, crowd) for n, crowd in zip(takes.tolist(), excused.tolist())]


def _sites(maps: ObjectMaps, room: float, blobs: Blobs) -> list[SiteEntry]:
    """Those of the objects, and those of the image's points where there is room for them."""
    across = {name: one.flatten(2) for name, one in maps.across.items()}
    queries, kind = _fitting(across, QUERIES_SHARE * room, blobs)
    sites = [_site(name, OBJECTS, IMAGE, one, kind, blobs) for name, one in queries.items()]
    sites += [_site(name, OBJECTS, OBJECTS, one, "f16", blobs) for name, one in maps.among.items()]
    inner = {name: one.flatten(2) for name, one in maps.inner.items()}
    if not inner:
        return sites
    points, kind = _fitting(inner, (1 - QUERIES_SHARE) * room, blobs)
    if _bytes(points, kind) > (1 - QUERIES_SHARE) * room:
        blobs.note(NO_POINTS)
        return sites
    return sites + [
        _site(name, GRID_POINTS, IMAGE, one, kind, blobs) for name, one in points.items()
    ]


Maps = dict[str, Float[Tensor, "_ rows cells"]]


def _fitting(maps: Maps, room: float, blobs: Blobs) -> tuple[Maps, Kind]:
    """16 bits a weight if there is room, else 8, else 8 of the mean over the heads of a layer."""
    if _bytes(maps, "f16") <= room:
        return maps, "f16"
    blobs.note(EIGHT_BITS)
    if _bytes(maps, "u8") <= room:
        return maps, "u8"
    blobs.note(MEAN_OF_HEADS)
    return {name: one.mean(dim=0, keepdim=True) for name, one in maps.items()}, "u8"


def _bytes(maps: Maps, kind: Kind) -> float:
    return sum(one.numel() for one in maps.values()) * TEXT_BYTES * (2 if kind == "f16" else 1)


def _site(
    name: str, rows: str, columns: str, values: Float[Tensor, "N T S"], kind: Kind, blobs: Blobs
) -> SiteEntry:
    return SiteEntry(
        name=name,
        rows=rows,
        columns=columns,
        heads=len(values),
        causal=False,
        reach=None,
        cell=[1, 1],
        arrays={"weights": blobs.add(values, kind)},
    )


def _rounded(box: Sequence[float]) -> list[float]:
    return [round(side, 5) for side in box]

"""The look document of classes: maps of what in each image its class came from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import grid_entry
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.document import AxisEntry, ClassEntry, LookDocument, LookEntry, SiteEntry
from saccade.app.look.images import SIDES, ShownImage, image_entries, names_of
from saccade.app.look.matrix import layer_heads
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks.base import Progress, silent
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.maps import ClassMaps, ImageMap, MapKind, class_maps, map_kinds

BATCH = 16  # images whose maps are made together
GUESSES = 5
CLASS = "class"  # the one row of every map
TITLES: dict[MapKind, str] = {
    "relevance": "relevance",
    "rollout": "rollout",
    "grad_cam": "Grad-CAM",
}
MEAN_OF_HEADS = "the heads of each layer are shown as their mean, for there are many images"
TEXT_BYTES = 2 * 4 / 3  # characters to a weight: two bytes


@dataclass(frozen=True)
class Subject:
    """An image to look at, and its classes where they are known."""

    shown: ShownImage
    truth: tuple[str, ...] = ()


Map = Float[Tensor, "N h w"]


def class_number(tool: ImageClassifier, name: str | None) -> int | None:
    """The class whose traces are asked for; None: the one that the model says."""
    if name is None:
        return None
    if name not in tool.classes.names:
        some = ", ".join(tool.classes.names[:10])
        more = ", …" * (len(tool.classes.names) > 10)
        raise ConfigError(f"of={name!r} is no class of this model; there are: {some}{more}")
    return tool.classes.names.index(name)


def maps_of(
    tool: ImageClassifier, images: UInt8[Tensor, "B 3 K K"], of: int | None, *, every: bool = True
) -> ClassMaps:
    """All maps of some prepared images, or all but those of single layers."""
    model = tool.model
    assert isinstance(model, ImageEncoder)
    kinds: list[MapKind] = [kind for kind in map_kinds(model) if every or kind != "attention"]
    target = None if of is None else torch.full((len(images),), of, device=tool.device)
    return class_maps(model, tool.shown(images), target, kinds=kinds)


def named_maps(found: ClassMaps, row: int) -> dict[str, tuple[Map, ImageMap]]:
    """The maps of one image by name, the most telling first; each head's sums to one."""
    maps = {TITLES[kind]: found.maps[kind] for kind in TITLES if kind in found.maps}
    named: dict[str, tuple[Map, ImageMap]] = {}
    for name, one in (*maps.items(), *found.attention.items()):
        values = one.values[row].detach().float().cpu()
        values = values if values.dim() == 3 else values[None]
        total = values.sum(dim=(1, 2), keepdim=True)
        named[name] = values / torch.where(total > 0, total, 1.0), one
    return named


def class_look(
    model: NamedModel[ImageClassifier],
    subject: Subject,
    how: LookSettings,
    select: Selection,
) -> ImageLook:
    """What in an image its class came from: a film with a frame for each kind of map, and for each
    layer what it looks at; of one layer a frame for each head.
    """
    tool, shown = model.tool, subject.shown
    pixels = shown.seen_by(tool)
    found = maps_of(tool, pixels[None], class_number(tool, how.of))
    named = named_maps(found, 0)
    if select.layer is None and select.head is not None:
        raise ConfigError(f"head={select.head} is of a layer; name that too, as --layer 0")
    if select.layer is not None:
        name, heads = layer_heads({layer: named[layer][0] for layer in found.attention}, select)
        one = named[name][1]
        chosen = range(len(heads)) if select.head is None else (select.head,)
        named = {f"{name}, head {head}": (heads[head][None], one) for head in chosen}
    finest = max((one for _, one in named.values()), key=lambda one: one.lattice.height)
    target, chances = int(found.target[0]), tool.as_probabilities(found.scores)[0].cpu()
    label = tool.classes.names[target]
    return ImageLook(
        rows=list(named),
        maps=torch.stack(
            [
                resampled(values.mean(dim=0), one.lattice, finest.lattice)
                for values, one in named.values()
            ]
        ),
        lattice=finest.lattice,
        image=shown.pixels,
        title=f"{model.name}: what made {shown.name} {label}",
        caption=f"{label} {chances[target]:.3f}",
        document=lambda: class_document([model], [subject], how),
        boxes=shown.boxes,
    )


def resampled(values: Float[Tensor, "h w"], cells: Lattice, onto: Lattice) -> Float[Tensor, "H W"]:
    """A map at the middles of other cells, with straight lines in between, and the same sum."""
    if cells == onto:
        return values
    down, across = (
        torch.from_numpy(np.stack([np.interp(b, a, one) for one in np.eye(len(a))], axis=1)).float()
        for a, b in ((cells.down, onto.down), (cells.across, onto.across))
    )
    fine = down @ values @ across.mT
    return fine * (values.sum() / fine.sum().clamp(min=1e-12))


def class_document(
    models: Sequence[NamedModel[ImageClassifier]],
    subjects: Sequence[Subject],
    how: LookSettings,
    *,
    progress: Progress = silent,
) -> LookDocument:
    """What one model or two take images for, and what in each the class came from."""
    blobs, looks = Blobs(), list[LookEntry]()
    room = how.budget / (len(models) * len(subjects))
    every = len(subjects) <= SIDES[0][0]
    if not every:
        blobs.note(f"the maps of single layers are kept for up to {SIDES[0][0]} images at a time")
    done = 0
    for model in models:
        asked = class_number(model.tool, how.of)
        for first in range(0, len(subjects), BATCH):
            some = subjects[first : first + BATCH]
            pixels = torch.stack([one.shown.seen_by(model.tool) for one in some])
            found = maps_of(model.tool, pixels, asked, every=every)
            for row, one in enumerate(some):
                looks.append(_entry(model, one, found, row, room, blobs, first + row))
            done += len(some)
            progress(done, len(models) * len(subjects))
    shown, names = [one.shown for one in subjects], [model.name for model in models]
    entries = image_entries(shown, [model.tool for model in models])
    return LookDocument.of("classification", names, names_of(shown), looks, blobs, entries)


def _entry(
    model: NamedModel[ImageClassifier],
    subject: Subject,
    found: ClassMaps,
    row: int,
    room: float,
    blobs: Blobs,
    number: int,
) -> LookEntry:
    tool = model.tool
    chances = tool.as_probabilities(found.scores)[row].cpu()
    guesses = tool.guesses(chances, GUESSES)
    target = int(found.target[row])
    axes, sites = _sites(named_maps(found, row), set(found.attention), room, blobs)
    label, said = tool.classes.names[target], tool.said(chances)
    return LookEntry(
        run=model.name,
        label="best",
        text=", ".join(said),
        score=round(guesses[0].probability, 6),
        log_probability=None,
        finished=None,
        axes={CLASS: AxisEntry(tokens=[label], words=[(0, 1)], prompt=1), **axes},
        sites=sites,
        image=number,
        classes=ClassEntry(
            said=said,
            guesses=[(guess.label, round(guess.probability, 6)) for guess in guesses],
            truth=list(subject.truth),
            target=label,
            probability=round(float(chances[target]), 6),
        ),
    )


def _sites(
    named: dict[str, tuple[Map, ImageMap]], layers: set[str], room: float, blobs: Blobs
) -> tuple[dict[str, AxisEntry], list[SiteEntry]]:
    """Every map as a site with one row; heads are averaged where there is no room for them."""
    cells = sum(values.numel() for values, _ in named.values())
    average = cells * TEXT_BYTES > room
    if average:
        blobs.note(MEAN_OF_HEADS)
    axes, sites = dict[str, AxisEntry](), list[SiteEntry]()
    for name, (values, one) in named.items():
        values = values.mean(dim=0, keepdim=True) if average else values
        grid = grid_entry(one.lattice)
        columns = f"cells of {grid.height}×{grid.width}, {grid.down[0]:g}"
        axes[columns] = AxisEntry(kind="grid", grid=grid)
        weights = blobs.add(values.flatten(1)[:, None], "f16")
        sites.append(
            SiteEntry(
                name=name,
                rows=CLASS,
                columns=columns,
                heads=len(values),
                causal=False,
                reach=None,
                cell=[1, 1],
                arrays={"weights": weights},
                derived=name not in layers,
            )
        )
    return axes, sites

"""Which regions each word of a text looked at, as a film over the image, and as a table."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.axis import grid_entry
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.document import LookDocument, MarkedBox
from saccade.app.look.draw.figure import MatrixLook, save_by_ending
from saccade.app.look.joint.seen import REGIONS, WORDS, SeenPair, seen_pair
from saccade.app.look.joint.subject import PairSubject
from saccade.app.look.matrix import Side, one_matrix, site_named
from saccade.app.look.settings import NamedModel, Selection
from saccade.data.images.lattice import Lattice
from saccade.tasks.joint.pairs import BEST, PairAnswer, PairTool

FINE = 48  # cells to a side of the map that boxes are drawn on


@dataclass(frozen=True)
class PairLook:
    """Which regions each word looked at: a film of the words over the image, and the numbers."""

    film: ImageLook
    matrix: MatrixLook = field(repr=False)
    answer: PairAnswer = field(repr=False)
    seen: SeenPair = field(repr=False)

    @property
    def caption(self) -> str:
        """What was asked, and what was said."""
        return self.film.caption

    def save(self, path: str | Path, *, cells: bool = False) -> Path:
        """Write the film, the page or the numbers, by the file's ending."""
        if Path(path).suffix == ".json":
            return save_by_ending(path, {".json": self._json})
        return self.film.save(path, cells=cells)

    def text(self, *, colour: bool, width: int | None = None) -> str:
        """For a terminal: each word, and the boxes or the part of the image that it looked at."""
        if self.seen.axis.kind == "grid":
            return self.film.text(colour=colour)
        return self.matrix.text(colour=colour, width=width)

    def _repr_png_(self) -> bytes:
        """What a notebook shows where it shows no pages."""
        return self.film._repr_png_()  # pyright: ignore[reportPrivateUsage]

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        return self.film._repr_html_()  # pyright: ignore[reportPrivateUsage]

    def _json(self) -> bytes:
        seen, matrix = self.seen, self.matrix
        regions = [
            {"label": label, "box": [round(x, 5) for x in box]}
            for label, box in zip(seen.labels, seen.boxes.tolist())
        ]
        grid = None if seen.axis.kind != "grid" else grid_entry(seen.axis.lattice)
        weights = [[round(weight, 6) for weight in row] for row in matrix.weights.tolist()]
        table = {"title": matrix.title, "caption": matrix.caption, "words": matrix.rows}
        table |= {"regions": regions, "grid": grid, "weights": weights}
        return json.dumps(table, default=vars, ensure_ascii=False).encode()


def pair_look(
    model: NamedModel[PairTool],
    subject: PairSubject,
    select: Selection,
    document: Callable[[], LookDocument],
    of: str | None = None,
) -> PairLook:
    """At the last layer in which words look at regions, the mean of its heads, by default."""
    seen = seen_pair(model.tool, subject, best=BEST, of=of)
    layers = [name for name, sides in seen.sides.items() if sides == (WORDS, REGIONS)]
    name = layers[-1] if select.layer is None else site_named(select.layer, layers, layers)
    weights, which = one_matrix({name: seen.sites[name]}, select)
    side = Side.of(seen.axes(model.tool)[WORDS])
    select.check_rows(len(side.words))
    words, down = side.texts, side.membership()
    if select.units == "pieces":
        words, down = side.pieces, torch.eye(len(side.pieces), dtype=torch.float64)
    rows = (down / down.sum(dim=1, keepdim=True) @ weights.double()).float()
    title = f"{model.name}: which regions words looked at, {name}, {which}"
    caption = f"{seen.text.text} → {said(seen)}"
    maps, lattice = over_image(seen, rows)
    film = ImageLook(
        rows=words,
        maps=maps,
        lattice=lattice,
        image=subject.shown.pixels,
        title=title,
        caption=caption,
        document=document,
        boxes=_marked(seen),
        peaks=_heaviest(seen, rows),
    )
    matrix = MatrixLook(words, seen.labels, rows, title, caption, document)
    return PairLook(film, matrix, seen.answer, seen)


def said(seen: SeenPair) -> str:
    """What a model said, in short, and how surely."""
    answer = seen.answer
    if answer.sentences:
        chance = dict(answer.guesses)[seen.text.text]
        return f"{'chosen' if seen.text.text == answer.text else 'not chosen'} {chance:.3f}"
    if answer.region is not None:
        return f"{seen.labels[answer.region]} {answer.score:.3f}"
    if answer.blanks:
        return f"{answer.text} (fits {answer.score:.3f})"
    if answer.fits is not None:
        return f"fits {answer.fits:.3f}"
    return f"{answer.text} {answer.score:.3f}"


def over_image(
    seen: SeenPair, rows: Float[Tensor, "words n"]
) -> tuple[Float[Tensor, "words h w"], Lattice]:
    """Maps of what each word looked at; where boxes lie over one another, the heaviest counts."""
    axis = seen.axis
    if axis.kind == "grid":
        return rows[:, axis.special :].unflatten(1, (axis.height, axis.width)), axis.lattice
    middles = (torch.arange(FINE) + 0.5) / FINE
    left, top, right, bottom = seen.boxes[1:].T[:, :, None]  # (boxes, 1) each
    across = (left <= middles) & (middles <= right)
    down = (top <= middles) & (middles <= bottom)
    inside = down[:, :, None] & across[:, None]  # (boxes, FINE, FINE)
    maps = torch.zeros(len(rows), FINE, FINE)
    for box, weight in zip(inside, rows[:, 1:].T):
        maps = torch.maximum(maps, box * weight[:, None, None])
    return maps, Lattice(FINE, FINE, 0.5, 1.0)


def _heaviest(seen: SeenPair, rows: Float[Tensor, "words n"]) -> tuple[list[float], ...]:
    """The box that each word looked at most; it may be the whole image. Cells need none."""
    if seen.axis.kind == "grid":
        return ()
    return tuple(seen.boxes[int(at)].tolist() for at in rows.argmax(dim=1))


def _marked(seen: SeenPair) -> tuple[MarkedBox, ...]:
    """The regions on the first frame: boxes, or the cell that a phrase means."""
    every = list(zip(seen.labels, seen.boxes.tolist()))
    if seen.axis.kind != "grid":
        return tuple(MarkedBox(label=label, box=box) for label, box in every[1:])
    at = seen.answer.region
    return () if at is None else (MarkedBox(label=every[at][0], box=every[at][1]),)

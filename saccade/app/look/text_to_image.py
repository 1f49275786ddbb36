"""The look document of images that were drawn for a text: which words and which earlier cells each
cell looked at.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.axis import grid_entry, text_axis
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.document import (
    AxisEntry,
    DrawnEntry,
    LookDocument,
    LookEntry,
    SiteEntry,
)
from saccade.app.look.draw.figure import save_by_ending
from saccade.app.look.images import SIDE, ShownImage, pillow_image
from saccade.app.look.matrix import Side, layer_heads
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.site import EIGHT_BITS
from saccade.data.images.decode import upright
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError
from saccade.tasks.text_to_image.drawer import ImageDrawer
from saccade.tasks.text_to_image.teacher_forced import (
    DrawnLook,
    cells_seen,
    teacher_forced_image,
)

CELLS, SEEN = "cells", "seen"
FILLS = "…"  # what fills up a text, as one
TEXT_BYTES = 4 / 3  # characters to a byte
MEAN_OF_HEADS = "the heads of each layer are shown as their mean, for they do not fit the budget"


@dataclass(frozen=True)
class DrawnSubject:
    """A prompt and an image that was drawn for it; the codes of its first cells were given."""

    prompt: str
    pixels: UInt8[Tensor, "3 H W"]
    codes: list[int]
    log_probability: float
    begun: int = 0

    @property
    def shown(self) -> ShownImage:
        """As large as people want it."""
        small = pillow_image(self.pixels)
        large = max(SIDE, *small.size), max(SIDE, *small.size)
        pixels = upright(small.resize(large, Image.Resampling.BICUBIC))
        return ShownImage(self.prompt, pixels, lambda _: self.pixels)


@dataclass(frozen=True)
class DrawnFilm:
    """Which cells looked at each word: a film over the image, in which each word's map sums to one;
    and the numbers, in which what a cell looked at does, words and cells together.
    """

    film: ImageLook
    to_words: Float[Tensor, "cells words"] = field(repr=False)
    to_cells: Float[Tensor, "cells cells"] = field(repr=False)
    subject: DrawnSubject = field(repr=False)

    @property
    def words(self) -> list[str]:
        """Of the prompt, with its start and end, and what fills it up."""
        return self.film.rows

    def save(self, path: str | Path, *, cells: bool = False) -> Path:
        """Write the film, the page or the numbers, by the file's ending."""
        if Path(path).suffix == ".json":
            return save_by_ending(path, {".json": self._json})
        return self.film.save(path, cells=cells)

    def text(self, *, colour: bool) -> str:
        """For a terminal: each word, and where the cells are that looked at it."""
        return self.film.text(colour=colour)

    def _repr_png_(self) -> bytes:
        """What a notebook shows where it shows no pages."""
        return self.film._repr_png_()  # pyright: ignore[reportPrivateUsage]

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        return self.film._repr_html_()  # pyright: ignore[reportPrivateUsage]

    def _json(self) -> bytes:
        table: dict[str, Any] = {"title": self.film.title, "caption": self.subject.prompt}
        table |= {"words": self.words, "codes": self.subject.codes}
        for name, weights in (("to_words", self.to_words), ("to_cells", self.to_cells)):
            table[name] = [[round(weight, 6) for weight in row] for row in weights.tolist()]
        return json.dumps(table, ensure_ascii=False).encode()


def drawn_look(
    model: NamedModel[ImageDrawer], subject: DrawnSubject, how: LookSettings, select: Selection
) -> DrawnFilm:
    """A film: the image, and for each word of the prompt which cells looked at it as they were
    drawn. The mean over all layers and heads by default.
    """
    seen = teacher_forced_image(model.tool, subject.prompt, subject.codes)
    weights, which = _chosen(seen, select)
    side = _word_side(word_axis(model.tool, subject.prompt, seen), seen.special)
    by_token = weights[:, : seen.special].double()  # (cells, tokens)
    names, to_words = side.texts, by_token @ side.membership().mT
    if select.units == "pieces":
        names, to_words = side.pieces, by_token
    select.check_rows(len(names))
    grid = model.tool.model.config.grid
    maps = (to_words / to_words.sum(dim=0).clamp_min(1e-12)).mT  # (words, cells)
    film = ImageLook(
        rows=names,
        maps=maps.unflatten(1, (grid, grid)).float(),
        lattice=Lattice(grid, grid),
        image=subject.shown.pixels,
        title=f"{model.name}: which cells looked at each word, {which}",
        caption=subject.prompt,
        document=lambda: drawn_document(model, subject, how, seen=seen),
    )
    return DrawnFilm(film, to_words.float(), weights[:, seen.special :], subject)


def _chosen(seen: DrawnLook, select: Selection) -> tuple[Float[Tensor, "cells S"], str]:
    """The mean over layers and heads, or those that were chosen, and in words which they are."""
    if select.layer is None:
        if select.head is not None:
            raise ConfigError(f"head={select.head} is of a layer; name that too, as --layer 0")
        every = torch.stack([heads.mean(dim=0) for heads in seen.sites.values()])
        return every.mean(dim=0), "mean over layers and heads"
    name, heads = layer_heads(seen.sites, select)
    what = f"{name} (sees its {seen.sees[name]})"
    if select.head is None:
        return heads.mean(dim=0), f"{what}, mean over heads"
    return heads[select.head], f"{what}, head {select.head}"


def _word_side(axis: AxisEntry, special: int) -> Side:
    """The words, and each other token before the cells by itself."""
    inside = {place for start, end in axis.words for place in range(start, end)}
    single = [(place, place + 1) for place in range(special) if place not in inside]
    return Side(axis.tokens[:special], sorted([*axis.words, *single]))


def word_axis(tool: ImageDrawer, prompt: str, seen: DrawnLook) -> AxisEntry:
    """What a cell may look at: words, what fills up the text, then cells."""
    ends = (0, 0), (len(prompt), len(prompt))
    spans = [ends[0], *tool.vocabulary.spans(prompt), ends[1]]
    text = text_axis(tool.vocabulary, seen.tokens, spans=spans, text=prompt)
    grid = tool.model.config.grid
    cells = [f"{cell // grid},{cell % grid}" for cell in range(grid**2)]
    return AxisEntry(
        kind="grid",
        tokens=[*text.tokens, FILLS, *cells],
        words=text.words,
        prompt=seen.special,
        grid=grid_entry(Lattice(grid, grid), special=seen.special),
    )


def drawn_document(
    model: NamedModel[ImageDrawer],
    subject: DrawnSubject,
    how: LookSettings,
    *,
    seen: DrawnLook | None = None,
) -> LookDocument:
    """An image as it was drawn, and where each cell looked; `seen` if that is known."""
    tool, blobs = model.tool, Blobs()
    seen = seen or teacher_forced_image(tool, subject.prompt, subject.codes)
    grid = tool.model.config.grid
    masks = {name: blobs.add(mask.float(), "u8") for name, mask in cells_seen(tool.model).items()}
    log_p = [round(value, 4) for value in seen.log_p]
    look = LookEntry(
        run=model.name,
        label="best",
        text=subject.prompt,
        score=None,
        log_probability=round(subject.log_probability, 4),
        finished=True,
        axes={
            CELLS: AxisEntry(kind="grid", log_p=[*log_p], grid=grid_entry(Lattice(grid, grid))),
            SEEN: word_axis(tool, subject.prompt, seen),
        },
        sites=_sites(seen, how.budget, blobs),
        image=0,
        drawn=DrawnEntry(codes=subject.codes, begun=subject.begun, sees=seen.sees, masks=masks),
    )
    entry = subject.shown.entry(tool.settings.image)
    return LookDocument.of("text-to-image", [model.name], subject.prompt, [look], blobs, [entry])


def _sites(seen: DrawnLook, room: int, blobs: Blobs) -> list[SiteEntry]:
    """Every head while there is room; what may not be looked at takes next to none."""
    weights = sum(int(heads.count_nonzero()) for heads in seen.sites.values())
    mean = weights * TEXT_BYTES > room
    kind: Kind = "u8" if 2 * weights * TEXT_BYTES > room else "f16"
    if kind == "u8":
        blobs.note(EIGHT_BITS)
    if mean:
        blobs.note(MEAN_OF_HEADS)
    reduce: Callable[[Tensor], Tensor] = (
        (lambda heads: heads.mean(dim=0, keepdim=True)) if mean else (lambda heads: heads)
    )
    return [_site(name, reduce(heads), kind, blobs) for name, heads in seen.sites.items()]


def _site(name: str, heads: Float[Tensor, "N cells S"], kind: Kind, blobs: Blobs) -> SiteEntry:
    return SiteEntry(
        name=name,
        rows=CELLS,
        columns=SEEN,
        heads=len(heads),
        causal=False,
        reach=None,
        cell=[1, 1],
        arrays={"weights": blobs.add(heads, kind)},
    )

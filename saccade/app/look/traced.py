"""A page for any trace: of a model that Saccade did not make, or a pass that it did not run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import grid_entry
from saccade.app.look.captioning.film import ImageLook, draw_film
from saccade.app.look.document import AxisEntry, ImageEntry, LookDocument, LookEntry, SiteEntry
from saccade.app.look.draw.figure import save_document, write
from saccade.app.look.draw.png import draw_png
from saccade.app.look.html import framed
from saccade.app.look.images import SIDE, data_url
from saccade.app.look.pieces import readable, word_ranges
from saccade.app.look.site import site_entry, with_zoom
from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance
from saccade.attention.look.looking import Trace
from saccade.attention.look.modules.names import QUERY
from saccade.attention.look.observe import observe
from saccade.data.images.decode import decode
from saccade.data.images.square import fit_square
from saccade.errors import ConfigError
from saccade.metrics.alignment import Span, merge_pieces, merge_rows

Ids = Tensor | list[int] | list[list[int]]
Words = list[str] | list[list[str]] | Ids
Tokens = Words | dict[str, Words]
SiteAxes = dict[str, tuple[Axis, Axis]]
READER = Axis("reader")
ImageLike = str | Path | Image.Image | np.ndarray | Tensor


@dataclass(frozen=True)
class TracePage:
    """A look document that shows itself in a notebook, and that can be saved."""

    document: LookDocument
    drawing: Callable[[], bytes]

    def save(self, path: str | Path) -> Path:
        """Write the page to one file that works without a network, or its last map as an image."""
        path = Path(path)
        if path.suffix == ".png":
            return write(path, self.drawing())
        if path.suffix != ".html":
            raise ConfigError(
                f"{path.name}: a page is saved as .html or .png, not {path.suffix or 'that'}"
            )
        return save_document(self.document, path)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return framed(self.document)


def show(
    trace: Trace,
    tokens: Tokens | None = None,
    *,
    tokenizer: Any = None,
    ids: Ids | dict[str, Ids] | None = None,
    image: ImageLike | None = None,
    title: str = "a trace",
    row: int = 0,
    budget: int = 10_000_000,
) -> TracePage:
    """The page of what one row of a batch looked at.

    `tokens` are the words along the sides: a list where all sites look at one text, else a list
    for each axis that the trace names, such as {"source": […], "target": […]}; with or without the
    padding, which is not shown. A tokenizer of transformers, tokenizers or Saccade reads them from
    the `ids` that the model was given. `image` is what a model of patches saw: a file, pixels, or
    the very tensor, which is the surest.
    """
    if not len(trace):
        raise ConfigError("the trace is empty: run the model inside the block, then show it")
    own, sides = _row(trace, row), trace.axes
    named = _read(tokenizer, tokens, ids, row)
    glances = {name: _shown(glance, sides[name]).cpu() for name, glance in own.items()}
    if image is not None:
        sides = _with_grids(sides, glances, named)
        glances, sides, named = _with_readers(trace, row, glances, sides, named)
    blobs = Blobs()
    kind = "f16" if sum(map(_cells, glances.values())) < 2e6 else "u8"
    entries: list[SiteEntry] = []
    axes: dict[str, AxisEntry] = {}
    labels: dict[str, list[list[str]]] = {}
    for name, glance in glances.items():
        made = _axes(sides[name], glance, own.get(name, glance), named, name)
        places = (_place(axes, axis.name, one) for axis, one in zip(sides[name], made))
        labels[name] = [one.tokens for one in made]
        entries.append(site_entry(name, glance, (next(places), next(places)), kind, blobs))
    entries = with_zoom(entries, list(glances.values()), (), budget - blobs.size, blobs)
    document = _document(title, entries, axes, blobs)
    if image is None:
        return TracePage(document, lambda: _matrix(title, glances, sides, labels))
    shown = fit_square(_pixels(image, row), SIDE, "squeeze")
    looks = [replace(document.looks[0], image=0)]
    document = replace(document, kind="caption", images=[_image_entry(shown)], looks=looks)
    return TracePage(document, lambda: _over_image(document, shown, glances, sides, labels))


def _row(trace: Trace, row: int) -> dict[str, Glance]:
    """One row of each site; beams share what was read: fewer rows there serve more here."""
    whole = {name: trace[name] for name in trace}
    most = max(len(glance.entropy) for glance in whole.values())
    if not 0 <= row < most:
        raise ConfigError(f"row={row} is not in the batch, whose {most} rows count from 0")
    return {name: glance.row(row * len(glance.entropy) // most) for name, glance in whole.items()}


def _shown(glance: Glance, sides: tuple[Axis, Axis]) -> Glance:
    """A row without its padding; the cells of an image are all there."""
    texts = all(axis.kind == "tokens" for axis in sides)
    return glance.unpadded(0) if texts else replace(glance, spans=None)


def _read(tokenizer: Any, tokens: Tokens | None, ids: Any, row: int) -> dict[str, list[str]]:
    """The words of each axis; those of one text may come without its name, ids as tokens too."""
    if ids is not None and tokenizer is None:
        raise ConfigError("tokenizer= and ids= go together: ids are read by their tokenizer")
    if tokenizer is not None and ids is None and tokens is None:
        raise ConfigError("tokenizer= and ids= go together: a tokenizer has ids to read")
    found: dict[str, list[str]] = {}
    for given in (tokens, ids):
        if given is not None:
            texts: dict[str, Any] = given if isinstance(given, dict) else {"text": given}
            found |= {name: _words_of(tokenizer, one, row, name) for name, one in texts.items()}
    return found


def _words_of(tokenizer: Any, given: Any, row: int, name: str) -> list[str]:
    values: list[Any] = given.tolist() if isinstance(given, Tensor | np.ndarray) else list(given)
    if values and all(isinstance(one, list | tuple | Tensor) for one in values):  # a batch
        if len(values) > 1 and row >= len(values):
            raise ConfigError(f"row={row} is not among the {len(values)} rows of {name!r}")
        some = values[row if len(values) > 1 else 0]
        values = some.tolist() if isinstance(some, Tensor) else list(some)
    if all(isinstance(one, str) for one in values):
        return values
    if not all(isinstance(one, int) for one in values):
        raise ConfigError(f"the tokens of {name!r} are words or ids, not {type(given).__name__}")
    return readable(tokenizer, values) if tokenizer is not None else [str(one) for one in values]


def _with_grids(
    axes: SiteAxes, glances: dict[str, Glance], named: dict[str, list[str]]
) -> SiteAxes:
    """The same axes; what has no words and no grid is taken for the patches of a square image."""

    def side(axis: Axis, size: int) -> Axis:
        if axis.kind != "tokens" or axis == QUERY or axis.name in named:
            return axis
        special = next(n for n in range(size + 1) if isqrt(size - n) ** 2 == size - n)
        across = isqrt(size - special)
        return replace(axis, kind="grid", height=across, width=across, special=special)

    sides = {
        name: (side(axes[name][0], glance.entropy.shape[2]), side(axes[name][1], glance.keys))
        for name, glance in glances.items()
    }
    if not any(columns.kind == "grid" for _, columns in sides.values()):
        raise ConfigError("an image is given, but no site of the trace looks at patches")
    return sides


def _with_readers(
    trace: Trace,
    row: int,
    glances: dict[str, Glance],
    sides: SiteAxes,
    named: dict[str, list[str]],
) -> tuple[dict[str, Glance], SiteAxes, dict[str, list[str]]]:
    """Where no words look at the image, its class token does, or all patches on average."""
    if any(rows.kind == "tokens" and columns.kind == "grid" for rows, columns in sides.values()):
        return glances, sides, named
    weights, readers, axes = trace.weights(), dict(glances), dict(sides)
    for name, (_, grid) in sides.items():
        if grid.kind == "grid":
            seen = weights[name][row : row + 1].cpu()
            seen = seen[:, :, : grid.special] if grid.special else seen.mean(dim=2, keepdim=True)
            whose = "class token" if grid.special else "all patches"
            readers[f"{name} of {whose}"] = observe(seen, trace.keep)
            axes[f"{name} of {whose}"] = (READER, grid)
            named = named | {READER.name: _specials(grid) or [whose]}
    return readers, axes, named


def _specials(grid: Axis) -> list[str]:
    return [f"<special {i + 1}>" if i else "<class>" for i in range(grid.special)]


def _pixels(image: ImageLike, row: int) -> UInt8[Tensor, "3 H W"]:
    """Red, green and blue of a file or of pixels in any of their usual forms."""
    if isinstance(image, str | Path):
        return decode(Path(image))
    if isinstance(image, Image.Image):
        image = np.array(image.convert("RGB"))
    pixels = torch.as_tensor(image).detach().cpu()
    pixels = pixels[row] if pixels.dim() == 4 else pixels
    if pixels.dim() != 3 or not {1, 3} & {pixels.shape[0], pixels.shape[-1]}:
        raise ConfigError(f"an image has three colours, not shape {tuple(pixels.shape)}")
    pixels = pixels if pixels.shape[0] in (1, 3) else pixels.permute(2, 0, 1)
    if pixels.dtype != torch.uint8:
        pixels = pixels.float()
        if pixels.min() < 0 or pixels.max() > 1:  # normalised: stretched to what can be seen
            pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min()).clamp(min=1e-9)
        pixels = (255 * pixels).round().to(torch.uint8)
    return pixels.expand(3, -1, -1).contiguous()


def _image_entry(image: UInt8[Tensor, "3 H W"]) -> ImageEntry:
    side, source = image.shape[-1], data_url(image)
    return ImageEntry(
        name="the image", source=source, side=side, seen=side, boxes=[], references=[]
    )


def _across(glances: dict[str, Glance], sides: SiteAxes) -> list[str]:
    """Sites that look from one thing to another, if there are any."""
    return [name for name in glances if sides[name][0] != sides[name][1]] or list(glances)


def _mean(glances: dict[str, Glance], name: str) -> Float[Tensor, "T S"]:
    weights = glances[name].weights
    if weights is None:
        raise ConfigError(f"the weights of {name} were not kept; look with a larger Keep(dense=…)")
    return weights[0].mean(dim=0)


def _words(pieces: list[str]) -> tuple[list[str], list[Span], list[Span]]:
    """The words that pieces make up, which pieces those are, and each piece alone."""
    ranges = word_ranges(pieces)
    words = ["".join(pieces[start:end]) for start, end in ranges]
    return words, ranges, [(place, place + 1) for place in range(len(pieces))]


def _matrix(
    title: str, glances: dict[str, Glance], sides: SiteAxes, labels: dict[str, list[list[str]]]
) -> bytes:
    """The last site between words, its heads averaged."""
    name = _across(glances, sides)[-1]
    (rows, down, high), (columns, across, wide) = map(_words, labels[name])
    weights = merge_pieces(
        _mean(glances, name),
        source_pieces=wide,
        target_pieces=high,
        source_words=across,
        target_words=down,
    )
    return draw_png(rows, columns, weights.tolist(), title=f"{title}: {name}, mean over heads")


def _over_image(
    document: LookDocument,
    image: UInt8[Tensor, "3 H W"],
    glances: dict[str, Glance],
    sides: SiteAxes,
    labels: dict[str, list[list[str]]],
) -> bytes:
    """A frame for each word, or for each layer where it is the class token that looks."""
    names = [name for name in _across(glances, sides) if sides[name][1].kind == "grid"]
    who, grid = sides[names[-1]]
    maps = torch.stack([_mean(glances, name) for name in names])[..., grid.special :]
    words, ranges, pieces = _words(labels[names[-1]][0])
    text = "".join(words).strip()
    if who == READER:
        over, text, maps = "heads", words[0], maps[:, 0]
        words = [name.partition(" of ")[0] for name in names]
    else:
        over, maps = "layers and heads", merge_rows(maps.mean(dim=0), pieces=pieces, words=ranges)
    title = f"{document.title}: attention to the image, mean over {over}"
    maps = maps.unflatten(-1, (grid.height, grid.width))
    return draw_film(ImageLook(words, maps, grid.lattice, image, title, text, lambda: document))


def _cells(glance: Glance) -> int:
    return 0 if glance.weights is None else glance.weights.numel()


def _document(
    title: str, sites: list[SiteEntry], axes: dict[str, AxisEntry], blobs: Blobs
) -> LookDocument:
    """As translation where something looks across, else as a text that looks at itself."""
    across = [site for site in sites if site.rows != site.columns]
    renamed = {across[-1].columns: "source", across[-1].rows: "target"} if across else {}
    if not across and "text" not in axes:
        renamed = {sites[-1].rows: "text"}
    sites = [
        replace(
            site,
            rows=renamed.get(site.rows, site.rows),
            columns=renamed.get(site.columns, site.columns),
        )
        for site in sites
    ]
    axes = {renamed.get(name, name): axis for name, axis in axes.items()}
    look = LookEntry(
        run=title,
        label="best",
        text="".join(axes["target" if across else "text"].tokens).strip(),
        score=None,
        log_probability=None,
        finished=None,
        axes=axes,
        sites=sites,
    )
    return LookDocument(
        kind="translation" if across else "language",
        title=title,
        notes=blobs.notes,
        looks=[look],
        blobs=blobs.texts,
    )


def _place(axes: dict[str, AxisEntry], name: str, entry: AxisEntry) -> str:
    """Where an axis is: sites share it if it is the same, and else it has a number."""
    places = (name if n == 1 else f"{name} {n}" for n in count(1))
    return next(place for place in places if axes.setdefault(place, entry) == entry)


def _axes(
    sides: tuple[Axis, Axis],
    shown: Glance,
    whole: Glance,
    tokens: dict[str, list[str]],
    site: str,
) -> list[AxisEntry]:
    """What lies along the sides of a site; words of padding are cut off."""
    sizes = (shown.entropy.shape[2], shown.keys), (whole.entropy.shape[2], whole.keys)
    spans = [(0, n) for n in sizes[1]] if whole.spans is None else whole.spans[0].tolist()
    made: list[AxisEntry] = []
    for axis, size, padded, (start, stop) in zip(sides, *sizes, spans):
        words = tokens.get(axis.name)
        if words is not None and size < padded == len(words):
            words = words[start:stop]
        made.append(_axis(axis, size, words, site))
    return made


def _axis(axis: Axis, size: int, words: list[str] | None, site: str) -> AxisEntry:
    """The words of an axis; the cells of an image are known without any."""
    if axis == QUERY:
        words = [f"<query {i + 1}>" for i in range(size)]
    elif words is None and axis.kind != "tokens":
        places = [f"{y},{x}" for y in range(axis.height) for x in range(axis.width)]
        words = _specials(axis) + places
    if words is None:
        raise ConfigError(
            f"{site} looks along {axis.name!r}, for which there are no tokens; "
            f"give them as {{{axis.name!r}: […]}}"
        )
    if len(words) != size:
        raise ConfigError(f"{axis.name!r} has {len(words)} tokens, but {site} saw {size} positions")
    if axis.kind == "tokens":
        return AxisEntry(tokens=words, words=word_ranges(words), prompt=size)
    grid = grid_entry(axis.lattice, special=axis.special)
    return AxisEntry(kind="grid", tokens=words, prompt=size, grid=grid)

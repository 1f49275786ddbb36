"""The look document: all that the page is told of one look. The page reads nothing else.

What is kept depends on length. Short inputs keep every weight. Long ones keep statistics, maps
and the largest weights of every head, and for some heads the queries and keys from which the page
computes any weight exactly. What was left out for size is said in `notes`.

Whoever changes a field's name or meaning counts `VERSION` up, here and in `page/main.js`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal
from unicodedata import category

from saccade.app.look.arrays import ArrayRef, Blobs
from saccade.config import from_dict
from saccade.errors import ConfigError

FORMAT, VERSION = "saccade-look", 2
LONGEST_TITLE = 60
JOINED = {"Mn", "Mc", "Me", "Cf", "Sk"}  # of characters that change the one before


@dataclass(frozen=True, kw_only=True)
class GridEntry:
    """Where the cells of an image lie: the middle of each row and column, as shares of a side.

    `special` is how many positions come before the first cell, such as class tokens.
    """

    height: int
    width: int
    down: list[float]
    across: list[float]
    special: int = 0


@dataclass(frozen=True, kw_only=True)
class AxisEntry:
    """What lies along a side: tokens, of which [from, to) make up each word, or cells.

    The first `prompt` tokens were given, the rest written. `choices` are the most probable tokens
    of each place with their probabilities. Where several texts lie on it, `texts` says where; of
    decisions `places` says at which token of the text each was made, none if at all alike.
    """

    kind: Literal["tokens", "grid"] = "tokens"
    tokens: list[str] = field(default_factory=list[str])
    words: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    prompt: int = 0
    log_p: list[float | None] | None = None
    choices: list[list[tuple[str, float]]] | None = None
    grid: GridEntry | None = None
    texts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    places: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, kw_only=True)
class ZoomEntry:
    """Queries and keys of some heads, from which any weight follows: exp(scale · q kᵀ − lse)."""

    heads: list[int]
    scale: float
    q: ArrayRef
    k: ArrayRef
    lse: ArrayRef


@dataclass(frozen=True, kw_only=True)
class SiteEntry:
    """One place where the model attends; `rows` and `columns` name axes of its look.

    `cell` is how many positions a cell of its maps holds, down and across. A `derived` site is
    worked out from others.
    """

    name: str
    rows: str
    columns: str
    heads: int
    causal: bool
    reach: int | None
    cell: list[int]
    arrays: dict[str, ArrayRef]
    zoom: ZoomEntry | None = None
    derived: bool = False


@dataclass(frozen=True, kw_only=True)
class CandidateEntry:
    """A hypothesis after one step of a search; `parent` counts those of the step before."""

    text: str
    token: str
    parent: int | None
    score: float
    log_probability: float
    ended: bool


@dataclass(frozen=True, kw_only=True)
class ClassEntry:
    """What an image or a text was taken for, and what it is, where that is known; of several
    classes `said` has those that are likely there, and `guesses` the likeliest first.

    Maps show what `target` came from, which the model finds as likely as `probability` says.
    """

    said: list[str]
    guesses: list[tuple[str, float]]
    truth: list[str]
    target: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class FoundEntry:
    """An object that was found, and the row of its query on the axis `objects`.

    Where the truth is known: the number of the true object that it takes, if any. What lies in an
    ignored one is `excused`: it counts neither way.
    """

    label: str
    score: float
    box: list[float]
    row: int
    takes: int | None = None
    excused: bool = False


@dataclass(frozen=True, kw_only=True)
class TrueEntry:
    """An object that is there; an `ignored` one need not be found."""

    label: str
    box: list[float]
    ignored: bool = False


@dataclass(frozen=True, kw_only=True)
class ObjectsEntry:
    """What was found in an image, the likeliest first, and what is there, where that is known.

    Objects of a score below `threshold` are not told of. Boxes are left, top, right and bottom as
    shares of the image's sides.
    """

    found: list[FoundEntry]
    truth: list[TrueEntry] | None
    threshold: float


@dataclass(frozen=True, kw_only=True)
class RegionsEntry:
    """The regions of an image that a text is about, the whole image first; boxes are left, top,
    right and bottom as shares of the image's sides.

    `without` is how likely `of_what` would be with nothing to be seen in each region, `with_all`
    with all of them. Where a phrase means one: `chances` has how likely each is meant, `meant` the
    likeliest, and `truth` where it truly lies, if that is known. `named` says that another answer
    may be asked about, by its name. `among` has all sentences where one of them is to be chosen:
    each has a look of its own, that of the likeliest first.
    """

    asked: str
    boxes: list[list[float]]
    of_what: str
    with_all: float
    without: list[float] = field(default_factory=list[float])
    chances: list[float] = field(default_factory=list[float])
    meant: int | None = None
    truth: list[float] | None = None
    named: bool = False
    among: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class DrawnEntry:
    """An image that was drawn code by code, row by row; the first `begun` were given.

    `sees` says by its name what each site may look at of the image, and `masks` which cells
    (across) that is for each cell (down) as its code is chosen: 1 where it may look.
    """

    codes: list[int]
    begun: int
    sees: dict[str, str]
    masks: dict[str, ArrayRef]


@dataclass(frozen=True, kw_only=True)
class LookEntry:
    """One text and where the model looked; `beam` is the history of the search for it.

    `image` is the number of the image that a caption or a class is of, and `hard` says that the
    model looked at one cell at a time.
    """

    run: str
    label: str
    text: str
    score: float | None
    log_probability: float | None
    finished: bool | None
    axes: dict[str, AxisEntry]
    sites: list[SiteEntry]
    beam: list[list[CandidateEntry]] | None = None
    image: int | None = None
    hard: bool = False
    classes: ClassEntry | None = None
    objects: ObjectsEntry | None = None
    regions: RegionsEntry | None = None
    drawn: DrawnEntry | None = None


@dataclass(frozen=True, kw_only=True)
class MarkedBox:
    """A part of an image: left, top, right and bottom as shares of its sides."""

    label: str
    box: list[float]


@dataclass(frozen=True, kw_only=True)
class ImageEntry:
    """An image of `side` pixels across as a data URL; a model sees `seen` of them."""

    name: str
    source: str
    side: int
    seen: int
    boxes: list[MarkedBox]
    references: list[str]


@dataclass(frozen=True, kw_only=True)
class LookDocument:
    """Everything. `kind` names the page's module that shows it.

    `subject` is what was given, in full: a text as it was written, or the name of an image.
    """

    format: Literal["saccade-look"] = FORMAT
    version: int = VERSION
    kind: str
    title: str
    notes: list[str]
    looks: list[LookEntry]
    blobs: list[str]
    images: list[ImageEntry] = field(default_factory=list[ImageEntry])
    subject: str | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        names: Iterable[str],
        subject: str,
        looks: list[LookEntry],
        blobs: Blobs,
        images: Iterable[ImageEntry] = (),
    ) -> "LookDocument":
        """What the models of these names made of the subject."""
        title = f"{' and '.join(names)} · {_shortened(subject)}"
        return cls(
            kind=kind,
            title=title,
            notes=blobs.notes,
            looks=looks,
            blobs=blobs.texts,
            images=list(images),
            subject=subject,
        )


def _shortened(text: str) -> str:
    """The beginning; marks and joiners stay with the character that they belong to."""
    if len(text) <= LONGEST_TITLE:
        return text
    end = LONGEST_TITLE - 3
    while end and (category(text[end]) in JOINED or text[end - 1] == "\u200d"):
        end -= 1
    return f"{text[:end]}…"


def to_json(document: LookDocument) -> str:
    """As ASCII; numbers that JSON does not have are refused."""
    return json.dumps(document, default=vars, allow_nan=False, separators=(",", ":"))


def read_json(text: str) -> LookDocument:
    """The inverse of `to_json`; refuses what is no look document of this version."""
    values: Any = json.loads(text)
    if isinstance(values, dict) and values.get("version") != VERSION:
        raise ConfigError(f"this reads version {VERSION} of a look, not {values.get('version')!r}")
    return from_dict(LookDocument, values, where="look")

"""What to look at with whom, and how large the answer may become."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import tyro

from saccade.decode.engine import Decoding
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class LookSettings:
    """What to look at, and how large the result may become.

    Args:
        beam: hypotheses kept while translating or describing; all of them are shown.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        most_tokens: how much a language model writes after the text; 0 only reads it.
        sample: draw words at random instead of taking the best.
        temperature: below 1 draws more carefully, above 1 more boldly.
        seed: of the draws.
        budget: bytes that the arrays may take, as text.
        of: the class whose traces are shown; without, the one that the model says.
        threshold: objects of a lower score are not told of.
        zoom: sites and heads that are to be kept exactly.
    """

    beam: int = 5
    length_penalty: float = 1.0
    most_tokens: int = 0
    sample: bool = False
    temperature: float = 1.0
    seed: int = 0
    budget: int = 10_000_000
    of: tyro.conf.Suppress[str | None] = None
    threshold: tyro.conf.Suppress[float] = 0.5
    zoom: tyro.conf.Suppress[tuple[tuple[str, int], ...]] = ()

    def __post_init__(self) -> None:
        if self.most_tokens < 0:
            raise ConfigError(f"most_tokens={self.most_tokens} must be 0 (only read) or more")
        if self.budget < 100_000:
            raise ConfigError(f"budget={self.budget} must be at least 100000 bytes")
        _ = self.search(1), self.drawing  # which refuse what cannot be

    @property
    def drawing(self) -> Decoding:
        """How a language model goes on from a text."""
        return Decoding(beam=1, sample=self.sample, temperature=self.temperature, seed=self.seed)

    def search(self, n_best: int, like: Decoding | None = None) -> Decoding:
        """The search that `predict` runs, `like` a prediction's own; shows up to `n_best`."""
        how = like or Decoding(beam=self.beam, length_penalty=self.length_penalty)
        return how if how.sample else replace(how, n_best=min(n_best, how.beam))


Units = Literal["auto", "words", "pieces"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which of all weights a picture, a terminal or a table shows; a page has every one.

    Args:
        units: rows and columns are words, or the pieces that the model reads; auto takes words for
            translations, and pieces for language models.
        layer: one layer by its number, or any site by its name, as decoder.0.self.
        head: one head of that layer; the mean over its heads without.
        most_rows: more are refused as soon as they are known, before the model looks.
    """

    units: Units = "auto"
    layer: str | None = None
    head: int | None = None
    most_rows: tyro.conf.Suppress[int | None] = None

    def check_rows(self, count: int) -> None:
        """Refuse what nobody could read in a terminal."""
        if self.most_rows is not None and count > self.most_rows:
            raise ConfigError(f"{count} rows are too many to print; name a file with --out")


def make_selection(fields: dict[str, Any]) -> Selection:
    """Of keywords, checked; a layer may be a number."""
    known = Selection.__dataclass_fields__
    for name in fields:
        if name not in known:
            raise ConfigError(f"{name} selects nothing of a look; there are: {', '.join(known)}")
    if (units := fields.get("units", "auto")) not in get_args(Units):
        raise ConfigError(f"units={units!r} must be words or pieces")
    layer, head = fields.get("layer"), fields.get("head")
    if head is not None and not isinstance(head, int):
        raise ConfigError(f"head={head!r} must be a number")
    layer = None if layer is None else str(layer)
    return replace(Selection(), **{**fields, "layer": layer})


def refuse_selection(select: Selection) -> None:
    """For a page alone, which has everything."""
    if select != Selection():
        raise ConfigError(
            "--units, --layer and --head choose what is printed or drawn; a page has every layer "
            "and head: leave them away"
        )


Tool_co = TypeVar("Tool_co", covariant=True)


@runtime_checkable
class NamedModel(Protocol[Tool_co]):
    """A model with its name, and the tool that uses it."""

    @property
    def name(self) -> str: ...
    @property
    def tool(self) -> Tool_co: ...

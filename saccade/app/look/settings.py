"""What to look at with whom, and how large the answer may become."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import tyro

from saccade.errors import ConfigError
from saccade.tasks.captioning.captioner import Describer
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.translator import Translator

FORMAT = "saccade-look/1"
PLACES = ("best", "2nd", "3rd")


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
        zoom: sites and heads that are to be kept exactly.
    """

    beam: int = 5
    length_penalty: float = 1.0
    most_tokens: int = 0
    sample: bool = False
    temperature: float = 1.0
    seed: int = 0
    budget: int = 10_000_000
    zoom: tyro.conf.Suppress[tuple[tuple[str, int], ...]] = ()

    def __post_init__(self) -> None:
        if self.most_tokens < 0:
            raise ConfigError(f"most_tokens={self.most_tokens} must be 0 (only read) or more")
        if self.budget < 100_000:
            raise ConfigError(f"budget={self.budget} must be at least 100000 bytes")


@runtime_checkable
class Looker(Protocol):
    """A model with its name, and what it works with."""

    @property
    def name(self) -> str: ...
    @property
    def tool(self) -> Translator | Writer | Describer: ...


def place_name(place: int) -> str:
    """Of a hypothesis in the n-best list."""
    return PLACES[place] if place < len(PLACES) else f"{place + 1}th"

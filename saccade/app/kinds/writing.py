"""How a language model goes on: words drawn at random, or searched for."""

from dataclasses import dataclass
from typing import Any

from saccade.app.kinds.base import OF_DRAWS, given_of, make_decoding
from saccade.config import check_positive
from saccade.decode.engine import AnyPrecision, Decoding
from saccade.errors import ConfigError


def writing_decoding(fields: dict[str, Any], *, count: int) -> Decoding:
    """Words are drawn unless a search is asked for; what does not go together is refused."""
    searches = "beam" in fields
    for name in given_of(fields, "sample", *OF_DRAWS) if searches else ():
        raise ConfigError(
            f"beam={fields['beam']} searches, and {name}={fields[name]} is of words drawn at "
            "random; leave one of them out"
        )
    if not searches and fields.get("sample", True) and fields.get("n_best", 1) > 1:
        raise ConfigError(
            f"n_best={fields['n_best']} is of a search; ask for one with a beam, or draw several "
            "texts with count"
        )
    how = make_decoding({"sample": not searches, **fields})
    if count > 1 and not how.sample:
        raise ConfigError(
            f"count={count}: a search finds the same text each time; ask for n_best instead, or "
            "leave the beam out"
        )
    return how


@dataclass(frozen=True, kw_only=True)
class WritingOptions:
    """How a text goes on: its words are drawn at random, unless a beam asks for a search.

    Args:
        beam: search, and keep so many hypotheses at each step; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer texts.
        n_best: how many of the beam to give back.
        temperature: below 1 draws more carefully, above 1 more boldly.
        top_k: draw only among this many best words; 0 among all.
        top_p: draw only among the best words that together reach this probability.
        seed: of the draws.
        precision: of weights and products; auto is bfloat16 on a GPU and float32 on a CPU, where
            int8 is faster still.
        capture: on a GPU, capture the step once and replay it.
        count: how many texts are drawn for each prompt.
        most_tokens: where a text stops at the latest.
    """

    beam: int | None = None
    length_penalty: float = 1.0
    n_best: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    precision: AnyPrecision = "auto"
    capture: bool = True
    count: int = 1
    most_tokens: int = 100

    def __post_init__(self) -> None:
        check_positive(self, "count", "most_tokens")

    @property
    def decoding(self) -> Decoding:
        """The same in the words of the search."""
        leave = ("count", "most_tokens", *(("beam",) if self.beam is None else ()))
        fields = {name: value for name, value in vars(self).items() if name not in leave}
        return writing_decoding(fields, count=self.count)

"""What a model must offer to be decoded, and what decoding gives back."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import DecoderShape


@runtime_checkable
class State(Protocol):
    """All that a model remembers of its input and of the words so far, a row per sentence.

    That is all that a model must offer; its rows are copied when a sentence becomes many beams,
    and when beams change places.
    """

    def select(self, rows: Int[Tensor, " R2"]) -> Self:
        """Keep these rows in this order; rows may repeat (beams) or be missing (finished)."""
        ...


@runtime_checkable
class SharedState(State, Protocol):
    """A state whose beams share what they have in common, so that nothing is copied.

    Before `spread` a sentence is one row of a step, after it `beams` rows. `select` is always of
    sentences.
    """

    def spread(self, beams: int) -> Self:
        """Every sentence goes on as so many beams, equal at first."""
        ...

    def follow(self, parents: Int[Tensor, "B k"]) -> Self:
        """Beam i of each sentence goes on from where beam `parents[i]` stands."""
        ...


S = TypeVar("S", bound=State)


@runtime_checkable
class Decodable(Protocol[S]):
    """One word further: the scores of the next word, given the last."""

    def step(self, tokens: Int[Tensor, " R"], state: S) -> tuple[Float[Tensor, "R V"], S]:
        """A state may be changed by the step; only the returned one is used again."""
        ...


@runtime_checkable
class FixedStep(Protocol):
    """A model with a step whose every place in memory is fixed."""

    def sizes(self, state: Any) -> dict[str, int]:
        """How much of a `DecoderShape` a state takes before the first step."""
        ...

    def slots(self, room: DecoderShape) -> Any:
        """Its own kind of `Places`."""
        ...

    def fill(self, slots: Any, first: Int[Tensor, " B"], state: Any) -> None: ...

    def at(self, slots: Any) -> Float[Tensor, "R V"]: ...


@dataclass(frozen=True)
class Hypothesis:
    """A decoded sequence without its control tokens.

    `score` is what ranked it, `log_probability` the sum over its words and its end.
    """

    tokens: list[int]
    score: float
    log_probability: float
    finished: bool


class Candidate(NamedTuple):
    """A hypothesis after one more word; `parent` is its place among the step before's."""

    token: int
    parent: int
    log_probability: float
    ended: bool


# After each step: the candidates of every live row, those that go on first. Gives back the rows
# that nobody waits for any more; they are given up.
OnStep = Callable[[dict[int, list[Candidate]]], Collection[int]]

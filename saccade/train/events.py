"""What training has to tell, as it goes."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Update:
    """Training has gone a step further, of so many. `losses` are the parts of the loss, if any."""

    step: int
    loss: float
    learning_rate: float
    losses: dict[str, float] = field(default_factory=dict[str, float])
    steps: int = 0
    tokens_per_second: float = 0.0
    seconds_left: float = 0.0


@dataclass(frozen=True)
class Validated:
    """Held-out figures, and whether they are the best so far."""

    step: int
    figures: dict[str, float]
    best: bool


@dataclass(frozen=True)
class Skipped:
    """An update that was skipped because its loss or gradient was non-finite."""

    step: int
    positions: list[int]


@dataclass(frozen=True)
class Note:
    """A line for the user."""

    text: str


@dataclass(frozen=True)
class DataProgress:
    """So many of the data are ready, of how many."""

    done: int
    total: int


@dataclass(frozen=True)
class ValidationProgress:
    """So many parts of a validation are done, of how many."""

    done: int
    total: int


Event = Update | Validated | Skipped

"""A model's own `start` and `step` as functions of tensors alone, which is what ONNX can hold.

    StartGraph       what is read       → state
    StepGraph   tokens, state      → scores of the next word, state

Nothing of a model is written here again. A state is taken apart into tensors, each with a name and,
as in `decode/protocol.py`, its rows first, so that a search keeps rows by indexing. What they are
is found by trying: sizes that differ for another source are free, a tensor that is empty at the
start is a past that grows, and whole numbers that a step changes count the words so far.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.errors import ConfigError

FURTHEST = 2048  # positions of a computed encoding that are written out
SETTINGS = ("image",)  # whose names are sizes of inputs
# No two are the same, so that the exporter cannot take one size for another.
EXAMPLE = {"rows": 3, "source": 5, "past": 4, "words": 2}
OTHER_SOURCE = {**EXAMPLE, "source": 6}
OF_SOURCE = ("keys", "values", "mask", "bias")  # which a reader would not take for the source's


@runtime_checkable
class Stepping(Protocol):
    """A model that decodes: `start` reads what is given, `step` goes one word further."""

    @property
    def start(self) -> Callable[..., Any]: ...

    @property
    def step(self) -> Callable[..., tuple[Tensor, Any]]: ...


@runtime_checkable
class Prompted(Stepping, Protocol):
    """A model that also goes on from many words at once."""

    @property
    def output(self) -> OutputLayer: ...

    @property
    def read(self) -> Callable[..., tuple[Tensor, Any]]: ...


@dataclass(frozen=True)
class Slot:
    """A tensor that goes in or out. Named sizes are free; `past` is 0 before the first word.

    What `changes` comes out of every step; the rest stays as it was at the start.
    """

    name: str
    shape: tuple[str | int, ...]
    changes: bool = True
    dtype: str = "float32"

    def with_settings(self, settings: Mapping[str, Any]) -> "Slot":
        """With those sizes fixed that a run's settings fix."""
        shape = (settings.get(size, size) if size in SETTINGS else size for size in self.shape)
        return replace(self, shape=tuple(shape))

    def example(self, sizes: dict[str, int]) -> Tensor:
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        return torch.ones(shape, dtype=getattr(torch, self.dtype))


# What a model's `start` may ask for, by the names of its parameters.
INPUTS = {
    "source": Slot("source", ("rows", "source"), dtype="int64"),
    "lengths": Slot("lengths", ("rows",), dtype="int64"),
    "images": Slot("images", ("rows", 3, "image", "image"), dtype="uint8"),
}
POSITION = Slot("position", ("rows",), dtype="int64")


def map_state(
    state: Any, change: Callable[[str, Any], Any], name: str = "", number: str = ""
) -> Any:
    """The same state with every tensor and whole number changed, each called by its field."""
    if isinstance(state, Tensor | int):
        return change(name + number, state)
    if isinstance(state, list):
        return [map_state(part, change, name, f"{number}_{i}") for i, part in enumerate(state)]
    if isinstance(state, tuple):
        parts: dict[str, Any] = state._asdict()  # type: ignore[attr-defined]
        return type(state)(*(map_state(part, change, key, number) for key, part in parts.items()))
    if is_dataclass(state) and not isinstance(state, type):
        held = ((field.name, getattr(state, field.name)) for field in fields(state))
        return replace(state, **{key: map_state(part, change, key, number) for key, part in held})
    return state


def parts_of(state: Any) -> dict[str, Any]:
    """The tensors and whole numbers of a state by their names."""
    found: dict[str, Any] = {}

    def keep(name: str, part: Any) -> Any:
        found[name] = part
        return part

    map_state(state, keep)
    return found


class StartGraph(nn.Module):
    """Read what is given; nothing written yet."""

    def __init__(self, model: Stepping, slots: dict[str, Slot]) -> None:
        super().__init__()
        self.model, self.slots = model, slots

    def forward(self, *given: Tensor) -> list[Tensor]:
        parts = parts_of(self.model.start(*given))
        if POSITION in self.slots.values():
            parts[POSITION.name] = torch.zeros(given[0].shape[0], dtype=torch.int64)
        return [parts[name] for name in self.slots]


class StepGraph(nn.Module):
    """One word further, or where a model can, a whole prompt."""

    def __init__(
        self, model: Stepping, state: Any, slots: dict[str, Slot], counts: set[str]
    ) -> None:
        """`slots` by the names that they have in a state; `counts` name its numbers of words."""
        super().__init__()
        self.model, self.state, self.slots, self.counts = model, state, slots, counts
        words = "words" if isinstance(model, Prompted) else 1
        self.tokens = Slot("tokens", ("rows", words), dtype="int64")

    def forward(self, tokens: Int[Tensor, "R T"], *given: Tensor) -> list[Tensor]:
        before = dict(zip(self.slots, given))
        words = self._words(before)

        def put(name: str, part: Any) -> Any:
            return words if name in self.counts else before.get(name, part)

        scores, after = self._go_on(tokens, map_state(self.state, put))
        parts = parts_of(after)
        if POSITION.name in before:
            parts[POSITION.name] = before[POSITION.name] + tokens.shape[1]
        return [scores, *(parts[name] for name, slot in self.slots.items() if slot.changes)]

    def _words(self, before: dict[str, Tensor]) -> Any:
        """How many words were read before: as many as the past is long, or else each row counts."""
        for name, slot in self.slots.items():
            if "past" in slot.shape:
                return before[name].shape[slot.shape.index("past")]
        return before[POSITION.name][:, None] if POSITION.name in before else 0

    def _go_on(self, tokens: Int[Tensor, "R T"], state: Any) -> tuple[Tensor, Any]:
        if not isinstance(self.model, Prompted):
            return self.model.step(tokens[:, 0], state)
        features, after = self.model.read(tokens, state)
        return self.model.output(features[:, -1]), after


def graphs_of(
    model: nn.Module, settings: Mapping[str, Any] | None = None
) -> tuple[list[Slot], StepGraph]:
    """What a model reads, if it does, and how it goes on; settings may fix sizes."""
    if not isinstance(model, Stepping):
        raise ConfigError(f"{type(model).__name__} cannot be written as ONNX: it decodes no words")
    asked = [name for name in inspect.signature(model.start).parameters if name != "rows"]
    if not set(asked) <= set(INPUTS):
        raise ConfigError(
            f"{type(model).__name__} cannot be written as ONNX: it reads {', '.join(asked)}"
        )
    inputs = [INPUTS[name].with_settings(settings or {}) for name in asked]

    def begin(sizes: dict[str, int]) -> Any:
        given: list[Any] = [slot.example(sizes) for slot in inputs]
        return model.start(*(given or [sizes["rows"]]))

    with torch.no_grad():
        state = begin(EXAMPLE)
        one, other = parts_of(state), parts_of(begin(OTHER_SOURCE))
        last = torch.ones(EXAMPLE["rows"], dtype=torch.int64)
        after = parts_of(model.step(last, state)[1])
    changed = {name for name, part in one.items() if part is not after[name]}
    tensors = {name for name, part in one.items() if isinstance(part, Tensor)}
    slots = {
        name: _slot(name, part, other[name], name in changed)
        for name, part in one.items()
        if name in tensors
    }
    counts = changed - tensors
    if counts and not any("past" in slot.shape for slot in slots.values()):
        slots[POSITION.name] = POSITION
    return inputs, StepGraph(model, begin(EXAMPLE), slots, counts)


def _slot(name: str, one: Tensor, other: Tensor, changes: bool) -> Slot:
    free = {0: "past"}
    rest = (free.get(a, a if a == b else "source") for a, b in zip(one.shape[1:], other.shape[1:]))
    shape = ("rows", *rest)
    if "past" in shape:
        name = f"past_{name}"
    elif name in OF_SOURCE:
        name = f"source_{name}"
    return Slot(name, shape, changes, str(one.dtype).removeprefix("torch."))

"""Decoding whose step is captured once and then replayed by the GPU, without Python in between.

A step of a small model is a hundred kernels of a few microseconds, which is less than it takes to
launch them one by one. A CUDA graph launches them all at once. Everything that a step reads or
writes keeps its place, the time included; the host only asks now and then whether all is said.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import Places, Room
from saccade.decode.beam import Beam, hypotheses_of
from saccade.decode.beam_state import Book
from saccade.decode.greedy import Lines, best, chosen, hypotheses
from saccade.decode.protocol import Hypothesis
from saccade.decode.top import best_of, top

BETWEEN_LOOKS = 8  # steps
MOST_BEAMS = 8  # whose bookkeeping is one kernel
MOST_KEPT = 16  # captured steps of a model
SHARE = 1 / 8  # of the memory that they hold together


@runtime_checkable
class Fixed(Protocol):
    """A model with a step whose every place in memory is fixed."""

    def sizes(self, state: Any) -> dict[str, int]:
        """How much of a `Room` a state takes before the first step."""
        ...

    def slots(self, room: Room) -> Any:
        """Its own kind of `Places`."""
        ...

    def fill(self, slots: Any, first: Int[Tensor, " B"], state: Any) -> None: ...

    def at(self, slots: Any) -> Float[Tensor, "R V"]: ...


class Step:
    """One step at fixed places: run it, and once it is captured replay it.

    Searches with a length `penalty`; without one each row takes its best word.
    """

    def __init__(self, model: Fixed, room: Room, penalty: float | None) -> None:
        self.model, self.penalty = model, penalty
        self.slots: Places = model.slots(room)
        limits = torch.zeros(room.sentences, dtype=torch.long, device=self.slots.tokens.device)
        self.notes: Book | Lines = (
            Lines.fresh(limits, room.steps)
            if penalty is None
            else Book.fresh(limits, room.beams, room.steps)
        )
        self.kernels = self.slots.tokens.is_cuda
        self._replay: Callable[[], None] | None = None

    def begin(self, first: Int[Tensor, " B"], state: Any, limits: Int[Tensor, " B"]) -> None:
        """A new batch; the places that it leaves empty are over from the beginning."""
        self.model.fill(self.slots, first, state)
        self.notes.begin(limits)

    def run(self) -> None:
        """One word further."""
        logits = self.model.at(self.slots)
        if isinstance(self.notes, Book):
            self._search(self.notes, logits)
        else:
            self._extend(self.notes, logits)

    def _search(self, book: Book, logits: Float[Tensor, "R V"]) -> None:
        assert self.penalty is not None
        beams = self.slots.room.beams
        words = top(logits, 2 * beams)
        if self.kernels and beams <= MOST_BEAMS:
            from saccade.decode.kernels import advance as bookkeeping

            bookkeeping.advance(book, self.slots, words, self.penalty)
        else:
            grown = book.advance(best_of(words, book.log_p, 2 * beams), self.penalty)
            self.slots.go_on(grown.next_words, grown.next_parents)

    def _extend(self, lines: Lines, logits: Float[Tensor, "R V"]) -> None:
        words, log_p = chosen(logits, best)
        if self.kernels:
            from saccade.decode.kernels import advance as bookkeeping

            bookkeeping.advance_lines(lines, self.slots, words, log_p)
        else:
            lines.advance(words, log_p)
            self.slots.go_on(words)

    def capture(self) -> None:
        """Record the step on the GPU; the batch in it is spoilt."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # kernels are compiled and libraries woken before
            self.run()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run()
        self._replay = graph.replay

    def until_over(self, longest: int) -> None:
        """All the steps that the batch needs."""
        go = self._replay or self.run
        for t in range(longest):
            if t and t % BETWEEN_LOOKS == 0 and bool(self.notes.over.all()):
                return
            go()


class Captured:
    """Captured steps of one model, by how much they have room for; those not used lately go."""

    def __init__(self, model: Fixed, *, graphs: bool = True) -> None:
        self.model, self.graphs = model, graphs
        self.make = Step
        self.kept: OrderedDict[tuple[Room, float | None], Step] = OrderedDict()

    @torch.inference_mode()
    def greedy(
        self, state: Any, first: Int[Tensor, " B"], limits: Int[Tensor, " B"]
    ) -> list[Hypothesis]:
        """What `extend` gives."""
        room = room_for(limits, 1, self.model.sizes(state))
        step = self._decoded(room, None, state, first, limits)
        assert isinstance(step.notes, Lines)
        return hypotheses(step.notes)[: len(first)]

    @torch.inference_mode()
    def search(
        self,
        state: Any,
        first: Int[Tensor, " B"],
        limits: Int[Tensor, " B"],
        beam: Beam,
        n_best: int,
    ) -> list[list[Hypothesis]]:
        """What `search` gives."""
        room = room_for(limits, beam.size, self.model.sizes(state))
        step = self._decoded(room, beam.length_penalty, state, first, limits)
        assert isinstance(step.notes, Book)
        rows = torch.arange(len(first), device=first.device)
        return hypotheses_of(step.notes.found(rows, n_best))

    def _decoded(
        self,
        room: Room,
        penalty: float | None,
        state: Any,
        first: Int[Tensor, " B"],
        limits: Int[Tensor, " B"],
    ) -> Step:
        key = room, penalty
        step = self.kept.pop(key, None)
        if step is None:
            step = self.make(self.model, room, penalty)
            if self.graphs:
                step.begin(first, state, limits.to(first.device))
                step.capture()
        self.kept[key] = step
        self._forget()
        step.begin(first, state, limits.to(first.device))
        step.until_over(int(limits.max()))
        return step

    def _forget(self) -> None:
        """Let go of what was not used lately, until the rest takes little of the memory."""
        while len(self.kept) > 1 and (len(self.kept) > MOST_KEPT or self._large()):
            self.kept.popitem(last=False)

    def _large(self) -> bool:
        tokens = next(iter(self.kept.values())).slots.tokens
        if not tokens.is_cuda:
            return False
        memory = torch.cuda.get_device_properties(tokens.device).total_memory
        return sum(step.slots.bytes for step in self.kept.values()) > SHARE * memory


def room_for(limits: Int[Tensor, " B"], beams: int, sizes: dict[str, int]) -> Room:
    """Rounded up, so that batches of about the same size share a step."""
    rounded = {name: _up(size, 16) for name, size in sizes.items()}
    sentences = len(limits) if len(limits) <= 2 else _up(len(limits), _grain(len(limits)))
    return Room(sentences=sentences, beams=beams, steps=_up(int(limits.max()), 32), **rounded)


def _up(size: int, grain: int) -> int:
    return -(-size // grain) * grain


def _grain(size: int) -> int:
    """A quarter of the power of two below: at most a quarter is empty."""
    return max(1, (1 << (size.bit_length() - 1)) // 4)

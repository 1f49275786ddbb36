"""Decoding whose step is captured once and then replayed by the GPU, without Python in between.

A step of a small model is a hundred kernels of a few microseconds, which is less than it takes to
launch them one by one. A CUDA graph launches them all at once. Everything that a step reads or
writes keeps its place, the time included; unless somebody listens to every step, the host only
asks now and then whether all is said.
"""

from collections import OrderedDict
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.capture import CapturedCall
from saccade.blocks.inference.slots import DecoderShape, Places
from saccade.decode.protocol import FixedStep, Hypothesis, OnStep
from saccade.decode.search_state import SearchMethod

BETWEEN_LOOKS = 8  # steps
MOST_KEPT = 16  # captured steps of a model
SHARE = 1 / 8  # of the memory that they hold together


class CapturedStep:
    """One step at fixed places: run it, and once it is captured replay it."""

    def __init__(
        self, model: FixedStep, room: DecoderShape, method: SearchMethod, end: int
    ) -> None:
        self.model = model
        self.slots: Places = model.slots(room)
        device = self.slots.tokens.device
        self.search_state = method.state(room.sentences, room.steps, end, device)
        self._go = self.run

    def run(self) -> None:
        """One word further."""
        self.search_state.advance_at(self.slots, self.model.at(self.slots))

    def capture(self) -> None:
        """Record the step on the GPU; the batch in it is lost."""
        self._go = CapturedCall(self.run).replay

    def until_over(self, limits: Int[Tensor, " B"], on_step: OnStep | None) -> None:
        """All the steps that the batch needs."""
        rows, over = range(len(limits)), (limits <= 0).tolist()
        for t in range(int(limits.max())):
            if on_step is None and t and t % BETWEEN_LOOKS == 0:
                over = [bool(self.search_state.over.all())]
            if all(over):
                return
            self._go()
            if on_step is not None:
                self.search_state.tell(on_step, rows, over, t)
                over = self.search_state.over[: len(rows)].tolist()


class CapturedDecoder:
    """Captured steps of one model, by how much they have room for; those not used lately go."""

    def __init__(self, model: FixedStep, *, graphs: bool = True) -> None:
        self.model, self.graphs = model, graphs
        self.kept: OrderedDict[tuple[DecoderShape, SearchMethod, int], CapturedStep] = OrderedDict()

    @torch.inference_mode()
    def search(
        self,
        state: Any,
        first: Int[Tensor, " B"],
        *,
        limits: Int[Tensor, " B"],
        end: int,
        method: SearchMethod,
        n_best: int | None = None,
        uniforms: Float[Tensor, "B T"] | None = None,
        on_step: OnStep | None = None,
    ) -> list[list[Hypothesis]]:
        """What the plain search gives."""

        def begin() -> None:
            self.model.fill(step.slots, first, state)
            step.search_state.begin(limits.to(first.device), uniforms)

        room = room_for(limits, method.size, self.model.sizes(state))
        kept = self.kept.pop((room, method, end), None)
        step = kept or CapturedStep(self.model, room, method, end)
        if kept is None and self.graphs:
            begin()
            step.capture()
        self.kept[room, method, end] = step
        self._forget()
        begin()
        step.until_over(limits, on_step)
        rows = torch.arange(len(first), device=first.device)
        return step.search_state.hypotheses(rows, n_best or method.size)

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


def room_for(limits: Int[Tensor, " B"], beams: int, sizes: dict[str, int]) -> DecoderShape:
    """Rounded up, so that batches of about the same size share a step."""
    rounded = {name: _up(size, 16) for name, size in sizes.items()}
    sentences = len(limits) if len(limits) <= 2 else _up(len(limits), _grain(len(limits)))
    return DecoderShape(
        sentences=sentences, beams=beams, steps=_up(int(limits.max()), 32), **rounded
    )


def _up(size: int, grain: int) -> int:
    return -(-size // grain) * grain


def _grain(size: int) -> int:
    """A quarter of the power of two below: at most a quarter is empty."""
    return max(1, (1 << (size.bit_length() - 1)) // 4)

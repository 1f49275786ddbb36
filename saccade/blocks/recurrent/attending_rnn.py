"""A recurrence that attends to a memory before each of its steps, in a loop with its own gradient.

    aₜ = softmax over i of wᵀ tanh(Q hₜ₋₁ + pₜ + kᵢ)        rₜ = σ(g hₜ₋₁) Σᵢ uₜᵢ vᵢ
    hₜ = cell(xₜ + C rₜ, U hₜ₋₁)

Bahdanau's decoder has no gate (rₜ = Σᵢ aₜᵢ vᵢ), that of Show, Attend and Tell has one. x and p come
of the words, p only where they have a say in the look. u is a, or 1 at the one place that is drawn
from a and 0 elsewhere. Steps wait for one another, but only for what is written here: x and p come
from one product over all steps, and so do the gradients of all weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.kernels.train.additive import doubled_gradient
from saccade.blocks.recurrent.gates import GATES, Gates, Kept
from saccade.blocks.recurrent.memory import AttentionMemory, look

Draw = Callable[[Float[Tensor, "B k S"]], Int[Tensor, "B k 1"]]


class LoopWeights(NamedTuple):
    """What a step multiplies with; G is the width of all gates of the cell.

    `state` is what the state before it is multiplied with at once: Q, U and, if it is gated, g
    below each other.
    """

    context: Float[Tensor, "G D"]
    state: Float[Tensor, "joint H"]
    state_bias: Float[Tensor, " joint"]
    score: Float[Tensor, " F"]

    @property
    def parts(self) -> list[int]:
        """How what comes of the state divides into query, gates of the cell, and the gate."""
        query, gates = len(self.score), len(self.context)
        return [query, gates, len(self.state) - query - gates]


class AttendedSteps(NamedTuple):
    """What all steps gave, one after another: the rows of the first step, of the second, …

    `drawn` are the places of single glances, `cell` is an LSTM's after the last step.
    """

    states: Float[Tensor, "words H"]
    reads: Float[Tensor, "words D"]
    weights: Float[Tensor, "words S"]
    drawn: Int[Tensor, "words 1"] | None
    cell: Float[Tensor, "last H"] | None

    def used(self, hard: Float[Tensor, ""] | None) -> Float[Tensor, "words S"]:
        """The weights with which values were read."""
        weights = self.weights.detach()
        return weights if hard is None or self.drawn is None else used(weights, self.drawn, hard)


def attending_rnn(
    kind: str,
    x: Float[Tensor, "words G"],
    going: list[int],
    start: tuple[Float[Tensor, "R H"], Float[Tensor, "R H"] | None],
    memory: AttentionMemory,
    weights: LoopWeights,
    *,
    asks: Float[Tensor, "words F"] | None = None,
    draw: Draw | None = None,
    hard: Float[Tensor, ""] | None = None,
) -> AttendedSteps:
    """Run the loop; the kind of the cell is one of `GATES`, and at step t the first `going[t]`
    rows go on.

    `asks` is what words add to the query. With `draw` single places are drawn, and used where
    `hard` is 1. In the weights' precision also under autocast: a state is rounded again at every
    step.
    """
    dtype = weights.state.dtype
    h, c, p = (None if part is None else part.to(dtype) for part in (*start, asks))
    loop = Loop(GATES[kind], going, draw, hard)
    with torch.autocast(x.device.type, enabled=False):
        inputs = x.to(dtype).contiguous(), h, c, p, *memory.to(dtype), *weights
        return AttendedSteps(*AttendingRnn.apply(loop, *inputs))


class Loop(NamedTuple):
    """The choices of a loop."""

    gates: Gates
    going: list[int]
    draw: Draw | None
    hard: Float[Tensor, ""] | None


class TapedStep(NamedTuple):
    """What a step leaves behind for its gradient."""

    query: Float[Tensor, "n F"]  # doubled
    weights: Float[Tensor, "n S"]
    used: Float[Tensor, "n S"]
    found: Float[Tensor, "n D"]  # before the gate
    gate: Float[Tensor, "n 1"] | None
    cell: Kept


class AttendingRnn(torch.autograd.Function):
    """The loop, and the loop back."""

    @staticmethod
    def forward(ctx: Any, loop: Loop, x: Tensor, h: Tensor, c: Any, p: Any, *rest: Any) -> Any:
        whole, weights = AttentionMemory(2 * rest[0], *rest[1:3]), LoopWeights(*rest[3:])
        first, w, tape = h, 2 * weights.score, list[TapedStep]()
        asked = [None] * len(loop.going) if p is None else p.split(loop.going)
        passed: list[tuple[Tensor, ...]] = []
        for from_words, of_word in zip(x.split(loop.going), asked):
            n = len(from_words)
            h, c, memory = h[:n], None if c is None else c[:n], whole.select(slice(n))
            joint = torch.addmm(weights.state_bias, h, weights.state.T)
            q, u, g = joint.split(weights.parts, dim=1)
            q = 2 * (q if of_word is None else q + of_word)
            a, chosen, found, drawn = glance(q, memory, w, loop.draw, loop.hard)
            gate = g.sigmoid() if g.shape[1] else None
            read = found if gate is None else gate * found
            into = torch.addmm(from_words, read, weights.context.T)
            (h, c), kept = loop.gates.step(into, u, (h, c))
            passed.append((h, read, a[:, 0], *drawn))
            if any(ctx.needs_input_grad):
                tape.append(TapedStep(q, a[:, 0], chosen[:, 0], found, gate, kept))
        states, reads, looked, *drawn = (torch.cat(parts) for parts in zip(*passed))
        ctx.loop, ctx.tape, ctx.asked, ctx.has_cell = loop, tape, p is not None, c is not None
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*drawn)
        ctx.save_for_backward(first, states, reads, *whole, *rest[3:])
        # A copy: on CUDA the tape keeps the last cell state, and what is given out leads to it.
        return states, reads, looked, drawn[0] if drawn else None, None if c is None else c.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        first, states, reads, *rest = ctx.saved_tensors
        memory, going = AttentionMemory(*rest[:3]), ctx.loop.going
        d_states, d_reads, d_weights, _, dc = grads
        d_states = torch.zeros_like(states) if d_states is None else d_states
        d_reads = torch.zeros_like(reads) if d_reads is None else d_reads
        if dc is None and ctx.has_cell:
            dc = torch.zeros_like(first[: going[-1]])
        looks = [None] * len(going) if d_weights is None else d_weights.contiguous().split(going)
        with torch.autocast(first.device.type, enabled=False):
            back = LoopGradients(ctx.loop, first, memory, LoopWeights(*rest[3:]), dc)
            steps = zip(ctx.tape, d_states.split(going), d_reads.split(going), looks)
            for step in reversed(list(steps)):
                back.step(*step)
            before = [first, *(h[:n] for h, n in zip(states.split(going), going[1:]))]
            chosen = [taped.used for taped in ctx.tape]
            found = back.gradients(torch.cat(before), reads, chosen, asked=ctx.asked)
        return None, *found


def glance(
    q: Float[Tensor, "R F"],
    memory: AttentionMemory,
    w: Float[Tensor, " F"],
    draw: Draw | None,
    hard: Float[Tensor, ""] | None,
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
    """Weights, those that are used, what is read with these, and the places drawn; no graph.

    All but the weight of the gate is doubled, as `look` wants it.
    """
    a, found = look(q, memory, w)
    if draw is None or hard is None:
        return a, a, found, ()
    drawn = draw(a)
    chosen = used(a, drawn, hard)
    return a, chosen, (chosen @ memory.values).flatten(0, 1), (drawn.flatten(0, 1),)


def used(a: Tensor, drawn: Tensor, hard: Tensor) -> Tensor:
    """The weights themselves, or 1 at the place drawn where `hard` is 1."""
    return torch.lerp(a, torch.zeros_like(a).scatter_(-1, drawn, 1.0), hard)


class LoopGradients:
    """The gradients as they gather, from the last step to the first; rows join in."""

    def __init__(
        self,
        loop: Loop,
        first: Float[Tensor, "R H"],
        memory: AttentionMemory,
        weights: LoopWeights,
        dc: Float[Tensor, "last H"] | None,
    ) -> None:
        self._loop, self._memory, self._weights = loop, memory, weights
        self._h = torch.zeros_like(first)
        self._c = None if dc is None else F.pad(dc, (0, 0, 0, len(first) - len(dc)))
        self._keys, self._score = torch.zeros_like(memory.keys), torch.zeros_like(weights.score)
        if memory.has_kernel:  # which sums over a row's places, but not over rows
            self._score = torch.zeros_like(memory.keys[:, 0])
        self._x, self._joint, self._found = list[Tensor](), list[Tensor](), list[Tensor]()

    def step(
        self, taped: TapedStep, d_state: Tensor, d_read: Tensor, d_weights: Tensor | None
    ) -> None:
        """One step back: keep what the sums over all steps need."""
        n, weights = len(d_state), self._weights
        dc = None if self._c is None else self._c[:n]
        slope = self._loop.gates.back(self._h[:n] + d_state, dc, taped.cell)
        d_found = torch.addmm(d_read, slope.x, weights.context)
        d_gate: tuple[Tensor, ...] = ()
        if taped.gate is not None:
            through = (d_found * taped.found).sum(dim=1, keepdim=True)
            d_gate = (torch.ops.aten.sigmoid_backward(through, taped.gate),)
            d_found = d_found * taped.gate
        joint = torch.cat([self._look_back(taped, d_found, d_weights), slope.u, *d_gate], dim=1)
        self._h[:n] = slope.hidden.addmm_(joint, weights.state)
        if self._c is not None and slope.cell is not None:
            self._c[:n] = slope.cell
        for kept, new in zip((self._x, self._joint, self._found), (slope.x, joint, d_found)):
            kept.append(new)

    def _look_back(self, taped: TapedStep, d_found: Tensor, d_weights: Tensor | None) -> Tensor:
        """Through the weights; what a single glance found says nothing of these."""
        n, w, hard = len(d_found), self._weights.score, self._loop.hard
        keys, values, _ = self._memory.select(slice(n))
        d_found = d_found if hard is None else d_found * (1 - hard)
        if self._memory.has_kernel:
            from saccade.attention.kernels.train.additive_step import look_back

            onto = self._keys[:n], self._score[:n]
            return look_back(d_found, d_weights, taped.weights, taped.query, keys, values, w, onto)
        da = (d_found[:, None] @ values.mT)[:, 0]
        da = da if d_weights is None else d_weights + da
        de = torch.ops.aten._softmax_backward_data(da, taped.weights, -1, da.dtype)[:, None]
        onto = self._keys[:n], self._score
        return doubled_gradient(de, taped.query[:, None], keys, onto=onto)[:, 0].mul_(w)

    def gradients(
        self, before: Tensor, reads: Tensor, chosen: list[Tensor], *, asked: bool
    ) -> tuple[Tensor | None, ...]:
        """All of them, in the order of the inputs: each of a weight is one product."""
        dx, joint = torch.cat(self._x[::-1]), torch.cat(self._joint[::-1])
        score = self._score.view(-1, self._score.shape[-1]).sum(0)
        of_weights = LoopWeights(dx.T @ reads, joint.T @ before, joint.sum(0), score)
        of_values = _by_row(chosen).mT @ _by_row(self._found[::-1])
        of_keys = self._keys.mul_(self._weights.score)
        asks = joint[:, : len(score)] if asked else None
        return dx, self._h, self._c, asks, of_keys, of_values, None, *of_weights


def _by_row(steps: list[Tensor]) -> Float[Tensor, "R T D"]:
    """Step by step into row by row, with zeros where a row has ended."""
    if len(steps[0]) == len(steps[-1]):
        return torch.stack(steps, dim=1)
    whole = steps[0].new_zeros(len(steps[0]), len(steps), steps[0].shape[1])
    for time, step in enumerate(steps):
        whole[: len(step), time] = step
    return whole

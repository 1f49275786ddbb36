"""An LSTM that looks before each of its steps, softly or at a single place, in a lean loop.

    aₜ = softmax over i of wᵀ tanh(Q hₜ₋₁ + pₜ + kᵢ)        rₜ = σ(g hₜ₋₁) Σᵢ uₜᵢ vᵢ
    hₜ = LSTM(xₜ + C rₜ, U hₜ₋₁)

x and p come of the words, p only where they have a say in the look. u is a, or 1 at the one place
that is drawn from a and 0 elsewhere. Rows stand in the order of their lengths and leave when they
end. Gradients of what all steps share gather in place.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.kernels.train.additive import (
    by_sigmoid,
    doubled_gradient,
    doubled_score,
    score,
    score_gradient,
)
from saccade.blocks.recurrent.attending_rnn import Looked, look_once
from saccade.blocks.recurrent.gates import GATES, Kept

LSTM = GATES["lstm"]
Draw = Callable[[Float[Tensor, "B k S"]], Int[Tensor, "B k 1"]]


class GlanceWeights(NamedTuple):
    """What a step multiplies with; G is the width of all gates of the cell.

    `state` is what the state before it is multiplied with at once: Q, U and g below each other.
    """

    context: Float[Tensor, "G D"]
    state: Float[Tensor, "joint H"]
    state_bias: Float[Tensor, " joint"]
    score: Float[Tensor, " F"]

    @property
    def parts(self) -> list[int]:
        """How what comes of the state divides into query, gates of the cell, and the gate."""
        return [len(self.score), len(self.context), 1]


class Glanced(NamedTuple):
    """What all steps gave, one after another: the rows of the first step, of the second, …

    `drawn` are the places of single glances; zeros where nothing is drawn.
    """

    states: Float[Tensor, "words H"]
    reads: Float[Tensor, "words D"]
    weights: Float[Tensor, "words S"]
    drawn: Int[Tensor, "words 1"]

    def used(self, hard: Float[Tensor, ""] | None) -> Float[Tensor, "words S"]:
        """The weights with which values were read."""
        weights = self.weights.detach()
        return weights if hard is None else _used(weights, self.drawn, hard)


def glancing_rnn(
    x: Float[Tensor, "words G"],
    going: list[int],
    start: tuple[Float[Tensor, "R H"], Float[Tensor, "R H"]],
    memory: tuple[Float[Tensor, "R S F"], Float[Tensor, "R S D"]],
    weights: GlanceWeights,
    *,
    asks: Float[Tensor, "words F"] | None = None,
    draw: Draw | None = None,
    hard: Float[Tensor, ""] | None = None,
) -> Glanced:
    """Run the loop; at step t the first `going[t]` rows go on.

    `asks` is what words add to the query. With `draw` single places are drawn, and used where
    `hard` is 1. In the weights' precision also under autocast: a state is rounded again at every
    step.
    """
    dtype = weights.state.dtype
    inputs = [part.to(dtype).contiguous() for part in (x, *start, *memory)]
    asks = None if asks is None else asks.to(dtype)
    with torch.autocast(x.device.type, enabled=False):
        return Glanced(*GlancingRnn.apply(going, draw, hard, asks, *inputs, *weights))


class Taped(NamedTuple):
    """What a step leaves behind for its gradient."""

    query: Float[Tensor, "n F"]
    weights: Float[Tensor, "n S"]
    used: Float[Tensor, "n S"]
    found: Float[Tensor, "n D"]  # before the gate
    gate: Float[Tensor, "n 1"]
    cell: Kept


class GlancingRnn(torch.autograd.Function):
    """The loop, and the loop back."""

    @staticmethod
    def forward(
        ctx: Any,
        going: list[int],
        draw: Draw | None,
        hard: Tensor | None,
        asks: Tensor | None,
        *inputs: Tensor,
    ) -> Any:
        x, h, c, keys, values, *rest = inputs
        weights, first, whole = GlanceWeights(*rest), h, ready(Looked(keys, values, None))
        ctx.going, ctx.hard, ctx.tape, ctx.asked = going, hard, [], asks is not None
        asked = [None] * len(going) if asks is None else asks.split(going)
        passed: list[tuple[Tensor, ...]] = []
        for from_words, of_word in zip(x.split(going), asked):
            n = len(from_words)
            h, c, memory = h[:n], c[:n], Looked(whole.keys[:n], values[:n], None)
            joint = torch.addmm(weights.state_bias, h, weights.state.T)
            q, u, g = joint.split(weights.parts, dim=1)
            q = q if of_word is None else q + of_word
            a, used, found, drawn = (
                part[:, 0] for part in glance(q[:, None], memory, weights.score, draw, hard)
            )
            gate = g.sigmoid()
            read = gate * found
            into = torch.addmm(from_words, read, weights.context.T)
            (h, c), kept = LSTM.step(into, u, (h, c))
            assert c is not None
            passed.append((h, read, a, drawn))
            if any(ctx.needs_input_grad):
                ctx.tape.append(Taped(q, a, used, found, gate, kept))
        states, reads, looked, drawn = (torch.cat(parts) for parts in zip(*passed))
        ctx.mark_non_differentiable(drawn)
        ctx.save_for_backward(first, states, reads, whole.keys, values, *rest)
        return states, reads, looked, drawn

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        first, states, reads, keys, values, *rest = ctx.saved_tensors
        going: list[int] = ctx.going
        back = Back(first, keys, values, GlanceWeights(*rest), ctx.hard)
        steps = zip(ctx.tape, *(grad.split(going) for grad in grads[:3]))
        for step in reversed(list(steps)):
            back.step(*step)
        passed = states.split(going)
        before = [first, *(h[:n] for h, n in zip(passed, going[1:]))]
        used = [taped.used for taped in ctx.tape]
        d_asks = back.queries() if ctx.asked else None
        return None, None, None, d_asks, *back.gradients(torch.cat(before), reads, used)


def glance(
    q: Float[Tensor, "B k F"],
    memory: Looked,
    w: Float[Tensor, " F"],
    draw: Draw | None,
    hard: Float[Tensor, ""] | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights, those that are used, what is found with these, and the place drawn; no graph.

    The memory has been made `ready`.
    """
    if by_sigmoid(q):
        a = doubled_score(2 * q, memory.keys, 2 * w).softmax(dim=-1)
        found = a @ memory.values
    elif q.shape[1] == 1:
        a, found = look_once(q[:, 0].contiguous(), memory, w)
        found = found[:, None]
    else:
        a = score(q, memory.keys, w).softmax(dim=-1)
        found = a @ memory.values
    if draw is None or hard is None:
        return a, a, found, torch.zeros_like(a[..., :1], dtype=torch.long)
    drawn = draw(a)
    used = _used(a, drawn, hard)
    return a, used, used @ memory.values, drawn


def ready(memory: Looked) -> Looked:
    """With keys as they are asked for many times: doubled where the score is by σ."""
    return memory._replace(keys=2 * memory.keys) if by_sigmoid(memory.keys) else memory


def _used(a: Tensor, drawn: Tensor, hard: Tensor) -> Tensor:
    return torch.lerp(a, torch.zeros_like(a).scatter_(-1, drawn, 1.0), hard)


class Back:
    """The gradients as they gather, from the last step to the first; rows join in."""

    def __init__(
        self,
        first: Tensor,
        keys: Tensor,
        values: Tensor,
        weights: GlanceWeights,
        hard: Tensor | None,
    ) -> None:
        self._keys, self._values, self._weights, self._hard = keys, values, weights, hard
        self._h, self._c = torch.zeros_like(first), torch.zeros_like(first)
        self._of_keys, self._score = torch.zeros_like(keys), torch.zeros_like(weights.score)
        self._x: list[Tensor] = []
        self._joint: list[Tensor] = []
        self._found: list[Tensor] = []

    def step(self, taped: Taped, d_state: Tensor, d_read: Tensor, d_weights: Tensor) -> None:
        """One step back: keep what the sums over all steps need."""
        n, weights = len(d_state), self._weights
        slope = LSTM.back(self._h[:n] + d_state, self._c[:n], taped.cell)
        assert slope.cell is not None
        d_read = torch.addmm(d_read, slope.x, weights.context)
        d_gate = (d_read * taped.found).sum(dim=1, keepdim=True)
        d_gate = torch.ops.aten.sigmoid_backward(d_gate, taped.gate)
        d_found = d_read * taped.gate
        dq = self._look_back(taped, d_found, d_weights)
        joint = torch.cat([dq, slope.u, d_gate], dim=1)
        self._h[:n] = slope.hidden.addmm_(joint, weights.state)
        self._c[:n] = slope.cell
        for kept, new in zip((self._x, self._joint, self._found), (slope.x, joint, d_found)):
            kept.append(new)

    def _look_back(self, taped: Taped, d_found: Tensor, d_weights: Tensor) -> Tensor:
        """Through the weights; what a single glance found says nothing of these."""
        n = len(d_found)
        keys, values = self._keys[:n], self._values[:n]
        da = (d_found[:, None] @ values.mT)[:, 0]
        da = d_weights + (da if self._hard is None else da * (1 - self._hard))
        de = torch.ops.aten._softmax_backward_data(da, taped.weights, -1, da.dtype)[:, None]
        q, w, onto = taped.query[:, None], self._weights.score, (self._of_keys[:n], self._score)
        if by_sigmoid(q):
            return doubled_gradient(de, 2 * q, keys, onto=onto)[:, 0].mul_(w)
        return score_gradient(de, q, keys, w, onto=onto)[:, 0]

    def queries(self) -> Float[Tensor, "words F"]:
        """Gradients of the queries of all steps."""
        return torch.cat(self._joint[::-1])[:, : len(self._weights.score)]

    def gradients(self, before: Tensor, reads: Tensor, used: list[Tensor]) -> tuple[Tensor, ...]:
        """All of them, in the order of the inputs: each of a weight is one product."""
        dx, joint = torch.cat(self._x[::-1]), torch.cat(self._joint[::-1])
        of_weights = GlanceWeights(dx.T @ reads, joint.T @ before, joint.sum(0), self._score)
        a, found = _padded(used), _padded(self._found[::-1])
        of_keys = self._of_keys.mul_(self._weights.score)
        return dx, self._h, self._c, of_keys, a.mT @ found, *of_weights


def _padded(steps: list[Tensor]) -> Float[Tensor, "R T D"]:
    """Step by step into row by row, with zeros where a row has ended."""
    whole = steps[0].new_zeros(len(steps[0]), len(steps), steps[0].shape[1])
    for time, step in enumerate(steps):
        whole[: len(step), time] = step
    return whole

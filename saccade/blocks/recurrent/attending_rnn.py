"""A recurrence that looks at a memory before each of its steps: Bahdanau's, with a lean loop.

    qₜ = Q hₜ₋₁        aₜ = softmax over i of wᵀ tanh(qₜ + kᵢ)        cₜ = Σᵢ aₜᵢ vᵢ
    hₜ = cell(xₜ + C cₜ, U hₜ₋₁)

Steps wait for one another, but only for what is written here: the words' part xₜ of the cell's
input comes from one product over all steps, and so do the gradients of all weights.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.attention.kernels.train.additive import score, score_gradient
from saccade.blocks.recurrent.gates import GATES, Gates, Gradients, Kept

MOST_PLACES = 512  # of the memory, that a kernel holds at once


class LoopWeights(NamedTuple):
    """What a step multiplies with; G is the width of all gates of the cell."""

    context: Float[Tensor, "G D"]
    hidden: Float[Tensor, "G H"]
    hidden_bias: Float[Tensor, " G"]
    query: Float[Tensor, "F H"]
    query_bias: Float[Tensor, " F"]
    score: Float[Tensor, " F"]


class Looked(NamedTuple):
    """What the queries find: keys, values, and −∞ beside what nobody may look at."""

    keys: Float[Tensor, "B S F"]
    values: Float[Tensor, "B S D"]
    hide: Float[Tensor, "B 1 S"] | None

    @classmethod
    def at(
        cls,
        keys: Float[Tensor, "B S F"],
        values: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B 1 S"] | None,
    ) -> "Looked":
        """What a mask says, as something to add; every row must see something."""
        if mask is None:
            return cls(keys, values, None)
        hide = torch.zeros(mask.shape, dtype=keys.dtype, device=keys.device)
        return cls(keys, values, hide.masked_fill_(~mask, -torch.inf))

    def select(self, rows: Int[Tensor, " B2"]) -> "Looked":
        hide = None if self.hide is None else self.hide[rows]
        return Looked(self.keys[rows], self.values[rows], hide)

    def to(self, dtype: torch.dtype) -> "Looked":
        hide = None if self.hide is None else self.hide.to(dtype)
        return Looked(self.keys.to(dtype).contiguous(), self.values.to(dtype).contiguous(), hide)


class Run(NamedTuple):
    """States and contexts of all steps, and an LSTM's last cell state."""

    states: Float[Tensor, "T B H"]
    contexts: Float[Tensor, "T B D"]
    cell: Float[Tensor, "B H"] | None


def attending_rnn(
    kind: str,
    x: Float[Tensor, "T B G"],
    start: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"] | None],
    memory: Looked,
    weights: LoopWeights,
) -> Run:
    """Run the loop; the kind of the cell is one of `GATES`.

    In the weights' precision also under autocast: a state is rounded again at every step.
    """
    dtype = weights.hidden.dtype
    h, c = start[0].to(dtype), None if start[1] is None else start[1].to(dtype)
    with torch.autocast(x.device.type, enabled=False):
        run = AttendingRnn.apply(GATES[kind], x.to(dtype), h, c, *memory.to(dtype), *weights)
    return Run(*run)


class Taped(NamedTuple):
    """What a step leaves behind for its gradient."""

    query: Float[Tensor, "B F"]
    weights: Float[Tensor, "B 1 S"]
    gates: Kept


class AttendingRnn(torch.autograd.Function):
    """The loop, and the loop back."""

    @staticmethod
    def forward(ctx: Any, gates: Gates, x: Tensor, h: Tensor, c: Tensor | None, *rest: Any) -> Any:
        memory, weights = Looked(*rest[:3]), LoopWeights(*rest[3:])
        first, ctx.gates, ctx.tape = h, gates, []
        passed: list[tuple[Tensor, Tensor]] = []
        for from_words in x.unbind():
            q = torch.addmm(weights.query_bias, h, weights.query.T)
            a, read = look_once(q, memory, weights.score)
            u = torch.addmm(weights.hidden_bias, h, weights.hidden.T)
            into = torch.addmm(from_words, read, weights.context.T)
            (h, c), kept = gates.step(into, u, (h, c))
            passed.append((h, read))
            if any(ctx.needs_input_grad):
                ctx.tape.append(Taped(q, a, kept))
        states, contexts = (torch.stack(parts) for parts in zip(*passed))
        ctx.save_for_backward(first, states, contexts, *rest)
        # A copy: on CUDA the tape keeps the last cell state, and what is given out leads to it.
        return states, contexts, None if c is None else c.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        first, states, contexts, *rest = ctx.saved_tensors
        memory, weights = Looked(*rest[:3]), LoopWeights(*rest[3:])
        d_states, d_contexts, dc = grads
        back = Back(memory, weights)
        dh = torch.zeros_like(first)
        steps = zip(ctx.tape, d_states.unbind(), d_contexts.unbind())
        for taped, d_state, d_context in reversed(list(steps)):
            slope = ctx.gates.back(dh.add_(d_state), dc, taped.gates)
            dh, dc = back.step(slope, d_context, taped), slope.cell
        before = torch.cat([first[None], states[:-1]])
        dx, *of_weights = back.products(before, contexts)
        return None, dx, dh, dc, *back.memory(ctx.tape), None, *of_weights


def _takes_kernel(memory: Looked) -> bool:
    """Whether a look can be a single kernel."""
    x = memory.keys
    fits = x.device.type == "cuda" and x.dtype != torch.float64 and 0 < x.shape[1] <= MOST_PLACES
    return fits and HAS_TRITON and not torch.compiler.is_compiling()


def look_once(
    q: Float[Tensor, "B F"], memory: Looked, w: Float[Tensor, " F"]
) -> tuple[Float[Tensor, "B 1 S"], Float[Tensor, "B D"]]:
    """Where one query of each row looks, and what it reads there; without a graph."""
    if _takes_kernel(memory):
        from saccade.attention.kernels.train.additive_step import look

        return look(q, *memory, w)
    e = score(q[:, None], memory.keys, w)  # (B, 1, S)
    a = (e if memory.hide is None else e.add_(memory.hide)).softmax(dim=-1)
    return a, (a @ memory.values)[:, 0]


class Back:
    """The gradients as they gather, from the last step to the first."""

    def __init__(self, memory: Looked, weights: LoopWeights) -> None:
        self._memory, self._weights = memory, weights
        self._x: list[Tensor] = []
        self._u: list[Tensor] = []
        self._q: list[Tensor] = []
        self._c: list[Tensor] = []
        self._keys, self._score = torch.zeros_like(memory.keys), torch.zeros_like(weights.score)
        if _takes_kernel(memory):  # which sums over a row's places, but not over rows
            self._score = torch.zeros_like(memory.keys[:, 0])

    def step(self, slope: Gradients, d_context: Tensor, taped: Taped) -> Tensor:
        """One step back: keep what the sums over all steps need, give the state's gradient."""
        weights = self._weights
        dc = torch.addmm(d_context, slope.x, weights.context)  # (B, D)
        dq = self._look_back(dc, taped)
        for kept, new in zip((self._x, self._u, self._q, self._c), (slope.x, slope.u, dq, dc)):
            kept.append(new)
        return slope.hidden.addmm_(slope.u, weights.hidden).addmm_(dq, weights.query)

    def _look_back(self, dc: Tensor, taped: Taped) -> Tensor:
        keys, values, w = self._memory.keys, self._memory.values, self._weights.score
        onto = self._keys, self._score
        if self._score.dim() == 2:
            from saccade.attention.kernels.train.additive_step import look_back

            return look_back(dc, taped.weights, taped.query, keys, values, w, onto=onto)
        da = dc[:, None] @ values.mT  # (B, 1, S)
        de = torch.ops.aten._softmax_backward_data(da, taped.weights, -1, da.dtype)
        return score_gradient(de, taped.query[:, None], keys, w, onto=onto)[:, 0]

    def memory(self, tape: list[Taped]) -> tuple[Tensor, Tensor]:
        """Gradients of keys and values."""
        a, dc = torch.cat([taped.weights for taped in tape], dim=1), torch.stack(self._c[::-1], 1)
        return self._keys.mul_(self._weights.score), a.mT @ dc

    def products(self, before: Tensor, contexts: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the words' part and of the weights: each one product over all steps."""
        dx = torch.stack(self._x[::-1])
        u, q = torch.cat(self._u[::-1]), torch.cat(self._q[::-1])  # (T·B, ·)
        x, h, c = dx.flatten(0, 1), before.flatten(0, 1), contexts.flatten(0, 1)
        w = self._score.view(-1, self._score.shape[-1]).sum(0)
        return dx, *LoopWeights(x.T @ c, u.T @ h, u.sum(0), q.T @ h, q.sum(0), w)

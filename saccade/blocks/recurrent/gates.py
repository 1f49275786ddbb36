"""One step of each recurrent cell and its gradient by hand, given what its products gave.

    vanilla   h' = tanh(x + u)
    GRU       r, z = σ(x + u)       n = tanh(x + r ⊙ u)    h' = n + z ⊙ (h − n)
    LSTM      i, f, o = σ(x + u)    g = tanh(x + u)        c' = f ⊙ c + i ⊙ g    h' = o ⊙ tanh c'

x = W [input] + b and u = U h + d stand gate below gate, in torch's order.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

State = tuple[Tensor, Tensor | None]  # h, and an LSTM's c
Kept = tuple[Tensor, ...]


class Gradients(NamedTuple):
    """What a step hands back to its two products and to the state before it."""

    x: Float[Tensor, "B G"]
    u: Float[Tensor, "B G"]
    hidden: Float[Tensor, "B H"]
    cell: Float[Tensor, "B H"] | None


@runtime_checkable
class Gates(Protocol):
    """A step, what it keeps for its gradient, and the gradient."""

    def step(self, x: Tensor, u: Tensor, state: State) -> tuple[State, Kept]: ...

    def back(self, dh: Tensor, dc: Tensor | None, kept: Kept) -> Gradients: ...


class Vanilla:
    """Implements `Gates`."""

    def step(self, x: Tensor, u: Tensor, state: State) -> tuple[State, Kept]:
        h = (x + u).tanh_()
        return (h, None), (h,)

    def back(self, dh: Tensor, dc: Tensor | None, kept: Kept) -> Gradients:
        d = torch.ops.aten.tanh_backward(dh, kept[0])
        return Gradients(d, d, torch.zeros_like(dh), None)


class Gru:
    """Implements `Gates`. On CUDA torch has each way in one kernel."""

    def step(self, x: Tensor, u: Tensor, state: State) -> tuple[State, Kept]:
        h = state[0]
        if x.is_cuda:
            after, workspace = torch.ops.aten._thnn_fused_gru_cell(x, u, h)
            return (after, None), (workspace,)
        two = 2 * h.shape[1]
        gates, inner = (x[:, :two] + u[:, :two]).sigmoid_(), u[:, two:]
        r, z = gates.chunk(2, dim=1)
        n = torch.addcmul(x[:, two:], r, inner).tanh_()
        return (torch.lerp(n, h, z), None), (gates, n, inner, h)

    def back(self, dh: Tensor, dc: Tensor | None, kept: Kept) -> Gradients:
        if dh.is_cuda:
            back = torch.ops.aten._thnn_fused_gru_cell_backward
            dx, du, before, *_ = back(dh, kept[0], False)
            return Gradients(dx, du, before, None)
        gates, n, inner, h = kept
        r, z = gates.chunk(2, dim=1)
        through = torch.ops.aten.tanh_backward(dh * (1 - z), n)
        outer = torch.cat([through * inner, dh * (h - n)], dim=1)
        both = torch.ops.aten.sigmoid_backward(outer, gates)
        dx, du = torch.cat([both, through], dim=1), torch.cat([both, through * r], dim=1)
        return Gradients(dx, du, dh * z, None)


class Lstm:
    """Implements `Gates`. On CUDA torch has each way in one kernel."""

    def step(self, x: Tensor, u: Tensor, state: State) -> tuple[State, Kept]:
        c = state[1]
        assert c is not None
        if x.is_cuda:
            h, after, workspace = torch.ops.aten._thnn_fused_lstm_cell(x, u, c)
            return (h, after), (c, after, workspace)
        i, f, g, o = (x + u).chunk(4, dim=1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        after = torch.addcmul(f * c, i, g)
        bent = after.tanh()
        return (o * bent, after), (i, f, g, o, c, bent)

    def back(self, dh: Tensor, dc: Tensor | None, kept: Kept) -> Gradients:
        assert dc is not None
        if dh.is_cuda:
            back = torch.ops.aten._thnn_fused_lstm_cell_backward_impl
            d, before, _ = back(dh, dc, *kept, False)
            return Gradients(d, d, torch.zeros_like(dh), before)
        i, f, g, o, c, bent = kept
        dc = torch.add(dc, torch.ops.aten.tanh_backward(dh * o, bent))
        sigmoid = torch.ops.aten.sigmoid_backward
        through = torch.ops.aten.tanh_backward(dc * i, g)
        parts = sigmoid(dc * g, i), sigmoid(dc * c, f), through, sigmoid(dh * bent, o)
        d = torch.cat(parts, dim=1)
        return Gradients(d, d, torch.zeros_like(dh), dc * f)


GATES: dict[str, Gates] = {"vanilla": Vanilla(), "gru": Gru(), "lstm": Lstm()}

"""A stack of Transformer layers stripped for decoding: what training needs is gone.

No dropout, no gradients, no watchers; projections of the same input are one product, a residual
and the norm after it one function. What is attended to lies outside, in a `Memory`, so the same
stack reads a whole source, a prompt, or one more word.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.inference.affine import Affine, Precision, affine
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.mlp import GELUS, FeedForward, gelu_tanh
from saccade.blocks.residual import PreNorm


@runtime_checkable
class Memory(Protocol):
    """Where the attention of each layer looks."""

    def look_back(self, layer: int, qkv: Float[Tensor, "R joined"]) -> Float[Tensor, "R D"]:
        """What the layer's own attention reads, with the new keys and values in sight."""
        ...

    def look_across(self, layer: int, q: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """What the layer reads of the source."""
        ...


MANY_ROWS = 4096  # from which our norm beats torch's
Sublayer = Callable[[Float[Tensor, "R D"], Memory], Float[Tensor, "R D"]]


class Norm(NamedTuple):
    """A layer norm's numbers."""

    weight: Float[Tensor, " D"]
    bias: Float[Tensor, " D"]
    eps: float


class LeanStack:
    """Layers of an encoder or a decoder as one list of sublayers, each with the norm after it.

        post-norm   x ← norm(x + f(x))
        pre-norm    s ← s + f(x),  x ← the next sublayer's norm(s)

    Refuses norms other than LayerNorm: `can_be_lean` tells.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        last: nn.Module,
        precision: Precision,
        *,
        pre: bool = False,
    ) -> None:
        self.sublayers: list[Sublayer] = []
        norms: list[Norm] = []
        self.pre = pre  # where there is no layer to tell
        for number, layer in enumerate(layers):
            for around, sublayer in _sublayers(layer, number, precision):
                self.sublayers.append(sublayer)
                norms.append(norm_of(around.norm, precision))
                self.pre = isinstance(around, PreNorm)
        if self.pre:
            norms.append(norm_of(last, precision))
        self.first = norms.pop(0) if self.pre else None
        self.norms = norms

    def __call__(self, x: Float[Tensor, "R D"], memory: Memory) -> Float[Tensor, "R D"]:
        return self.sums(x, memory)[1]

    def sums(
        self, x: Float[Tensor, "R D"], memory: Memory
    ) -> tuple[Float[Tensor, "R D"], Float[Tensor, "R D"]]:
        """The last sum before its norm, and after."""
        total = x
        if self.first is not None:
            x = _normed(x, self.first)
        for sublayer, norm in zip(self.sublayers, self.norms):
            total, x = add_norm(total, sublayer(x, memory), norm)
            total = total if self.pre else x
        return total, x


def _normed(x: Float[Tensor, "R D"], norm: Norm) -> Float[Tensor, "R D"]:
    if len(x) >= MANY_ROWS and runs_kernels(x):
        from saccade.blocks.kernels.residual import norm_beside

        return norm_beside(x, *norm)[0]
    return F.layer_norm(x, x.shape[-1:], *norm)


def add_norm(
    x: Float[Tensor, "R D"], y: Float[Tensor, "R D"], norm: Norm
) -> tuple[Float[Tensor, "R D"], Float[Tensor, "R D"]]:
    """A residual and the norm after it; `y` is overwritten by the sum.

    s = x + y        LayerNorm(s)
    """
    if runs_kernels(x):
        from saccade.blocks.inference import lean_kernels

        return lean_kernels.add_norm(x, y, *norm)
    total = y.add_(x)
    return total, F.layer_norm(total, total.shape[-1:], *norm)


def embed(
    tokens: Int[Tensor, " R"],
    table: Float[Tensor, "V D"],
    scale: float,
    positions: Float[Tensor, "T D"],
    clock: Int[Tensor, " 2"],
    dtype: torch.dtype,
) -> Float[Tensor, "R D"]:
    """Words as vectors at the position that the clock shows, its two numbers together.

    x = scale · E[word] + P[time]
    """
    if runs_kernels(table):
        from saccade.blocks.inference import lean_kernels

        return lean_kernels.embed(tokens, table, scale, positions, clock, dtype)
    return (table[tokens] * scale + positions[clock.sum()]).to(dtype)


def can_be_lean(model: nn.Module) -> bool:
    """Whether all residuals have the norm that the stack knows."""
    around = (m.norm for m in model.modules() if type(m).__name__ in ("PreNorm", "PostNorm"))
    return all(isinstance(norm, nn.LayerNorm) for norm in around)


def norm_of(norm: Any, precision: Precision) -> Norm:
    weight, bias = norm.weight.detach(), norm.bias.detach()
    if precision == "bfloat16":
        weight, bias = weight.bfloat16(), bias.bfloat16()
    return Norm(weight, bias, norm.eps)


def _sublayers(layer: Any, number: int, precision: Precision) -> list[tuple[Any, Sublayer]]:
    found = [
        (
            layer.around_self if hasattr(layer, "around_self") else layer.around_attention,
            _looking_back(layer.self_attention, number, precision),
        )
    ]
    if hasattr(layer, "cross_attention"):
        found.append(
            (layer.around_cross, _looking_across(layer.cross_attention, number, precision))
        )
    return [*found, (layer.around_mlp, thinking(layer.mlp, precision))]


def joined(layers: Sequence[nn.Linear], precision: Precision) -> Affine:
    """Several layers of the same input as one."""
    weight = torch.cat([layer.weight.detach() for layer in layers])
    bias = torch.cat([layer.bias.detach() for layer in layers])
    return affine(weight, bias, precision=precision)


def _looking_back(attention: Any, number: int, precision: Precision) -> Sublayer:
    qkv = joined([attention.to_q, attention.to_k, attention.to_v], precision)
    output = joined([attention.to_output], precision)
    return lambda x, memory: output(memory.look_back(number, qkv(x)))


def _looking_across(attention: Any, number: int, precision: Precision) -> Sublayer:
    q = joined([attention.to_q], precision)
    output = joined([attention.to_output], precision)
    return lambda x, memory: output(memory.look_across(number, q(x)))


def thinking(mlp: FeedForward, precision: Precision) -> Sublayer:
    relu = mlp.activation is F.relu
    widen = affine(mlp.widen.weight, mlp.widen.bias, precision=precision, relu=relu)
    narrow = affine(mlp.narrow.weight, mlp.narrow.bias, precision=precision)
    if relu:
        return lambda x, memory: narrow(widen(x))
    return lambda x, memory: narrow(_bent(widen(x), mlp.activation))


def _bent(x: Float[Tensor, "R F"], activation: Callable[[Tensor], Tensor]) -> Float[Tensor, "R F"]:
    """The activation of what nobody else needs any more."""
    if activation in GELUS and runs_kernels(x):
        from saccade.blocks.kernels.gelu import gelu_

        return gelu_(x, tanh=activation is gelu_tanh)
    return activation(x)

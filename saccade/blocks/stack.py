"""A stack of Transformer blocks, run by one program: training, packed, cached and captured.

A block declares its sublayers, each with the residual around it. Where attention finds keys and
values lies outside, in an `AttentionContext`: a padded batch, sequences end to end, caches of
beams, or fixed places. For inference the same sublayers are packed once; no other step is written.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from saccade.attention.attend import Mask
from saccade.attention.kernels.train.linear import Linear, defers_bias, together
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.sparse import LayerMasks
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.packed import PackedAttention, PackedResidual, Projection
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import Residual, Sums

Compute = Callable[..., Float[Tensor, "*batch D"]]  # of x and an AttentionContext


@runtime_checkable
class AttentionContext(Protocol):
    """Where the attention of each layer looks. A site projects; it may be packed."""

    def look_back(self, layer: int, site: Any, x: Float[Tensor, "*batch D"]) -> Tensor:
        """What the layer's own attention reads, with the new keys and values in sight."""
        ...

    def look_across(self, layer: int, site: Any, x: Float[Tensor, "*batch D"]) -> Tensor:
        """What the layer reads of the source."""
        ...


@dataclass(frozen=True)
class WholeSequences:
    """All positions are there at once, in a padded batch or end to end; implements
    `AttentionContext` for training and teacher-forced reading, and shows it to watchers.

    With `layer_masks` each layer looks back by a mask of its own.
    """

    mask: Mask = None
    causal: bool = False
    source: Float[Tensor, "B S D"] | None = None
    source_mask: Mask = None
    layer_masks: LayerMasks | None = None

    def look_back(self, layer: int, site: MultiHeadAttention, x: Tensor) -> Tensor:
        if self.layer_masks is not None:
            mask = self.layer_masks.between(layer, 0, x.shape[1], x.device)
            return site.read(x, x, mask=mask)
        return site.read(x, x, mask=self.mask, causal=self.causal)

    def look_across(self, layer: int, site: MultiHeadAttention, x: Tensor) -> Tensor:
        assert self.source is not None
        return site.read(x, self.source, mask=self.source_mask)


class AttentionPass(ABC):
    """What attention adds, as a function of x and a memory; `needs` are the products it takes.

    f(x) = Wo · what the heads read
    """

    needs: ClassVar[tuple[Projection, ...]]

    def __init__(self, layer: int, site: Any, output: Callable[[Tensor], Tensor]) -> None:
        self.layer, self.site, self.output = layer, site, output

    @abstractmethod
    def __call__(self, x: Float[Tensor, "*batch D"], memory: Any) -> Tensor: ...


class LookBack(AttentionPass):
    """At the positions of x, and at what came before."""

    needs = ("qkv",)

    def __call__(self, x: Float[Tensor, "*batch D"], memory: AttentionContext) -> Tensor:
        return self.output(memory.look_back(self.layer, self.site, x))


class LookAcross(AttentionPass):
    """At the source."""

    needs = ("q",)

    def __call__(self, x: Float[Tensor, "*batch D"], memory: AttentionContext) -> Tensor:
        return self.output(memory.look_across(self.layer, self.site, x))


class Attending(NamedTuple):
    """Multi-head attention as a part of a block, and the residual around it.

    The gradient of its last bias may be left to whoever adds what it computes.
    """

    residual: Residual
    site: MultiHeadAttention
    look: type[AttentionPass]
    layer: int

    @property
    def bias(self) -> Float[Tensor, " D"]:
        return self.site.to_output.bias

    def compute(self, *, defer_bias: bool) -> Compute:
        output = self.site.to_output
        later = partial(_with_deferred_bias, output)
        return self.look(self.layer, self.site, later if defer_bias else output)

    def packed(self, precision: Precision) -> Compute:
        site = PackedAttention(self.site, precision, self.look.needs, self.residual.scale)
        return self.look(self.layer, site, site.output)


def _with_deferred_bias(layer: Linear, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch E"]:
    return together(x, layer, defer_bias=True)


class Thinking(NamedTuple):
    """The MLP as a part of a block: nothing is looked at."""

    residual: Residual
    mlp: FeedForward

    @property
    def bias(self) -> Float[Tensor, " D"]:
        return self.mlp.narrow.bias

    def compute(self, *, defer_bias: bool) -> Compute:
        return partial(_alone, partial(self.mlp, defer_bias=True) if defer_bias else self.mlp)

    def packed(self, precision: Precision) -> Compute:
        return partial(_alone, self.mlp.packed(precision, self.residual.scale))


def _alone(
    think: Callable[[Tensor], Tensor], x: Float[Tensor, "*batch D"], memory: AttentionContext
) -> Float[Tensor, "*batch D"]:
    return think(x)


Sublayer = Attending | Thinking


class Block(nn.Module, ABC):
    """One layer of a Transformer, declared by its sublayers.

    A stack runs the sublayers of all its blocks as one program, unless they are to be `separate`:
    then it calls block after block, so that each can get its weights just before it runs and give
    them back after. One that is to `recompute` keeps its input alone, and computes all else anew
    for the gradient (Chen et al. 2016, arXiv:1604.06174), with the same random numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.separate = self.recompute = False

    @abstractmethod
    def sublayers(self, layer: int) -> list[Sublayer]:
        """In the order in which they run; `layer` is the block's number in its stack."""

    def forward(
        self, x: Float[Tensor, "*batch D"], memory: AttentionContext, layer: int = 0
    ) -> Float[Tensor, "*batch D"]:
        """The block by itself, without the norm after a pre-norm stack."""
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(self._run, x, memory, layer, use_reentrant=False)
        return self._run(x, memory, layer)

    def _run(self, x: Tensor, memory: AttentionContext, layer: int) -> Float[Tensor, "*batch D"]:
        return stacked(self.sublayers(layer), nn.Identity(), x)(x, memory)


def run_blocks(
    blocks: Iterable[nn.Module], last: nn.Module, x: Float[Tensor, "*batch D"], memory: Any
) -> Float[Tensor, "*batch D"]:
    """Through all blocks as they are trained, and through the norm after them."""
    blocks = list(blocks)
    if not any_separate(blocks):
        return stacked(sublayers(blocks), last, x)(x, memory)
    for number, block in enumerate(blocks):
        x = block(x, memory, number)
    return last(x)


def any_separate(blocks: Iterable[nn.Module]) -> bool:
    """Whether they must be called one by one."""
    return any(isinstance(block, Block) and block.separate for block in blocks)


def sublayers(blocks: Iterable[nn.Module]) -> list[Sublayer]:
    """Those of all blocks, one after another."""
    found: list[Sublayer] = []
    for number, block in enumerate(blocks):
        assert isinstance(block, Block)
        found += block.sublayers(number)
    return found


class Stack(NamedTuple):
    """Sublayers one after another, each with the sum and the norm after it.

    post-norm   x ← norm(x + f(x))
    pre-norm    s ← s + f(x),  x ← the next sublayer's norm(s)
    """

    enter: Callable[[Tensor], Sums]
    steps: Sequence[tuple[Compute, Callable[[Tensor, Tensor], Sums]]]

    def __call__(self, x: Float[Tensor, "*batch D"], memory: Any) -> Float[Tensor, "*batch D"]:
        return self.sums(x, memory)[1]

    def sums(self, x: Float[Tensor, "*batch D"], memory: Any) -> Sums:
        """The last sum before its norm, and after."""
        total, x = self.enter(x)
        for compute, add in self.steps:
            total, x = add(total, compute(x, memory))
        return total, x


def stacked(parts: list[Sublayer], last: nn.Module, like: Float[Tensor, "*batch D"]) -> Stack:
    """Sublayers as trained, and the norm after the last; kernels serve where they take `like`."""
    later = runs_kernels(like) and defers_bias(like)
    steps: list[tuple[Compute, Callable[[Tensor, Tensor], Sums]]] = []
    for part, norm in zip(parts, _norms(parts, last)):
        residual = part.residual
        defer = later and residual.pre and residual.bare and isinstance(norm, nn.LayerNorm)
        add = partial(part.residual.after, following=norm, bias=part.bias if defer else None)
        steps.append((part.compute(defer_bias=defer), add))
    return Stack(parts[0].residual.before if parts else _nothing_before, steps)


def packed(parts: list[Sublayer], last: nn.Module, precision: Precision) -> Stack:
    """The same for inference: weights joined, cast and packed once; no dropout, no gradients."""
    steps = [
        (part.packed(precision), PackedResidual(part.residual, norm, precision).after)
        for part, norm in zip(parts, _norms(parts, last))
    ]
    return Stack(PackedResidual(parts[0].residual, parts[0].residual.norm, precision).before, steps)


def stack_for(
    parts: list[Sublayer],
    last: nn.Module,
    precision: Precision | None,
    like: Float[Tensor, "*batch D"],
) -> Stack:
    """Packed in this precision; without one, as trained."""
    return stacked(parts, last, like) if precision is None else packed(parts, last, precision)


def packable(parts: list[Sublayer]) -> bool:
    """Whether all residuals have the norm that packed stacks know, and all attention is plain."""
    local = any(isinstance(part, Attending) and part.site.locality is not None for part in parts)
    return not local and all(isinstance(part.residual.norm, nn.LayerNorm) for part in parts)


def _norms(parts: list[Sublayer], last: nn.Module) -> list[nn.Module]:
    """For each sublayer the norm that comes next."""
    return [*(part.residual.norm for part in parts[1:]), last]


def _nothing_before(x: Float[Tensor, "*batch D"]) -> Sums:
    return x, x

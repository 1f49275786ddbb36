"""C6: stacked self-attention without MLPs is linear in the values."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.mlp import FeedForward

WIDTH, HEADS, WORDS = 64, 4, 24
DEPTHS = (1, 2, 4, 6, 8, 12)
FLOOR = 1e-9


@dataclass(frozen=True)
class FixedStack:
    """Layers of self-attention whose queries and keys come from one reference input.

        hˡ⁺¹ = Aˡ(hˡ) hˡ        zˡ⁺¹ = Aˡ(hˡ) zˡ, then zˡ⁺¹ + MLP(zˡ⁺¹) where there is one

    So all weights A are fixed, and only the values z vary.
    """

    layers: list[MultiHeadAttention]
    mlps: list[FeedForward]
    reference: Float[Tensor, "B T D"]

    def __call__(self, z: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        h = self.reference
        for number, layer in enumerate(self.layers):
            h, z = layer(h, h), layer(h, h, z)
            if self.mlps:
                h, z = h + self.mlps[number](h), z + self.mlps[number](z)
        return z


@torch.no_grad()
def superposition_error(
    stack: FixedStack, u: Float[Tensor, "B T D"], v: Float[Tensor, "B T D"]
) -> float:
    """How far a function is from being affine: zero where it is, whatever its constant.

    ‖f(½u + ½v) − ½f(u) − ½f(v)‖ / ‖½f(u) − ½f(v)‖
    """
    both, first, second = stack((u + v) / 2), stack(u), stack(v)
    return ((both - (first + second) / 2).norm() / ((first - second) / 2).norm()).item()


def fixed_stack(depth: int, *, thinks: bool, seed: int) -> FixedStack:
    """Fresh layers; weights are scaled so that what they read keeps its size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [MultiHeadAttention(WIDTH, heads=HEADS) for _ in range(depth)]
        mlps = [FeedForward(WIDTH, hidden=4 * WIDTH) for _ in range(depth if thinks else 0)]
        for layer in layers:
            for linear in (layer.to_v, layer.to_output):
                nn.init.orthogonal_(linear.weight, gain=1.5)
        return FixedStack(layers, mlps, torch.randn(4, WORDS, WIDTH))


def _error(depth: int, seed: int, *, thinks: bool) -> float:
    rng = torch.Generator().manual_seed(seed)
    u, v = (torch.randn(4, WORDS, WIDTH, generator=rng) for _ in range(2))
    stack = fixed_stack(depth, thinks=thinks, seed=seed)
    return max(FLOOR, superposition_error(stack, u, v))


def _measure(work: Workshop) -> Finding:
    lines = {
        name: tuple(
            over_seeds(depth, [_error(depth, seed, thinks=thinks) for seed in work.seeds])
            for depth in DEPTHS
        )
        for name, thinks in (("with MLPs", True), ("attention alone", False))
    }
    bent, straight = lines.values()
    return Finding(
        verdict=f"With fixed weights, {DEPTHS[-1]} layers of self-attention miss superposition by "
        f"{straight[-1].mean:.0e} of their output, which is rounding; with an MLP after each by "
        f"{100 * bent[-1].mean:.0f} %, and by {100 * bent[0].mean:.0f} % after one layer.",
        holds=max(mark.high for mark in straight) < 1e-4 and min(mark.low for mark in bent) > 1e-2,
        head=("layers", "attention alone", "with MLPs"),
        rows=tuple(
            (str(depth), f"{one.mean:.1e}", f"{other.mean:.1e}")
            for depth, one, other in zip(DEPTHS, straight, bent)
        ),
        lines=(
            LinePanel(
                title="Distance from a linear map",
                x_title="layers",
                y_title="error of superposition",
                lines=lines,
                log_y=True,
            ),
        ),
    )


CLAIM = LectureClaim(
    key="C6",
    title="Self-attention alone is linear in the values",
    claim="For given weights each layer of self-attention is a linear map of its values, and so is "
    "any stack of them. An MLP between the layers makes it non-linear.",
    expect="The line of attention alone lies at rounding, however deep; the line with MLPs lies "
    "many powers of ten above.",
    seconds=3,
    measure=_measure,
)

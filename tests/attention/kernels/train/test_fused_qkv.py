"""Parts of a joint product, in Triton's interpreter: torch's views, and their gradients."""

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

HEADS = 2
CASES = {  # rows, positions, width of a part, parts
    "one block": (2, 3, 8, 3),
    "odd": (3, 7, 10, 3),
    "many rows for few programs": (5, 20, 6, 3),
    "wide": (2, 3, 300, 3),
    "two parts": (2, 3, 8, 2),
}


def inputs(name: str) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """A product, the biases in it, and what flows back to each part."""
    B, T, D, parts = CASES[name]
    rng = torch.Generator().manual_seed(len(name))
    joint = torch.randn(B, T, parts * D, generator=rng)
    biases = [torch.randn(D, generator=rng) for _ in range(parts)]
    flow = [torch.randn(B, HEADS, T, D // HEADS, generator=rng) for _ in range(parts)]
    flow[0] = flow[0].transpose(1, 2).contiguous().transpose(1, 2)  # as some kernels leave it
    return joint, biases, flow


@pytest.mark.parametrize("name", CASES)
def test_parts_are_views_and_their_gradients_meet_again_summed_for_the_biases(
    name: str, found: dict[str, Any]
) -> None:
    joint, biases, flow = inputs(name)
    parts, gradients = found[name]
    expected = [x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in joint.chunk(len(biases), -1)]
    torch.testing.assert_close(parts, expected)
    joined = torch.cat([x.transpose(1, 2).flatten(2) for x in flow], dim=-1)
    sums = joined.double().sum((0, 1)).float().chunk(len(biases))
    assert torch.equal(gradients[0], joined)
    torch.testing.assert_close(gradients[1:], list(sums), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return interpreted(__file__, tmp_path_factory.mktemp("joint"))


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention.kernels.train import fused_qkv as kernel

    found: dict[str, Any] = {}
    for name in CASES:
        joint, biases, flow = inputs(name)
        kernel.PROGRAMS = 6
        leaves = [joint.requires_grad_(), *(bias.requires_grad_() for bias in biases)]
        parts = kernel.apart(joint, HEADS, *biases)
        gradients = torch.autograd.grad(parts, leaves, flow)
        found[name] = [x.detach().clone() for x in parts], list(gradients)
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])

"""The kernels of one look in Triton's interpreter, against the formula and its gradient."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[4]
# rows, places, hidden, width: narrower than a strip, and several strips with a rest
SIZES = [(3, 5, 7, 9), (2, 31, 40, 300), (2, 17, 300, 33), (1, 1, 1, 1)]


def differences(size: tuple[int, int, int, int], *, ragged: bool) -> list[float]:
    """Of weights, what is read, and the gradients of query, keys and weight, to the formula's.

    Where the memory is ragged, the weights have a gradient of their own.
    """
    from saccade.attention.kernels.train.additive_step import look, look_back

    rows, places, hidden, width = size
    rng = torch.Generator().manual_seed(0)
    shapes = (rows, hidden), (rows, places, hidden), (rows, places, width), (hidden,)
    q, k, v, w = (torch.randn(shape, generator=rng) for shape in shapes)
    hide = torch.zeros(rows, 1, places) if ragged else None
    if hide is not None:
        hide[-1, :, places // 2 + 1 :] = -torch.inf
    q64, k64, w64 = (x.double().requires_grad_() for x in (q, k, w))
    e = (q64[:, None] + k64).tanh() @ w64 + (0 if hide is None else hide[:, 0])
    weights = e.softmax(dim=-1)
    read = (weights[:, None] @ v.double())[:, 0]
    dc, da = (torch.randn(part.shape, generator=rng) for part in (read, weights))
    outputs, slopes = (
        ((read, weights), (dc.double(), da.double())) if ragged else (read, dc.double())
    )
    expected = torch.autograd.grad(outputs, (q64, k64, w64), slopes)
    a, c = look(2 * q, 2 * k, v, hide, 2 * w)
    dk, dw = torch.ones_like(k), torch.ones_like(q)  # what is there is added to
    asked = da if ragged else None
    dq = look_back(dc, asked, a[:, 0], 2 * q, 2 * k, v, w, (dk, dw))
    found = a[:, 0], c, dq, (dk - 1) * w, (dw - 1).sum(dim=0)
    return [float((x - y).abs().max()) for x, y in zip(found, (weights, read, *expected))]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_a_look_and_its_way_back_agree_with_the_formula() -> None:
    # In a process of its own: Triton cannot read kernels that the shape checker has wrapped.
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.attention.kernels.train.test_additive_step"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    for each in SIZES:
        for some in (True, False):
            assert max(differences(each, ragged=some)) < 5e-5, (each, some)

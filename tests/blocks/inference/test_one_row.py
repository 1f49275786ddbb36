"""The product of a single row in Triton's interpreter, against torch in double precision."""

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

# Outputs, inputs, whether with a bias, whether bent; some inputs are a block and one more.
CASES = [(5, 70, True, False), (9, 2049, False, False), (8, 4500, True, True), (1, 3, False, True)]


def inputs(out: int, width: int, *, biased: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    rng = torch.Generator().manual_seed(out)
    x, bias = torch.randn(1, width, generator=rng), torch.randn(out, generator=rng)
    # A part of a wider layer: its rows lie further apart than they are long.
    weight = torch.randn(out, width + 8, generator=rng)[:, :width]
    return x, weight, bias if biased else None


def test_it_is_the_product(tmp_path: Path) -> None:
    found = interpreted(__file__, tmp_path)
    for case, y in zip(CASES, found, strict=True):
        out, width, biased, bent = case
        x, weight, bias = inputs(out, width, biased=biased)
        expected = x.double() @ weight.double().mT + (0 if bias is None else bias.double())
        expected = expected.relu() if bent else expected
        torch.testing.assert_close(y.double(), expected, atol=1e-4, rtol=1e-5)


if __name__ == "__main__":
    mend_interpreter()
    from saccade.blocks.inference.one_row import one_row

    made = [
        one_row(*inputs(out, width, biased=biased), relu=bent) for out, width, biased, bent in CASES
    ]
    torch.save(made, sys.argv[1])

"""Attention under one mask in Triton's interpreter, against `attend` in double precision."""

import sys
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from saccade.attention import masks
from saccade.attention.attend import attend
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

SCALE = 0.4
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Case:
    """Sizes, and who may look where."""

    mask: Tensor  # (T, S)
    rows: int = 2
    heads: int = 2
    width: int = 8
    dtype: torch.dtype = torch.float32
    joint: bool = True  # queries, keys and values lie in one product

    def inputs(self) -> list[Tensor]:
        """Queries, keys and values: (B, N, positions, K)."""
        rng = torch.Generator().manual_seed(self.width)
        T, S = self.mask.shape
        shape = self.rows, max(T, S), 3, self.heads, self.width
        product = torch.randn(shape, generator=rng).to(self.dtype)
        q, k, v = (x.transpose(1, 2) for x in product.unbind(2))
        parts = [q[:, :, :T], k[:, :, :S], v[:, :, :S]]
        return parts if self.joint else [x.contiguous() for x in parts]

    def flow(self) -> Tensor:
        """A gradient that comes from above, not in the order of memory."""
        rng = torch.Generator().manual_seed(99)
        shape = self.rows, self.heads, len(self.mask), self.width
        return torch.randn(shape, generator=rng).to(self.dtype)


def by_chance(t: int, s: int, share: float = 0.5) -> Tensor:
    return torch.rand(t, s, generator=torch.Generator().manual_seed(t + s)) < share


def blind() -> Tensor:
    mask = by_chance(70, 70)
    mask[3], mask[64:] = False, False
    return mask


CASES = {
    "one tile": Case(by_chance(5, 5)),
    "tiles with rests": Case(by_chance(70, 130)),
    "more queries than keys": Case(by_chance(130, 20), joint=False),
    "causal": Case(masks.causal(100, 100, device=CPU)[0, 0]),
    "blind": Case(blind()),
    "tiles that nobody sees": Case(torch.block_diag(*[torch.ones(64, 64)] * 2).bool()),
    "rows": Case(masks.image_rows(5, 8, device=CPU)[0, 0]),
    "columns": Case(masks.image_columns(5, 8, device=CPU)[0, 0]),
    "neighbours": Case(masks.image_neighbours(5, 8, 3, device=CPU)[0, 0]),
    "a part of a larger mask": Case(by_chance(80, 80)[:66, :66]),
    "odd width": Case(by_chance(9, 9), width=20, heads=3),
    "apart": Case(by_chance(9, 9), joint=False),
    "half": Case(by_chance(70, 70), dtype=torch.float16),
    "bfloat16": Case(by_chance(70, 70), dtype=torch.bfloat16),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tensor]]:
    """Output and gradients of every case."""
    return interpreted(__file__, tmp_path_factory.mktemp("masked"))


@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients_are_those_of_attend(
    name: str, found: dict[str, list[Tensor]]
) -> None:
    case = CASES[name]
    parts = [x.double().requires_grad_() for x in case.inputs()]
    output = attend(*parts, mask=case.mask, score=lambda q, k: q @ k.mT * SCALE).output
    expected = [output, *torch.autograd.grad(output, parts, case.flow().double())]
    near = {torch.float32: 4e-6, torch.float16: 6e-3, torch.bfloat16: 4e-2}[case.dtype]
    for ours, theirs in zip(found[name], expected, strict=True):
        assert ours.dtype == case.dtype
        torch.testing.assert_close(ours.double(), theirs, rtol=near, atol=near)


def test_the_blind_read_zero_and_teach_nobody(found: dict[str, list[Tensor]]) -> None:
    output, by_query, *_ = found["blind"]
    for some in (slice(3, 4), slice(64, 70)):
        assert output[:, :, some].eq(0).all()
        assert by_query[:, :, some].eq(0).all()


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention.kernels.train.masked import masked_attention

    def computed(case: Case) -> list[Tensor]:
        parts = [x.requires_grad_() for x in case.inputs()]
        output = masked_attention(*parts, case.mask, SCALE)[0]
        return [output.detach(), *torch.autograd.grad(output, parts, case.flow())]

    torch.save({name: computed(case) for name, case in CASES.items()}, path)


if __name__ == "__main__":
    main(sys.argv[1])

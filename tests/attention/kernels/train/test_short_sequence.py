"""Short sentences in Triton's interpreter, against torch's kernels in double precision."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.kernels.train.ragged import ragged_attention
from saccade.attention.segments import Segments
from tests.attention.test_segments import Sizes, segments_of
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

SCALE = 0.4


def itself(*lengths: int) -> Sizes:
    return [(length, length) for length in lengths]


@dataclass(frozen=True)
class Case:
    """Stretches of queries and keys, and how their products lie in memory."""

    pairs: Sizes
    form: str = "apart"  # apart, self (one product) or cross (keys and values of one)
    causal: bool = False
    width: int = 8
    heads: int = 2
    dtype: torch.dtype = torch.float32
    heads_first: bool = False  # in memory

    def segments(self) -> Segments:
        return segments_of(self.pairs)

    def inputs(self) -> list[Tensor]:
        """Products, in the form that the kernel takes."""
        rng = torch.Generator().manual_seed(len(self.pairs))
        queries, keys = (sum(pair[side] for pair in self.pairs) for side in (0, 1))
        shapes = {
            "apart": [(queries,), (keys,), (keys,)],
            "self": [(queries, 3)],
            "cross": [(queries,), (keys, 2)],
        }[self.form]
        sizes = ((*shape, self.heads, self.width) for shape in shapes)
        found = [torch.randn(size, generator=rng).to(self.dtype) for size in sizes]
        if self.heads_first:
            found = [x.transpose(0, -2).contiguous().transpose(0, -2) for x in found]
        return found

    def flow(self) -> Tensor:
        """A gradient that comes from above, not in the order of memory."""
        rng = torch.Generator().manual_seed(99)
        queries = sum(pair[0] for pair in self.pairs)
        shape = self.heads, queries, self.width
        return torch.randn(shape, generator=rng).to(self.dtype).transpose(0, 1)


CASES = {
    "one sentence": Case(itself(5)),
    "sentences": Case(itself(3, 7, 1, 16, 2)),
    "causal": Case(itself(3, 7, 1, 16, 2), causal=True),
    "one product": Case(itself(4, 9, 1), form="self", causal=True),
    "one product, all seen": Case(itself(17, 2, 30), form="self"),
    "keys and values of one product": Case([(3, 5), (20, 2), (1, 1)], form="cross"),
    "across": Case([(3, 5), (2, 40), (6, 1)]),
    "blind": Case([(3, 0), (2, 4), (0, 3), (1, 0)], form="cross"),
    "blind, apart": Case([(3, 0), (2, 4), (0, 3), (1, 0)]),
    "empty at the end": Case(itself(3, 0, 4, 0, 0), form="self", causal=True),
    "odd width": Case(itself(5, 2), form="self", width=20, heads=3),
    "one head": Case([(5, 3)], form="cross", width=16, heads=1),
    "medium": Case(itself(33, 64), form="self", causal=True, heads=1),
    "heads first": Case([(3, 5), (2, 4)], heads_first=True),
    "long": Case([(100, 128)], width=16, heads=1),
    **{
        f"{dtype}": Case(itself(5, 9), form="self", causal=True, dtype=dtype)
        for dtype in (torch.bfloat16, torch.float16)
    },
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tensor]]:
    """Output and gradients of every case."""
    return interpreted(__file__, tmp_path_factory.mktemp("short"))


def split(case: Case, parts: list[Tensor]) -> tuple[Tensor, ...]:
    if case.form == "self":
        return parts[0].unbind(1)
    return (parts[0], *parts[1].unbind(1)) if case.form == "cross" else tuple(parts)


@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients_are_those_of_attention_within_stretches(
    name: str, found: dict[str, list[Tensor]]
) -> None:
    case = CASES[name]
    parts = [x.double().requires_grad_() for x in case.inputs()]
    q, k, v = split(case, parts)
    output = ragged_attention(q, k, v, case.segments(), causal=case.causal, scale=SCALE)
    expected = [output, *torch.autograd.grad(output, parts, case.flow().double())]
    near = {torch.float32: 2e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}[case.dtype]
    for ours, theirs in zip(found[name], expected, strict=True):
        assert ours.dtype == case.dtype
        torch.testing.assert_close(ours.double(), theirs, rtol=near, atol=near)


def test_the_blind_read_zero_and_teach_nobody(found: dict[str, list[Tensor]]) -> None:
    output, by_query, *_ = found["blind"]
    for blind in (slice(0, 3), slice(5, 6)):
        assert output[blind].eq(0).all()
        assert by_query[blind].eq(0).all()


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention.kernels.train import short_sequence as short

    def computed(case: Case) -> list[Tensor]:
        parts, segments = [x.requires_grad_() for x in case.inputs()], case.segments()
        starts: list[Any] = [segments.query_starts, segments.key_starts]
        longest = [segments.longest_query, segments.longest_key]
        if case.form == "self":
            rest = starts[0], longest[0], case.causal, SCALE
            output = short.short_self_attention(*parts, *rest)
        elif case.form == "cross":
            output = short.short_cross_attention(*parts, *starts, *longest, SCALE)
        else:
            output = short.short_attention(*parts, *starts, *longest, case.causal, SCALE)
        return [output.detach(), *torch.autograd.grad(output, parts, case.flow())]

    torch.save({name: computed(case) for name, case in CASES.items()}, path)


if __name__ == "__main__":
    main(sys.argv[1])

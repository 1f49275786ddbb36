"""Windows in Triton's interpreter, against attention over whole maps in double precision."""

import sys
from dataclasses import dataclass, replace
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

SCALE = 0.4


@dataclass(frozen=True)
class Case:
    """Maps, windows, and what attention within them learns beside the product."""

    shape: tuple[int, int]
    window: tuple[int, int]
    shift: tuple[int, int] = (0, 0)
    offsets: int = 0  # the side of windows that the table is for
    scales: bool = False
    biases: bool = False
    itself: bool = True
    batch: int = 2
    heads: int = 2
    width: int = 8
    dtype: torch.dtype = torch.float32
    loud: float = 1.0  # the last key

    def qkv(self) -> Tensor:
        qkv = self._draws(self.batch, *self.shape, 3, self.heads, self.width)
        qkv[:, -1, -1, 1] *= self.loud
        return qkv.to(self.dtype)

    def flow(self) -> Tensor:
        """A gradient that comes from above, not in the order of memory."""
        shape = self.heads * self.width, self.batch, *self.shape
        return self._draws(*shape).to(self.dtype).movedim(0, -1)

    def learnt(self) -> tuple[Tensor | None, Tensor | None, list[Tensor]]:
        """Offsets, scales and biases, which are in the product already."""
        table = self._draws((2 * self.offsets - 1) ** 2, self.heads) if self.offsets else None
        scales = self._draws(self.heads) if self.scales else None
        biases = [self._draws(self.heads * self.width) for _ in range(3)] if self.biases else []
        return table, scales, biases

    def _draws(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))

    def inputs(self, dtype: torch.dtype | None = None) -> list[Tensor | None]:
        """All that has a gradient."""
        table, scales, biases = self.learnt()
        some = [self.qkv(), table, scales, *biases]
        return [None if x is None else x.to(dtype or x.dtype).requires_grad_() for x in some]


def plain(
    case: Case, qkv: Tensor, table: Tensor | None, scales: Tensor | None, *biases: Tensor
) -> Tensor:
    """Every cell of a map looks at every cell that its window lets it see."""
    if biases:  # they are in the product already
        qkv = qkv + torch.stack([b - b.detach() for b in biases]).view(3, case.heads, -1).to(qkv)
    q, k, v = (x.flatten(1, 2).transpose(1, 2) for x in qkv.unbind(3))  # (B, N, cells, K)
    near, down, across = (x.to(qkv.device) for x in neighbours(case))
    q = (q * (SCALE if scales is None else scales[:, None, None])).to(k)
    scores = q @ k.mT
    if table is not None:
        side = case.offsets
        row = (down + side - 1) * (2 * side - 1) + across + side - 1
        scores = scores + table[row.where(near, 0)].permute(2, 0, 1)
    if not case.itself:
        near = near & ~torch.eye(len(near), dtype=torch.bool, device=near.device)
    blind = ~near.any(dim=1, keepdim=True)
    weights = scores.masked_fill(~(near | blind), -torch.inf).softmax(dim=-1)
    read = weights.masked_fill(blind, 0.0).to(v) @ v
    return read.transpose(1, 2).flatten(2).unflatten(1, case.shape)


def neighbours(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Which pairs of cells share a window and lie together in it, and how far apart they are."""
    together, apart = [], []
    places = torch.meshgrid(*(torch.arange(size) for size in case.shape), indexing="ij")
    for at, size, side, shift in zip(places, case.shape, case.window, case.shift):
        padded = -(-size // side) * side
        window = (at.flatten() - shift) % padded // side
        apart.append(at.flatten()[:, None] - at.flatten()[None, :])
        together.append((window[:, None] == window[None, :]) & (apart[-1].abs() < side))
    return together[0] & together[1], *apart


swin = Case((8, 8), (4, 4), (2, 2), offsets=4)
local = Case((1, 65), (1, 65), scales=True, itself=False)
CASES = {
    "one window": Case((4, 4), (4, 4)),
    "a sequence": Case((1, 7), (1, 7), heads=3),
    "windows": replace(swin, shift=(0, 0)),
    "shifted": swin,
    "shifted down": Case((8, 4), (4, 4), (2, 0), offsets=4, biases=True),
    "shifted, no bias": Case((8, 8), (4, 4), (2, 2)),
    "everything": replace(swin, scales=True, biases=True, itself=False),
    "not tiled": Case((5, 7), (4, 4), offsets=4, biases=True),
    "not tiled, shifted": Case((5, 9), (4, 4), (2, 2), offsets=4, biases=True),
    "alone": Case((5, 5), (4, 4), offsets=4, biases=True, itself=False),
    "alone, no bias": Case((5, 5), (4, 4), scales=True, biases=True, itself=False),
    "itself not, not tiled, shifted": Case((5, 7), (4, 4), (2, 2), offsets=4, itself=False),
    "smaller than a window": Case((3, 2), (3, 2), offsets=4, biases=True),
    "not square": Case((6, 8), (3, 4), (1, 2), offsets=4),
    "windows of seven": Case((14, 7), (7, 7), (3, 0), offsets=7, batch=1, biases=True),
    "itself not": Case((4, 4), (4, 4), itself=False),
    "65 tokens": Case((1, 65), (1, 65), heads=1, width=16),
    "65 tokens, local": local,
    "65 tokens, the last one loud": Case((1, 65), (1, 65), loud=200.0),
    "65 tokens, biases": replace(local, biases=True, itself=True, scales=False),
    "90 tokens": replace(local, shape=(1, 90), window=(1, 90), heads=1, biases=True),
    "128 tokens": Case((1, 128), (1, 128), heads=1, batch=1, biases=True),
    "windows of ten": Case((10, 10), (10, 10), offsets=10, heads=1, batch=1),
    "33 tokens": Case((1, 33), (1, 33), scales=True),
    "wide": replace(local, width=48, heads=1, biases=True),
    "odd width": replace(swin, width=20, heads=3, biases=True, scales=True),
    **{
        f"{dtype}": replace(swin, dtype=dtype, biases=True, scales=True, itself=False)
        for dtype in (torch.bfloat16, torch.float16)
    },
    "bfloat16, 65 tokens": replace(local, dtype=torch.bfloat16),
}


MODELS: dict[str, ImageEncoderConfig] = {
    "swin": SwinConfig(width=8, depths=(2, 2), heads=(1, 2), window=4, classes=5),
    "sl-swin": SwinConfig(width=8, depths=(2,), heads=(2,), reads="shifted", local=True, classes=5),
    "vit": VitConfig(image=24, patch=6, width=16, depth=2, heads=2, classes=5),
    "sl-vit": VitConfig(image=24, patch=6, width=16, depth=2, heads=2, local=True, biased=False),
}


def slopes(config: ImageEncoderConfig, dtype: torch.dtype) -> list[Tensor]:
    """The gradients to all parameters of a model, whose maps its windows do not tile."""
    torch.manual_seed(0)
    model = config.build()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    image = torch.randn(2, 3, 24, 24)
    scores = model.to(dtype)(image.to(dtype))
    return [*torch.autograd.grad(scores.square().sum(), [*model.parameters()])]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tensor]]:
    """Output and gradients of every case."""
    return interpreted(__file__, tmp_path_factory.mktemp("windows"))


@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients_are_those_of_attention_within_windows(
    name: str, found: dict[str, list[Tensor]]
) -> None:
    case = CASES[name]
    inputs = case.inputs(torch.float64)
    output = plain(case, *inputs)
    leaves = [x for x in inputs if x is not None]
    expected = [output, *torch.autograd.grad(output, leaves, case.flow().double())]
    near = {torch.float32: 4e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}[case.dtype]
    dtypes = [case.dtype, *(x.dtype for x in case.inputs() if x is not None)]
    for ours, theirs, dtype in zip(found[name], expected, dtypes, strict=True):
        assert ours.dtype == dtype
        scale = max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours.double(), theirs, rtol=near, atol=near * scale)


@pytest.mark.parametrize("name", ["alone", "alone, no bias"])
def test_a_cell_that_is_alone_reads_zero_and_teaches_nobody(
    name: str, found: dict[str, list[Tensor]]
) -> None:
    output, by_product, *_ = found[name]
    for x in (output, by_product):
        assert x[:, 4, 4].eq(0).all()
        assert x[:, 4, 3].ne(0).any()


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].biases])
def test_a_bias_that_all_keys_share_learns_nothing(
    name: str, found: dict[str, list[Tensor]]
) -> None:
    assert found[name][-2].eq(0).all()


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_the_same(name: str, found: dict[str, list[Tensor]]) -> None:
    expected = slopes(MODELS[name], torch.float64)
    largest = max(x.abs().max().item() for x in expected)
    for ours, theirs in zip(found[name], expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-5 * largest)


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention import multihead
    from saccade.attention.kernels.train import windows

    tables = windows.FORWARD, windows.BACKWARD, windows.BACKWARD_WIDE
    for table in tables:  # so few programs that each has many windows
        table |= {keys: launch._replace(programs=5) for keys, launch in table.items()}

    def computed(case: Case) -> list[Tensor]:
        qkv, table, scales, *biases = inputs = case.inputs()
        how = [*case.window], [*case.shift], SCALE, case.itself
        output = windows.window_attention(qkv, table, scales, biases, *how)
        leaves = [x for x in inputs if x is not None]
        return [output.detach(), *torch.autograd.grad(output, leaves, case.flow())]

    found = {name: computed(case) for name, case in CASES.items()}
    with patch.object(multihead, "takes_windows", return_value=True) as asked:
        with patch.object(multihead, "defers_bias", return_value=True):
            found |= {name: slopes(config, torch.float32) for name, config in MODELS.items()}
        assert (
            asked.call_count == 4 + 2 + 1 + 1
        )  # in its last block, a ViT's class token looks alone
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])

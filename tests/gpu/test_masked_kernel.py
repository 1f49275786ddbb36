"""Attention under one mask for all sequences, both ways, over precisions and widths."""

import pytest
import torch
from torch import Tensor

from saccade.attention import masks
from saccade.attention.attend import attend, fused
from tests.gpu.precision import DEVICE, HALVES, IN_PARTS, check, draws

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
CPU = torch.device("cpu")
MASKED = {  # precision, width of a head, mask
    "rows": (BF16, 64, masks.image_rows(32, 16, device=CPU)),
    "columns": (FP16, 32, masks.image_columns(7, 9, device=CPU)),
    "neighbours": (BF16, 48, masks.image_neighbours(64, 16, 11, device=CPU)),
    "causal": (BF16, 128, masks.causal(130, 130, device=CPU)),
    "float32": (FP32, 64, masks.image_rows(5, 8, device=CPU)),
}


@pytest.mark.parametrize("name", MASKED)
def test_output_and_gradients_are_those_of_attend(name: str) -> None:
    from saccade.attention.kernels.train.masked import masked_attention

    dtype, width, whole = MASKED[name]
    mask = whole.to(DEVICE)[..., :-1, :-1]  # a part of a larger one
    parts = [draws(3, 2, mask.shape[2], width, seed=i, dtype=dtype) for i in range(3)]
    check(
        lambda *x: masked_attention(*x, mask[0, 0], width**-0.5)[0],
        lambda *x: attend(*x, mask=mask).output,
        parts,
        rounding=IN_PARTS,
    )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_it_serves_where_there_is_such_a_mask_and_adds_in_one_order(dtype: torch.dtype) -> None:
    from saccade.attention.kernels.train.masked import masked_attention

    mask = masks.image_rows(32, 16, device=torch.device(DEVICE))
    leaves = [
        draws(3, 2, mask.shape[2], 64, seed=i, dtype=dtype).requires_grad_() for i in range(3)
    ]

    def gradients() -> tuple[Tensor, ...]:
        return torch.autograd.grad(fused(*leaves, mask=mask).float().square().sum(), leaves)

    assert torch.equal(fused(*leaves, mask=mask), masked_attention(*leaves, mask[0, 0], 0.125)[0])
    assert all(map(torch.equal, gradients(), gradients()))

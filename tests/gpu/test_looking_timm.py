"""Looking into a ViT of timm, on a GPU: against its own weights."""

from typing import Any

import pytest
import torch

import saccade

timm: Any = pytest.importorskip("timm")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_vit_of_timm_looks_where_its_unfused_twin_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False).eval().cuda().to(dtype)
    image = torch.randn(2, 3, 224, 224, device="cuda", dtype=dtype)
    with torch.no_grad():
        alone = model(image)
        with saccade.looking(model) as trace:
            assert torch.equal(model(image), alone)
        for block in model.blocks:
            block.attn.fused_attn = False
        with saccade.looking(model) as plain:
            model(image)
    assert list(trace) == list(plain)
    assert len(trace) == len(model.blocks)
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    for site in trace:
        assert trace.axes[site][0].special == 1
        for found, expected in zip(trace.weights()[site], plain.weights()[site]):
            torch.testing.assert_close(found, expected.float(), atol=bound, rtol=0)

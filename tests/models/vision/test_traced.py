"""A compiler reads every family in one piece, and without a warning."""

import subprocess
import sys

import pytest

TRACED = """
import sys, warnings
import torch
from saccade.models.vision.{module} import {config}

warnings.simplefilter("error", UserWarning)
torch.manual_seed(0)
model, image = {config}({sizes}).build(), torch.randn(2, 3, 32, 32)
model.eval()
found = torch.compile(model, backend="eager", fullgraph=True)(image)
torch.testing.assert_close(found, model(image))
"""
FAMILIES = {
    "swin": ("SwinConfig", "width=8, depths=(2, 1), heads=(1, 2), window=3, classes=5"),
    "convnext": ("ConvNextConfig", "depths=(1, 1), widths=(8, 16), classes=5"),
    "mvit": ("MvitConfig", "image=32, width=8, depths=(1, 1), classes=5"),
    "resnet": ("ResNetConfig", "depth=10, width=8, classes=5"),
    "vit": ("VitConfig", "image=32, patch=8, width=16, depth=1, heads=2, classes=5"),
}


@pytest.mark.slow  # to load the compiler
@pytest.mark.parametrize("module", FAMILIES)
def test_it_is_traced_without_a_break(module: str) -> None:
    # In a process of its own: here, signatures are checked, which cannot be traced.
    config, sizes = FAMILIES[module]
    traced = TRACED.format(module=module, config=config, sizes=sizes)
    subprocess.run([sys.executable, "-c", traced], check=True)

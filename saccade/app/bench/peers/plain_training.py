"""The training step that most scripts have: a loss, its gradient, AdamW."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade.app.bench.settings import RaceSettings
from saccade.app.bench.timing import Work


def training_steps(bench: RaceSettings, model: nn.Module, loss: Callable[[], Tensor]) -> Work:
    """Updates with the same batch, which is on the device; `loss` is the mean per token.

    Gradients are not clipped, and nobody looks at the loss: both would cost the peers time.
    """
    device, mixed = bench.where.type, bench.arithmetic == "bf16"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def steps() -> None:
        for _ in range(bench.repeats):
            with torch.autocast(device, torch.bfloat16, enabled=mixed):
                value = loss()
            value.backward()
            optimizer.step()
            optimizer.zero_grad()

    return steps

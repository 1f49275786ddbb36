"""The training step that most scripts have: a loss, its gradient, AdamW."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade.app.bench.timing import Work


def training_steps(
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    device: torch.device,
    precision: str,
    count: int = 1,
) -> Work:
    """So many updates with the same batch, which is on the device; `loss` is the mean per token.

    Gradients are not clipped, and nobody looks at the loss: both would cost the peers time.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def steps() -> None:
        for _ in range(count):
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
                value = loss()
            value.backward()
            optimizer.step()
            optimizer.zero_grad()

    return steps

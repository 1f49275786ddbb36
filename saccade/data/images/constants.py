"""Numbers that a device has been given once and for all.

A step that a GPU has captured cannot be handed numbers from elsewhere, and its own must stay where
they are.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor


def constant(values: tuple[Any, ...] | float, like: Tensor) -> Tensor:
    """These numbers where a tensor is, in its precision. They are never to be written to."""
    return _kept(values, like.device, like.dtype)


@cache
def _kept(values: tuple[Any, ...] | float, device: torch.device, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(mode=False):
        return torch.tensor(values, dtype=dtype).to(device)

"""What weights are, as a number in hexadecimal: it changes with any of them."""

import hashlib

import torch
from torch import nn


def weights_digest(module: nn.Module) -> str:
    """The SHA-256 of all that a state has, by name."""
    made = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        made.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        made.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return made.hexdigest()

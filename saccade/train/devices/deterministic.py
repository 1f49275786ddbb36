"""The same numbers every time, on a GPU too: kernels that add in any order are left out."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.deterministic

from saccade.errors import RunError


@contextmanager
def deterministic(device: torch.device, *, wanted: bool) -> Generator[None]:
    """While a run is trained; a CPU adds in one order anyway."""
    if device.type != "cuda" or not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it by name
    switches: Any = torch.utils.deterministic
    fills, switches.fill_uninitialized_memory = switches.fill_uninitialized_memory, False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        reason = str(error).splitlines()[0].partition(". ")[0]
        raise RunError(f"{reason}; pass --train.no-deterministic to train all the same") from error
    finally:
        torch.use_deterministic_algorithms(False)
        switches.fill_uninitialized_memory = fills

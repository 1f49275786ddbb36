"""Tables that follow from sizes alone: made once, and kept."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

import torch
from torch import Tensor

Table = TypeVar("Table", bound=Callable[..., Tensor])


def kept_table(make: Table) -> Table:
    """Remember what was made for the last sizes asked for.

    A compiler traces the making instead: what it compiles is on the device from start to end, and
    can be captured, and it fuses the table with what reads it.
    """
    kept = lru_cache(maxsize=64)(torch.inference_mode(False)(make))  # it serves training too

    @wraps(make)
    def look_up(*sizes: object) -> Tensor:
        return make(*sizes) if torch.compiler.is_compiling() else kept(*sizes)  # type: ignore[arg-type]

    return look_up  # type: ignore[return-value]

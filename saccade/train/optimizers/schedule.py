"""The learning rate as a pure function of the update's number: nothing to save, nothing to lose."""

import math
from collections.abc import Callable
from typing import Literal

ScheduleKind = Literal["inverse-sqrt", "cosine", "linear", "constant"]


def inverse_sqrt(step: int, *, warmup: int, steps: int) -> float:
    """Rise, then fall with the square root (Vaswani et al. 2017).

    min(step / warmup, √(warmup / step))
    """
    warmup = max(warmup, 1)
    return min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, *, warmup: int, steps: int) -> float:
    """Rise, then half a cosine down to zero at the last update.

    ½ (1 + cos(π · progress))
    """
    if step < warmup:
        return step / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def linear(step: int, *, warmup: int, steps: int) -> float:
    """Rise, then fall in a line to zero at the last update, as BERT is fine-tuned.

    1 − progress
    """
    warmup = max(warmup, 1)
    if step < warmup:
        return step / warmup
    return 1 - min(1.0, (step - warmup) / max(1, steps - warmup))


def constant(step: int, *, warmup: int, steps: int) -> float:
    """Rise, then stay."""
    return min(1.0, step / max(warmup, 1))


SCHEDULES: dict[ScheduleKind, Callable[..., float]] = {
    "inverse-sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def learning_rate(
    kind: ScheduleKind, highest: float, update: int, *, warmup: int, steps: int
) -> float:
    """The rate of update number `update`, counted from 1."""
    return highest * SCHEDULES[kind](update, warmup=warmup, steps=steps)

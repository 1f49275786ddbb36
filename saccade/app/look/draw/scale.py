"""Axes of a chart: from which number to which, where the ticks are, and what they say."""

import math
from dataclasses import dataclass

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ROOM = 1.15  # on a logarithmic axis, beyond the first and the last point
PLAIN = 5  # from this power of ten on, numbers are written as powers
MARGIN = 0.08  # on a plain one, as a share of the range


@dataclass(frozen=True)
class Scale:
    """A range of numbers, evenly or by their logarithm; some of its ticks have labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a number lies, from 0 to 1."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def plain_scale(values: list[float], *, wanted: int = 8) -> Scale:
    """Some round numbers over the range of the values."""
    least, most = min(values), max(values)
    spread = most - least or abs(most) * 0.1 or 1.0
    low, high = least - MARGIN * spread, most + MARGIN * spread
    step = _step(high - low, wanted)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((n * step, f"{n * step:.{digits}f}") for n in range(first, last + 1))
    return Scale(low, high, ticks)


def count_scale(most: int, *, wanted: int = 8) -> Scale:
    """From none to the most, with some round numbers between."""
    high = float(max(1, most))
    step = max(1, round(_step(high, wanted)))
    ticks = tuple((float(n), f"{n:,}") for n in range(0, int(high) + 1, step))
    return Scale(0.0, high, ticks)


def _step(spread: float, wanted: int) -> float:
    """A round number that goes into it not more often than wanted."""
    power = 10.0 ** math.floor(math.log10(spread / wanted))
    return next(n * power for n in (1, 2, 5, 10) if spread / (n * power) <= wanted)


def log_scale(values: list[float]) -> Scale:
    """From round number to round number; labels are as many as can be read."""
    least, most = min(values) / ROOM, max(values) * ROOM
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    every = [(n, power, n * 10.0**power) for power in decades for n in range(1, 10)]
    low = max(value for n, _, value in every if n in (1, 2, 5) and value <= least)
    high = min(value for n, _, value in every if n in (1, 2, 5) and value >= most)
    wide = high / low
    told = (1, 2, 5) if wide < 100 else (1, 3) if wide < 1000 else (1,)
    ticks = tuple(
        (value, _power(n, power) if n in told else "")
        for n, power, value in every
        if low <= value <= high
    )
    return Scale(low, high, ticks, logarithmic=True)


def _power(times: int, power: int) -> str:
    """Numbers that people read at a glance are written out."""
    if 0 <= power < PLAIN:
        return f"{times * 10**power:,}"
    shown = f"10{str(power).translate(SUPERSCRIPTS)}"
    return shown if times == 1 else f"{times}·{shown}"

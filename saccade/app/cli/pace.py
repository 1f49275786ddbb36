"""How fast something goes, and how long the rest of it will take."""

import time

KNOWN_AFTER = 2.0  # seconds; a rate from less says little


class Pace:
    """How fast an amount is being done, and how long the rest will take."""

    def __init__(self) -> None:
        self._what, self._done = "", 0
        self._total: int | None = 0
        self._begun = 0.0, 0  # when, and how much there was then

    def told(self, what: str, done: int, total: int | None) -> str:
        """So much of it, of how much if that is known; rate and time left, once they are known."""
        now = time.monotonic()
        if (what, total) != (self._what, self._total) or done < self._done:
            self._begun = now, done
        self._what, self._done, self._total = what, done, total
        said, seconds = f"{what} {done:,}", now - self._begun[0]
        if total is not None:
            said += f"/{total:,}"
        rate = (done - self._begun[1]) / seconds if seconds >= KNOWN_AFTER else 0.0
        if rate <= 0:
            return said
        shown = f"{said}  {rate:,.0f}/s" if rate >= 10 else f"{said}  {rate:.1f}/s"
        return shown if total is None else f"{shown}  {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    """4:05, or 1:04:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

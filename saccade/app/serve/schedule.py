"""Whose turn it is in a line, and who could not be answered in time.

Clients are served by turns, whatever they ask for: of those who wait, the one whose work has taken
least time so far comes next (start-time fair queueing, Goyal et al. 1996). What something will take
is told by what the like of it took.
"""

import time
from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Protocol, TypeVar, runtime_checkable

REMEMBERED = 8  # measurements
OLD_S = 60.0  # after so many seconds it is time to measure again


@runtime_checkable
class Work(Protocol):
    """What is known of a request that waits."""

    client: str
    units: float
    ends: float
    gone: bool

    @property
    def sort(self) -> str: ...


W = TypeVar("W", bound=Work)


class Estimate:
    """Seconds for a unit of one sort of work, from the newest measurements."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=REMEMBERED)
        self._measured = 0.0

    def add(self, rate: float) -> None:
        self._rates.append(rate)
        self._measured = time.monotonic()

    @property
    def usual(self) -> float:
        return median(self._rates)

    @property
    def least(self) -> float:
        """What it surely takes: one bad moment does not count, nor what was long ago."""
        return min(self._rates) if time.monotonic() - self._measured < OLD_S else 0.0


class Schedule:
    """The turns of one line's clients, and the estimates for its work."""

    def __init__(self) -> None:
        self._estimates: dict[str, Estimate] = {}
        self._served: dict[str, float] = {}  # seconds, by client
        self._clock = 0.0  # what he had been served whose turn was last
        self._begun = 0.0
        self._running: Sequence[Work] = ()

    def enter(self, client: str) -> None:
        """Whoever was away has not saved anything up meanwhile."""
        self._served[client] = max(self._served.get(client, 0.0), self._clock)

    def begin(self, batch: Sequence[Work]) -> None:
        self._clock = max(self._clock, self._served.get(batch[0].client, 0.0))
        self._running, self._begun = batch, time.monotonic()

    def end(self, *, whole: bool) -> None:
        """Charge each client, and learn from it; what was broken off took longer than that."""
        batch = self._running
        rate = self._elapsed / _units(batch)
        for one in batch:
            self._served[one.client] = self._served.get(one.client, 0.0) + rate * one.units
        known = self._estimates.get(batch[0].sort)
        if known is None:
            known = self._estimates[batch[0].sort] = Estimate()
            known.add(rate)
        elif whole or rate > known.usual:
            known.add(rate)
        self._running = ()
        self._served = {who: time for who, time in self._served.items() if time > self._clock}

    def cost(self, one: Work) -> float:
        """Seconds that something takes, about; unmeasured, what its like has taken so far."""
        known = self._estimates.get(one.sort)
        if known is not None:
            return known.usual * one.units
        alike = bool(self._running) and self._running[0].sort == one.sort
        return self._elapsed / _units(self._running) * one.units if alike else 0.0

    def least(self, one: Work) -> float:
        """Seconds that something takes at the very least."""
        known = self._estimates.get(one.sort)
        return 0.0 if known is None else known.least * one.units

    @property
    def left(self) -> float:
        """Seconds until what runs now is over; what is late already takes as long once more.

        What nobody waits for any more is given up after its next step.
        """
        if all(one.gone for one in self._running):
            return 0.0
        whole = sum(map(self.cost, self._running))
        return whole - self._elapsed if whole > self._elapsed else self._elapsed

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begun if self._running else 0.0

    def in_turn(self, waiting: Sequence[W]) -> list[W]:
        """Those who wait, in the order in which they would be served."""
        queues: dict[str, deque[W]] = {}
        for one in waiting:
            queues.setdefault(one.client, deque()).append(one)
        served = {client: self._served.get(client, self._clock) for client in queues}
        order: list[W] = []
        while queues:
            client = min(queues, key=served.__getitem__)
            one = queues[client].popleft()
            order.append(one)
            served[client] += max(self.cost(one), 1e-6 * one.units)
            if not queues[client]:
                del queues[client]
        return order

    def late(self, waiting: Sequence[W]) -> list[W]:
        """Those who would not be answered in time; the others do not wait for them."""
        at, late = time.monotonic() + self.left, list[W]()
        alone = not self._running
        for one in self.in_turn(waiting):
            cost = self.least(one) if alone else self.cost(one)
            if at + cost > one.ends:
                late.append(one)
            else:
                at, alone = at + self.cost(one), False
        return late


def _units(batch: Sequence[Work]) -> float:
    return sum(one.units for one in batch)

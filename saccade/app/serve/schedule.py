"""Whose turn it is in a line, and who could not be answered in time.

Clients are served by turns, whatever they ask for: of those who wait, the one whose work has taken
least time so far comes next (start-time fair queueing, Goyal et al. 1996). What something will take
is told by what the like of it took.
"""

import time
from collections import deque
from collections.abc import Hashable, Sequence
from statistics import median
from typing import Protocol, TypeVar, runtime_checkable

REMEMBERED = 32  # measurements
ENOUGH = 3  # to be believed
LIKE = 4.0  # times as much work, or as little, is of a like size
MARGIN = 1.1  # times a wait that is foreseen: it may become longer, and then it is too late to say
OLD_S = 300.0  # after so many seconds it is time to measure again


@runtime_checkable
class Work(Protocol):
    """What is known of a request that waits. Those with equal keys may be decoded together."""

    client: str
    key: Hashable
    size: int
    units: float
    ends: float
    gone: bool

    @property
    def sort(self) -> str: ...


W = TypeVar("W", bound=Work)


class Estimate:
    """What batches of one sort of work have taken lately, by how much work each was.

    Only what is of a like size tells how long something takes: little work takes longer for its
    size. Of more work than has been measured it is only known that it takes no less.
    """

    def __init__(self) -> None:
        self._measured: deque[tuple[float, float, float]] = deque(maxlen=REMEMBERED)

    def add(self, units: float, seconds: float) -> None:
        self._measured.append((units, seconds, time.monotonic()))

    def usual(self, units: float) -> float | None:
        """Seconds that so much of it takes; None if nothing tells."""
        rates = [s / u for u, s, _ in self._measured if units / LIKE <= u <= units * LIKE]
        less = [(u, s) for u, s, _ in self._measured if u < units / LIKE]
        if not rates:
            return max(less)[1] if less else None
        if len(rates) < ENOUGH:
            return min(rates) * units
        # Where others have begun to use the machine, the last few tell it first.
        return max(median(rates), median(rates[-ENOUGH:])) * units

    def least(self, units: float) -> float:
        """Seconds that it surely takes: one bad moment does not count, nor what was long ago."""
        fresh = time.monotonic() - OLD_S
        no_larger = [s for u, s, at in self._measured if units / LIKE <= u <= units and at > fresh]
        return min(no_larger) if len(no_larger) >= ENOUGH else 0.0


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
        known, units = self._estimates.setdefault(batch[0].sort, Estimate()), _units(batch)
        if whole or self._elapsed > (known.usual(units) or 0.0):
            known.add(units, self._elapsed)
        self._running = ()
        self._served = {who: time for who, time in self._served.items() if time > self._clock}

    def cost(self, *batch: Work) -> float:
        """Seconds that a batch takes, about; unmeasured, what its like has taken so far."""
        sort, units = batch[0].sort, _units(batch)
        known = self._estimates.setdefault(sort, Estimate()).usual(units)
        if known is not None:
            return known
        if not self._running or self._running[0].sort != sort:
            return 0.0
        times = units / _units(self._running)
        return self._elapsed * (times if times <= LIKE else 1.0)

    def least(self, one: Work) -> float:
        """Seconds that something takes at the very least."""
        return self._estimates.setdefault(one.sort, Estimate()).least(one.units)

    @property
    def left(self) -> float:
        """Seconds until what runs now is over; who is late stays as long as he is late already.

        What nobody waits for any more is given up after its next step.
        """
        if all(one.gone for one in self._running):
            return 0.0
        return abs(self.cost(*self._running) - self._elapsed)

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

    def batches(self, waiting: Sequence[W], most: int) -> list[list[W]]:
        """How those who wait would be decoded, at most `most` texts together; one always fits."""
        left, batches = self.in_turn(waiting), list[list[W]]()
        while left:
            batch, room = [left[0]], most - left[0].size
            for one in left[1:]:
                if one.key is not None and one.key == batch[0].key and one.size <= room:
                    batch.append(one)
                    room -= one.size
            left = [one for one in left if one not in batch]
            batches.append(batch)
        return batches

    def late(self, waiting: Sequence[W], most: int) -> list[W]:
        """Those who would not be answered in time; the others do not wait for them."""
        now, wait, late = time.monotonic(), self.left, list[W]()
        alone = not self._running
        for batch in self.batches(waiting, most):
            cost = self.cost(*batch)
            until = now + (self.least(batch[0]) if alone else MARGIN * (wait + cost))
            late += (behind := [one for one in batch if until > one.ends])
            if len(behind) < len(batch):
                wait, alone = wait + cost, False
        return late

    def seconds(self, waiting: Sequence[Work], most: int) -> float:
        """How long it takes until all who wait are answered, about."""
        return self.left + sum(self.cost(*batch) for batch in self.batches(waiting, most))


def _units(batch: Sequence[Work]) -> float:
    return sum(one.units for one in batch)

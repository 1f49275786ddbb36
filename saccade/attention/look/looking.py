"""Seeing where a model looks, without changing what it computes.

Attention modules are *sites*. While someone is looking, a site shows what its weights follow from,
and statistics of them are computed beside the fused kernel, or later from queries and keys;
otherwise it computes nothing more. The output is that of the fused kernel either way.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.following import Follower, Step
from saccade.attention.look.glance import Glance, Keep, joined
from saccade.attention.look.later import Look
from saccade.attention.look.padding import AxisTokens
from saccade.attention.look.view import View
from saccade.attention.look.watching import watching
from saccade.errors import ConfigError

WAITING = 256 << 20  # bytes of queries and keys; beyond, looks are computed at once


class Trace:
    """What each site looked at in its last reading: a forward pass, or decoding step by step.

    `axes` says of each site what its rows and columns are. Padding counts nowhere. On the CPU a
    look is computed when it is first asked for; until then its queries and keys wait.
    """

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.axes: dict[str, tuple[Axis, Axis]] = {}
        self._seen: dict[str, list[tuple[Step, Look]]] = {}
        self._room = WAITING
        self._follower, self._tokens = Follower(), AxisTokens()

    def record(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        rows, columns = (axis.name for axis in self.axes[name])
        queries, keys = self._tokens.of(seen, rows, columns)
        look = Look(seen, self.keep, queries=queries, keys=keys, room=self._room)
        self._room -= look.waiting
        step = self._follower.step(name, seen, rows, columns)
        self._seen.setdefault(name, []).append((step, look))

    def follow(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        """Hear of a site that is not kept: it may tell how the rows of others go on."""
        rows, columns = (axis.name for axis in self.axes[name])
        if rows == columns:
            self._tokens.of(seen, rows, columns)
            self._follower.step(name, seen, rows, columns)

    def begin(self) -> None:
        """A forward pass begins."""
        self._follower.forward_pass += 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        return f"Trace({', '.join(self._seen) or 'nothing seen yet'})"

    def __getitem__(self, name: str) -> Glance:
        """What a site saw last: one call, or the steps of decoding, each row its hypothesis.

        Earlier readings are in `readings(name)`, single calls in `calls(name)`.
        """
        if name not in self._seen:
            known = ", ".join(self._seen) or "none yet: run the model inside the block"
            raise ConfigError(f"nothing was seen at {name!r}; there are: {known}")
        return _together(self._readings(name)[-1])

    def readings(self, name: str) -> list[Glance]:
        """What a site saw, forward pass by forward pass; the steps of decoding are one."""
        return [_together(steps) for steps in self._readings(name)]

    def _readings(self, name: str) -> list[list[tuple[Step, Look]]]:
        found: list[list[tuple[Step, Look]]] = []
        for step, look in self._seen.get(name, []):
            if not step.goes_on or not found:
                found.append([])
            found[-1].append((step, look))
        return found

    def calls(self, name: str) -> list[Glance]:
        """Every glance of a site, one for each time that it was called."""
        return [look.glance() for _, look in self._seen.get(name, [])]

    def weights(self) -> dict[str, Float[Tensor, "B N T S"]]:
        """Every weight of each site."""
        return {name: self._dense(name) for name in self}

    def _dense(self, name: str) -> Float[Tensor, "B N T S"]:
        glance = self[name]
        if glance.weights is None:
            size = max(glance.keys, glance.entropy.shape[2])
            raise ConfigError(
                f"the weights of {name} were not kept: {size} positions are more than "
                f"dense={self.keep.dense}; look with Keep(dense={size}), or use the statistics"
            )
        return glance.weights


def _together(steps: list[tuple[Step, Look]]) -> Glance:
    """The steps of one reading, each row followed back to where its hypothesis stood."""
    if len(steps) == 1:
        return steps[0][1].glance()
    index, parts = None, list[Glance]()
    for step, look in reversed(steps):
        parts.append(look.glance() if index is None else look.glance().rows(index))
        if step.parents is not None:
            index = step.parents if index is None else step.parents[index]
    return joined(parts[::-1])


@contextmanager
def looking(
    model: nn.Module, *, keep: Keep | None = None, only: str = ""
) -> Generator[Trace, None, None]:
    """Watch the sites whose names end in `only` (all by default) while the block runs.

    `model` is any module of torch, ours or not. `keep` says how much of each look is kept. What
    other threads do with the model meanwhile is not seen.
    """
    trace = Trace(keep or Keep())
    with watching(model, trace.record, only=only, follow=trace.follow, begin=trace.begin) as axes:
        trace.axes = axes
        yield trace

"""Seeing where a model looks, without changing what it computes.

Attention modules are *sites*. While someone is looking, a site shows what its weights follow from,
and statistics of them are computed beside the fused kernel; otherwise it computes nothing more.
The output is that of the fused kernel either way.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep, joined
from saccade.attention.look.observe import observe
from saccade.attention.look.view import View
from saccade.attention.look.watching import watching
from saccade.errors import ConfigError


class Trace:
    """What each site looked at, call by call, since the trace was last taken.

    `axes` says of each site what its rows and columns are. A site that is called once per forward
    pass has one glance; one that reads step by step has one per step.
    """

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.axes: dict[str, tuple[Axis, Axis]] = {}
        self._seen: dict[str, list[Glance]] = {}

    def record(self, name: str, seen: View | Float[Tensor, "B N T S"]) -> None:
        self._seen.setdefault(name, []).append(observe(seen, self.keep))

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __getitem__(self, name: str) -> Glance:
        """What a site saw: its calls one after another, as when a model reads step by step."""
        if name not in self._seen:
            known = ", ".join(self._seen) or "none yet: run the model inside the block"
            raise ConfigError(f"nothing was seen at {name!r}; there are: {known}")
        calls = self._seen[name]
        sizes = sorted({len(glance.lse) for glance in calls})
        if len(sizes) > 1:
            raise ConfigError(
                f"{name} was called with batches of {' and '.join(map(str, sizes))} rows, which do "
                f"not make one look; take them one by one with trace.calls({name!r})"
            )
        return calls[0] if len(calls) == 1 else joined(calls)

    def calls(self, name: str) -> list[Glance]:
        """Every glance of a site, one for each time that it was called."""
        return list(self._seen.get(name, []))

    def weights(self) -> dict[str, Float[Tensor, "B N T S"]]:
        """Every weight of each site."""
        return {name: self._dense(name) for name in self}

    def _dense(self, name: str) -> Float[Tensor, "B N T S"]:
        glance = self[name]
        if glance.weights is None:
            size = max(glance.keys, glance.lse.shape[2])
            raise ConfigError(
                f"the weights of {name} were not kept: {size} positions are more than "
                f"dense={self.keep.dense}; look with Keep(dense={size}), or use the statistics"
            )
        return glance.weights


@contextmanager
def looking(
    model: nn.Module, *, keep: Keep | None = None, only: str = ""
) -> Generator[Trace, None, None]:
    """Watch the sites whose names end in `only` (all by default) while the block runs.

    `model` is any module of torch, ours or not. `keep` says how much of each look is kept.
    """
    trace = Trace(keep or Keep())
    with watching(model, trace.record, only=only) as axes:
        trace.axes = axes
        yield trace

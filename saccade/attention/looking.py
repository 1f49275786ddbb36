"""Seeing where a model looks, without changing what it computes.

Attention modules are *sites*. While someone is looking, a site hands its weights over; otherwise
it computes none. The output is that of the fused path either way.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.errors import ConfigError

Watcher = Callable[[Float[Tensor, "B N T S"]], None]


class Site(nn.Module):
    """A place where a model attends. `watcher` is set only while someone is looking."""

    watcher: Watcher | None = None


class Trace:
    """What each site looked at, call by call, since the trace was last taken."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Float[Tensor, "B N T S"]]] = {}

    def record(self, name: str, weights: Float[Tensor, "B N T S"]) -> None:
        self._seen.setdefault(name, []).append(weights.detach())

    def take(self) -> dict[str, list[Float[Tensor, "B N T S"]]]:
        """Hand over what was seen and start afresh: decoding takes once per step."""
        seen, self._seen = self._seen, {}
        return seen

    def weights(self) -> dict[str, Float[Tensor, "B N T S"]]:
        """What each site saw: its calls one after another, as when a model reads step by step."""
        return {name: torch.cat(calls, dim=2) for name, calls in self._seen.items()}


def sites(model: nn.Module) -> dict[str, Site]:
    """Every attention site of a model by its stable name, such as `decoder.5.cross`."""
    found = ((name, module) for name, module in model.named_modules() if isinstance(module, Site))
    return {name.removesuffix("_attention"): module for name, module in found}


@contextmanager
def looking(model: nn.Module, *, only: str = "") -> Generator[Trace, None, None]:
    """Watch the sites whose names end in `only` (all by default) while the block runs."""
    watched = {name: site for name, site in sites(model).items() if name.endswith(only)}
    if not watched:
        raise ConfigError(f"{type(model).__name__} has no attention to look at")
    trace = Trace()
    for name, site in watched.items():
        site.watcher = _recorder(trace, name)
    try:
        yield trace
    finally:
        for site in watched.values():
            site.watcher = None


def _recorder(trace: Trace, name: str) -> Watcher:
    def record(weights: Float[Tensor, "B N T S"]) -> None:
        trace.record(name, weights)

    return record

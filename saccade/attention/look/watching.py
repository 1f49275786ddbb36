"""Attaching watchers to a model's sites, ours or Hugging Face's, for as long as a block runs."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look import huggingface
from saccade.attention.look.view import View, Watcher
from saccade.attention.site import Site
from saccade.errors import ConfigError

Record = Callable[[str, View | Float[Tensor, "B N T S"]], None]


def sites(model: nn.Module) -> dict[str, Site]:
    """Every attention site of a model by its stable name, such as `decoder.5.cross`."""
    found = ((name, module) for name, module in model.named_modules() if isinstance(module, Site))
    return {name.removesuffix("_attention"): module for name, module in found}


@contextmanager
def watching(
    model: nn.Module, record: Record, *, only: str = ""
) -> Generator[dict[str, tuple[Axis, Axis]], None, None]:
    """Show what every site whose name ends in `only` sees to `record`, with the site's name.

    Gives what the rows and columns of each site are, and once it was called what they were then: a
    picture of another size has another grid. Who looked before goes on looking: one block may lie
    inside another.
    """
    axes: dict[str, tuple[Axis, Axis]] = {}
    watched: dict[str, Site] = {}

    def watcher(name: str, before: Watcher | None = None) -> Watcher | None:
        if not name.endswith(only):
            return None

        def see(seen: View | Float[Tensor, "B N T S"]) -> None:
            if before is not None:
                before(seen)
            record(name, seen)
            if name in watched:
                axes[name] = watched[name].rows, watched[name].columns

        return see

    if huggingface.is_hugging_face(model):
        with huggingface.watching(model, watcher) as their_axes:
            yield their_axes
        return
    watched.update(_chosen(model, only))
    axes.update({name: (site.rows, site.columns) for name, site in watched.items()})
    before = {name: site.watcher for name, site in watched.items()}
    for name, site in watched.items():
        site.watcher = watcher(name, before[name])
    try:
        yield axes
    finally:
        for name, site in watched.items():
            site.watcher = before[name]


def _chosen(model: nn.Module, only: str) -> dict[str, Site]:
    there = sites(model)
    if not there:
        raise ConfigError(f"{type(model).__name__} has no attention to look at")
    watched = {name: site for name, site in there.items() if name.endswith(only)}
    if not watched:
        raise ConfigError(f"no site ends in only={only!r}; there are: {', '.join(there)}")
    return watched

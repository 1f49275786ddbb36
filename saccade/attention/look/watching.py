"""Attaching watchers to a model's sites, ours or anybody's, for as long as a block runs."""

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.modules import session
from saccade.attention.look.modules.calls import heads
from saccade.attention.look.modules.names import attending, innermost, names
from saccade.attention.look.view import View, Watcher
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.site import Site
from saccade.errors import ConfigError

Weights = Float[Tensor, "B N T S"]
Record = Callable[[str, View | Weights], Weights | None]


def sites(model: nn.Module) -> dict[str, Site]:
    """Every attention site of a model by its stable name, such as `decoder.5.cross`."""
    found = ((name, module) for name, module in model.named_modules() if isinstance(module, Site))
    return {name.removesuffix("_attention"): module for name, module in found}


def head_counts(model: nn.Module) -> dict[str, int]:
    """How many heads each site has, also those of others' modules; one where nobody says."""
    own = {
        name: site.heads if isinstance(site, MultiHeadAttention) else 1
        for name, site in sites(model).items()
    }
    if own:
        return own
    named = names(model)
    return {named[p]: heads(model.get_submodule(p)) or 1 for p in innermost(attending(model))}


def _ignored(*_: object) -> None: ...


@contextmanager
def watching(
    model: nn.Module,
    record: Record,
    *,
    only: str = "",
    follow: Callable[[str, View | Weights], None] = _ignored,
    begin: Callable[[], None] = _ignored,
    gradients: bool = False,
) -> Generator[dict[str, tuple[Axis, Axis]], None, None]:
    """Show what every site whose name ends in `only` sees to `record`, with the site's name.

    What it answers, if anything, are weights that a site of ours reads by in place of its own.
    Gives what the rows and columns of each site are, and once it was called what they were then: an
    image of another size has another grid. Who looked before goes on looking: one block may lie
    inside another. `begin` hears of each forward pass, and `follow` of the sites of others' modules
    that are not asked for. With `gradients` others' modules show the very weights that they read
    by, where they compute any. Other threads are not watched.
    """

    def watcher(name: str) -> Watcher | None:
        return (lambda seen: record(name, seen)) if name.endswith(only) else None

    own = sites(model)
    watched = {name: site for name, site in own.items() if name.endswith(only)}
    axes = {name: (site.rows, site.columns) for name, site in watched.items()}
    with ExitStack() as undo:
        for name, site in watched.items():
            undo.callback(setattr, site, "watcher", site.watcher)
            site.watcher = _seeing(site, name, record, axes)
        others = not own or any(not _is_ours(model.get_submodule(p)) for p in attending(model))
        if others:
            heard = session.watching(
                model, watcher, known=axes, follow=follow, begin=begin, gradients=gradients
            )
            undo.enter_context(heard)
        elif not watched:
            raise ConfigError(f"no site ends in only={only!r}; there are: {', '.join(own)}")
        else:
            undo.callback(model.register_forward_pre_hook(_each_time(begin)).remove)
        yield axes


def _each_time(begin: Callable[[], None]) -> Callable[..., None]:
    thread = threading.get_ident()

    def hook(*_: object) -> None:
        if threading.get_ident() == thread:
            begin()

    return hook


def _is_ours(module: nn.Module) -> bool:
    return type(module).__module__.startswith("saccade.")


def _seeing(site: Site, name: str, record: Record, axes: dict[str, tuple[Axis, Axis]]) -> Watcher:
    before, thread = site.watcher, threading.get_ident()

    def see(seen: View | Weights) -> Weights | None:
        answer = None if before is None else before(seen)
        if threading.get_ident() != thread:
            return answer
        axes[name] = site.rows, site.columns
        mine = record(name, seen)
        return answer if mine is None else mine

    return see

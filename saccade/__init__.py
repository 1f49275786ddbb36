"""Saccade: attention models you can train on your own data, use, and see where they look."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.app.api import load as load
    from saccade.app.api import train as train
    from saccade.app.figures.claim_figure import figure as figure
    from saccade.app.look.traced import show as show
    from saccade.attention.look.glance import Keep as Keep
    from saccade.attention.look.looking import looking as looking
    from saccade.attention.look.rollout import rolling_out as rolling_out
    from saccade.errors import SaccadeError as SaccadeError

__version__ = "0.1.0"
__all__ = ["Keep", "SaccadeError", "figure", "load", "looking", "rolling_out", "show", "train"]


_HOMES = {
    "Keep": "saccade.attention.look.glance",
    "SaccadeError": "saccade.errors",
    "figure": "saccade.app.figures.claim_figure",
    "load": "saccade.app.api",
    "looking": "saccade.attention.look.looking",
    "rolling_out": "saccade.attention.look.rollout",
    "show": "saccade.app.look.traced",
}


def __dir__() -> list[str]:
    """What it has once it is asked for, too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import saccade` alone stays quick."""
    if name == "train":  # a package that can be called
        return import_module("saccade.train")
    if name not in _HOMES:
        raise AttributeError(f"module 'saccade' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""Saccade: attention models you can train on your own data, use, and see where they look."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.app.api import load as load
    from saccade.attention.glance import Keep as Keep
    from saccade.attention.looking import looking as looking
    from saccade.attention.rollout import rolling_out as rolling_out

__version__ = "0.1.0"
__all__ = ["Keep", "load", "looking", "rolling_out"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import saccade` alone stays quick."""
    if name == "load":
        from saccade.app.api import load

        return load
    if name == "looking":
        from saccade.attention.looking import looking

        return looking
    if name == "Keep":
        from saccade.attention.glance import Keep

        return Keep
    if name == "rolling_out":
        from saccade.attention.rollout import rolling_out

        return rolling_out
    raise AttributeError(f"module 'saccade' has no attribute {name!r}")

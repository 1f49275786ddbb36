"""Saccade: attention models you can train on your own data, use, and see where they look."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.app.api import load as load
    from saccade.attention.looking import looking as looking

__version__ = "0.1.0"
__all__ = ["load", "looking"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import saccade` alone stays quick."""
    if name == "load":
        from saccade.app.api import load

        return load
    if name == "looking":
        from saccade.attention.looking import looking

        return looking
    raise AttributeError(f"module 'saccade' has no attribute {name!r}")

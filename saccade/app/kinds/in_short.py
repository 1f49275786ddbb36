"""What Python shows of a loaded model."""

from saccade.app.kinds.base import AnyModel


def model_in_short(self: AnyModel) -> str:
    """Its run, what it is, and its size: the `__repr__` of every kind's model."""
    size = sum(p.numel() for p in self.network.parameters())
    return f"<{self.name}: {self.recipe.about}, {size:,} parameters>"

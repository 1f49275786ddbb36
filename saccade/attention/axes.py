"""What lies along a side of an attention map: words, or the patches of an image."""

from dataclasses import dataclass
from typing import Literal

from saccade.data.images.lattice import Lattice


@dataclass(frozen=True)
class Axis:
    """A sequence with a name, such as `source`; a grid is read row by row.

    `special` is how many positions before the grid are none of its cells (class tokens, registers).
    A window is a grid whose cells are cut into groups that see only one another. `first` and
    `apart` are its lattice's.
    """

    name: str
    kind: Literal["tokens", "grid", "window"] = "tokens"
    height: int = 0
    width: int = 0
    special: int = 0
    first: float = 0.5
    apart: float = 1.0

    @property
    def lattice(self) -> Lattice:
        """Where the cells lie on the image."""
        return Lattice(self.height, self.width, self.first, self.apart)


TEXT, SOURCE, TARGET = Axis("text"), Axis("source"), Axis("target")

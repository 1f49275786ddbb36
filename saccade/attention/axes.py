"""What lies along a side of an attention map: words, or the patches of an image."""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from saccade.data.images.lattice import Lattice


@runtime_checkable
class WindowLayout(Protocol):
    """How a map of cells is cut into windows, each read row by row, and joined again."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    def cut(self, x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B windows T D"]:
        """The cells of each window; zeros where a window reaches beyond the map."""
        ...

    def joined(self, x: Float[Tensor, "B windows T D"]) -> Float[Tensor, "B h w D"]:
        """The map again."""
        ...


@dataclass(frozen=True)
class Axis:
    """A sequence with a name, such as `source`; a grid is read row by row.

    `special` is how many positions before the grid are none of its cells (class tokens, registers).
    A window is a grid whose cells are cut into groups that see only one another; `windows` says
    how, where that is known. `first` and `apart` are its lattice's, and `pixels` how many of them
    lie between neighbours (0 where nobody knows).
    """

    name: str
    kind: Literal["tokens", "grid", "window"] = "tokens"
    height: int = 0
    width: int = 0
    special: int = 0
    first: float = 0.5
    apart: float = 1.0
    pixels: float = 0.0
    windows: WindowLayout | None = None

    @property
    def lattice(self) -> Lattice:
        """Where the cells lie on the image, if it ends where they do."""
        return Lattice(self.height, self.width, self.first, self.apart)

    def on(self, image: tuple[int, int]) -> Lattice:
        """Where the cells lie on an image of so many pixels."""
        if not self.pixels:
            return self.lattice
        return replace(self.lattice, sides=(image[0] / self.pixels, image[1] / self.pixels))

    @property
    def whole(self) -> "Axis":
        """The grid that windows were cut from; any other is whole."""
        cut = self.windows
        if cut is None:
            return self
        return replace(self, kind="grid", height=cut.height, width=cut.width, windows=None)


TEXT, SOURCE, TARGET = Axis("text"), Axis("source"), Axis("target")

"""Where on an image attention falls, in words."""

from jaxtyping import Float
from torch import Tensor

from saccade.data.images.lattice import Lattice

THIRDS = (
    ("top left", "top", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom", "bottom right"),
)


def place_of(cell: int, lattice: Lattice) -> str:
    """Which ninth of the image a cell lies in, by its middle."""
    y, x = (min(int(3 * share), 2) for share in lattice.middle(cell))
    return THIRDS[y][x]


def places(weights: Float[Tensor, "h w"], lattice: Lattice) -> list[tuple[str, float]]:
    """The mass in each ninth of the image, most first."""
    sums: dict[str, float] = {}
    for cell, weight in enumerate(weights.flatten().tolist()):
        name = place_of(cell, lattice)
        sums[name] = sums.get(name, 0.0) + weight
    return sorted(sums.items(), key=lambda one: -one[1])


def in_words(weights: Float[Tensor, "h w"], lattice: Lattice) -> str:
    """The heaviest places with their mass, and what is left."""
    if not weights.any():
        return "nowhere"
    heavy = [(n, m) for i, (n, m) in enumerate(places(weights, lattice)[:3]) if i == 0 or m >= 0.05]
    other = 1 - sum(mass for _, mass in heavy)
    parts = [f"{name} {mass:.2f}" for name, mass in heavy]
    return ", ".join([*parts, f"other {other:.2f}"] if other >= 0.005 else parts)

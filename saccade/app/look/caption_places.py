"""Where on a picture attention falls, in words."""

from jaxtyping import Float
from torch import Tensor

THIRDS = (
    ("top left", "top", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom", "bottom right"),
)


def place_of(row: int, column: int, shape: tuple[int, int]) -> str:
    """Which ninth of the picture a cell lies in, by its middle."""
    height, width = shape
    return THIRDS[int(3 * (row + 0.5) / height)][int(3 * (column + 0.5) / width)]


def places(weights: Float[Tensor, "h w"]) -> list[tuple[str, float]]:
    """The mass in each ninth of the picture, most first."""
    shape = (weights.shape[0], weights.shape[1])
    sums: dict[str, float] = {}
    for row, line in enumerate(weights.tolist()):
        for column, weight in enumerate(line):
            name = place_of(row, column, shape)
            sums[name] = sums.get(name, 0.0) + weight
    return sorted(sums.items(), key=lambda one: -one[1])


def peak(weights: Float[Tensor, "h w"]) -> tuple[int, int]:
    """Row and column of the cell that is looked at most."""
    return divmod(int(weights.argmax()), weights.shape[1])


def in_words(weights: Float[Tensor, "h w"]) -> str:
    """The heaviest places with their mass, and what is left."""
    if not weights.any():
        return "nowhere"
    heavy = [(n, m) for i, (n, m) in enumerate(places(weights)[:3]) if i == 0 or m >= 0.05]
    other = 1 - sum(mass for _, mass in heavy)
    parts = [f"{name} {mass:.2f}" for name, mass in heavy]
    return ", ".join([*parts, f"other {other:.2f}"] if other >= 0.005 else parts)

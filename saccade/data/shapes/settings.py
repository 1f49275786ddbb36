"""Which scenes: the splits, their kinds, and the settings that shape them."""

from dataclasses import dataclass
from typing import NamedTuple

from saccade.errors import ConfigError

_FEWEST, _MOST = 1, 5
_SMALLEST_IMAGE = 32


class SplitKind(NamedTuple):
    """What a split asks of its scenes: a share of all arrangements, and a kind of scene."""

    share: str  # train, valid or test
    held_out: bool = False
    many: bool = False
    figures: bool = False
    balanced: bool = False


SPLIT_KINDS = {
    "train": SplitKind("train"),
    "valid": SplitKind("valid"),
    "test": SplitKind("test"),
    "compositional": SplitKind("test", held_out=True),
    "many-train": SplitKind("train", many=True),
    "many-valid": SplitKind("valid", many=True),
    "many": SplitKind("test", many=True),
    "biased-train": SplitKind("train", figures=True),
    "biased-valid": SplitKind("valid", figures=True),
    "biased-test": SplitKind("test", figures=True),
    "balanced-test": SplitKind("test", figures=True, balanced=True),
}
SPLITS = tuple(SPLIT_KINDS)


@dataclass(frozen=True, kw_only=True)
class ShapesSettings:
    """Which scenes of shapes there are.

    Args:
        seed: another one gives other scenes.
        size: side of images that are drawn for themselves; a captioner's is its `image`.
        fewest: objects in a plain scene, at least; scenes of many have four or five.
        most: objects in a plain scene, at most.
        bias: share of figures that their surroundings predict, where scenes are biased.
    """

    seed: int = 0
    size: int = 64
    fewest: int = _FEWEST
    most: int = _MOST
    bias: float = 0.95

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed={self.seed} is negative; use 0 or more")
        if self.size < _SMALLEST_IMAGE:
            raise ConfigError(
                f"size={self.size} is too small to see anything; use {_SMALLEST_IMAGE} or more"
            )
        if self.fewest < _FEWEST or self.most > _MOST:
            raise ConfigError(
                f"fewest={self.fewest} and most={self.most} leave the range {_FEWEST} to {_MOST}"
            )
        if self.fewest > self.most:
            raise ConfigError(f"fewest={self.fewest} exceeds most={self.most}; swap or widen them")
        if not 0 <= self.bias <= 1:
            raise ConfigError(f"bias={self.bias} is no share; give a number from 0 to 1")


def split_kind(split: str) -> SplitKind:
    """Look a split up by name."""
    if split not in SPLIT_KINDS:
        raise ConfigError(f"no split {split!r}; try one of: {', '.join(SPLITS)}")
    return SPLIT_KINDS[split]

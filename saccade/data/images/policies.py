"""Augmentation policies: which operations an image goes through, and how far.

RandAugment (Cubuk et al. 2020, arXiv:1909.13719) as `rand-m9-mstd0.5-inc1` of timm has it,
AutoAugment's policy for CIFAR-10 (Cubuk et al. 2019, arXiv:1805.09501), 3-Augment (Touvron et al.
2022, arXiv:2204.07118).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.images.augment import Images, grey
from saccade.data.images.constants import constant
from saccade.data.images.operations import LEVELS, OPERATIONS, blurred, operate
from saccade.errors import ConfigError

STRONGEST = 10.0


class Strength(NamedTuple):
    """What an operation is given at the strongest, from what it is given at none; perhaps either
    way round.
    """

    none: float
    most: float
    signed: bool = False
    whole: bool = False


RAND: dict[str, Strength] = {
    "autocontrast": Strength(0, 0),
    "equalize": Strength(0, 0),
    "invert": Strength(0, 0),
    "rotate": Strength(0, 30, signed=True),
    "posterize": Strength(4, 0, whole=True),
    "solarize": Strength(LEVELS, 0, whole=True),
    "solarize-add": Strength(0, 110, whole=True),
    "colour": Strength(1, 1.9, signed=True),
    "contrast": Strength(1, 1.9, signed=True),
    "brightness": Strength(1, 1.9, signed=True),
    "sharpness": Strength(1, 1.9, signed=True),
    "shear-x": Strength(0, 0.3, signed=True),
    "shear-y": Strength(0, 0.3, signed=True),
    "translate-x": Strength(0, 0.45, signed=True),
    "translate-y": Strength(0, 0.45, signed=True),
}
AUTO: dict[str, Strength] = {
    **RAND,
    "posterize": Strength(8, 4, whole=True),
    "solarize": Strength(LEVELS - 1, 0),
    "translate-x": Strength(0, 150 / 331, signed=True),
    "translate-y": Strength(0, 150 / 331, signed=True),
}


def _table(strengths: dict[str, Strength]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """By the operations' numbers, and by whether they are the other way round: what is given at
    none, how much more at the strongest, and whether that is whole.
    """
    rows = [strengths.get(name, Strength(0, 0)) for name in OPERATIONS]
    return tuple(
        tuple(
            (float(row.none), sign * (row.most - row.none), float(row.whole))
            for sign in (1.0, -1.0 if row.signed else 1.0)
        )
        for row in rows
    )


def amounts(
    strengths: dict[str, Strength],
    operation: Int[Tensor, "B steps"],
    share: Float[Tensor, "B steps"],
    turned: Bool[Tensor, "B steps"],
) -> Float[Tensor, "B steps"]:
    """What each operation is given: a share of the strongest, perhaps the other way round."""
    rows = constant(_table(strengths), share)[operation, turned.long()]
    none, more, whole = rows.unbind(dim=2)
    amount = torch.addcmul(none, share, more)
    return torch.where(whole > 0, _rounded(amount, strengths is AUTO), amount)


def _rounded(amount: Tensor, nearest: bool) -> Tensor:
    return amount.round() if nearest else amount.ceil()


@dataclass(frozen=True, kw_only=True)
class RandAugment:
    """Two operations in a row, each with probability ½, all drawn alike.

    Their strength is normal about `magnitude` tenths of the strongest.
    """

    magnitude: float = 9.0
    deviation: float = 0.5
    rounds: int = 2
    chance: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.magnitude <= STRONGEST:
            raise ConfigError(f"RandAugment: magnitude={self.magnitude} is not in 0…10")

    @property
    def draws(self) -> int:
        return 5 * self.rounds

    def __call__(self, images: Images, u: Float[Tensor, "B draws"]) -> Images:
        numbers = constant(tuple(OPERATIONS.index(name) for name in RAND), u)
        which, happens, sign, one, other = u.unflatten(1, (self.rounds, 5)).unbind(dim=2)
        normal = (-2 * (1 - one).log()).sqrt() * (2 * math.pi * other).cos()  # Box and Muller
        share = (self.magnitude + self.deviation * normal).clamp(0, STRONGEST) / STRONGEST
        number = numbers[(which * len(RAND)).long()].long()
        amount = amounts(RAND, number, share, sign < 0.5)
        return operate(images, number * (happens < self.chance), amount, [RAND] * self.rounds)


Rule = tuple[tuple[str, float, int], tuple[str, float, int]]
CIFAR: tuple[Rule, ...] = (  # operation, probability, ninths of the strongest
    (("invert", 0.1, 0), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate-x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear-y", 0.5, 8), ("translate-y", 0.7, 9)),
    (("autocontrast", 0.5, 0), ("equalize", 0.9, 0)),
    (("shear-y", 0.2, 7), ("posterize", 0.3, 7)),
    (("colour", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 0), ("equalize", 0.5, 0)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("colour", 0.7, 7), ("translate-x", 0.5, 8)),
    (("equalize", 0.3, 0), ("autocontrast", 0.4, 0)),
    (("translate-y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("colour", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 0)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 0), ("equalize", 0.6, 0)),
    (("colour", 0.9, 9), ("equalize", 0.6, 0)),
    (("autocontrast", 0.8, 0), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("colour", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 0)),
    (("translate-y", 0.9, 9), ("translate-y", 0.7, 9)),
    (("autocontrast", 0.9, 0), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 0), ("invert", 0.1, 0)),
    (("translate-y", 0.7, 9), ("autocontrast", 0.9, 0)),
)


@dataclass(frozen=True)
class AutoAugment:
    """One of 25 pairs of operations, found by search on CIFAR-10, each with its own probability."""

    rules: tuple[Rule, ...] = CIFAR
    draws = 5

    def __call__(self, images: Images, u: Float[Tensor, "B 5"]) -> Images:
        table = tuple(
            tuple((OPERATIONS.index(name), p, ninths / 9) for name, p, ninths in rule)
            for rule in self.rules
        )
        rows = constant(table, u)[(u[:, 0] * len(self.rules)).long()]  # (B, 2, 3)
        number, chance, share = rows.unbind(dim=2)
        happens, sign = u[:, 1:].unflatten(1, (2, 2)).unbind(dim=2)
        operation = (number * (happens < chance)).long()
        amount = amounts(AUTO, operation, share, sign < 0.5)
        among = [{name for name, p, _ in step if p} for step in zip(*self.rules)]
        return operate(images, operation, amount, among)


@dataclass(frozen=True, kw_only=True)
class ThreeAugment:
    """Grey, turned around from the middle level on, or blurred: one of the three, drawn alike."""

    radius: tuple[float, float] = (0.1, 2.0)
    draws = 2

    def __call__(self, images: Images, u: Float[Tensor, "B 2"]) -> Images:
        which = (u[:, :1, None, None] * 3).long()
        low, high = self.radius
        turned = torch.minimum(images, 1 - images)
        soft = blurred(images, low + u[:, 1] * (high - low))
        others = torch.where(which == 1, turned, soft)
        return torch.where(which == 0, grey(images).expand_as(images), others)

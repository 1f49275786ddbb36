"""Right, wrong or neutral, group by group: whom a captioner wrongs, and whom it wrongs more.

Hendricks et al. 2018, arXiv:1803.09797, §4. A caption that says no group, or several, is neutral:
to decline is no error. Groups are what words say, nothing else.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from saccade.errors import ConfigError
from saccade.metrics.captioning import caption_words


class WordGroup(NamedTuple):
    """A group and the words that say it; its name is the first of them."""

    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.words[0]


class GroupOutcome(NamedTuple):
    """How often the images of a group were told right, wrong, or without saying which."""

    right: int
    wrong: int
    neutral: int

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def shares(self) -> tuple[float, float, float]:
        """The three as shares of all."""
        return self.right / self.total, self.wrong / self.total, self.neutral / self.total


def read_groups(lists: Sequence[str]) -> tuple[WordGroup, ...]:
    """Groups from lists of words with commas between: "man,boy", "woman,girl"."""
    groups = tuple(
        WordGroup(tuple(word for part in one.split(",") if (word := part.strip().lower())))
        for one in lists
    )
    words = [word for group in groups for word in group.words]
    if len(groups) < 2 or not all(group.words for group in groups):
        raise ConfigError(
            f"groups={tuple(lists)!r} must be two lists of words or more: man,boy woman,girl"
        )
    if len(set(words)) < len(words):
        raise ConfigError(f"groups={tuple(lists)!r} has a word twice; each says one group")
    odd = [word for word in words if caption_words(word) != (word,)]
    if odd:
        raise ConfigError(f"groups={tuple(lists)!r}: {odd[0]!r} is not one word; give single words")
    return groups


def group_said(caption: str, groups: Sequence[WordGroup]) -> str | None:
    """The name of the group that a caption says; None where it says none, or several."""
    said = set(caption_words(caption))
    found = [group.name for group in groups if said & set(group.words)]
    return found[0] if len(found) == 1 else None


def outcomes(truth: Sequence[str], said: Sequence[str | None]) -> dict[str, GroupOutcome]:
    """The outcome of each group that occurs."""
    found: dict[str, list[int]] = {}
    for right, told in zip(truth, said, strict=True):
        place = 2 if told is None else 0 if told == right else 1
        found.setdefault(right, [0, 0, 0])[place] += 1
    return {name: GroupOutcome(*found[name]) for name in sorted(found)}


def error_rate(found: dict[str, GroupOutcome]) -> float:
    """The share of all images that were told to be of another group; neutral is no error."""
    total = sum(one.total for one in found.values())
    return sum(one.wrong for one in found.values()) / total if total else 0.0


def ratio(names: Sequence[str | None], groups: Sequence[WordGroup]) -> float | None:
    """How often the second group is named for each time the first is; None if that never is.

    For more than two groups: all but the first against the first.
    """
    first = sum(name == groups[0].name for name in names)
    others = sum(name in {group.name for group in groups[1:]} for name in names)
    return others / first if first else None


def divergence(distributions: Sequence[Sequence[float]]) -> float:
    """Jensen–Shannon divergence in bits: 0 where all are alike, 1 where two have nothing in common.

        JS(p, q) = ½ KL(p ∥ m) + ½ KL(q ∥ m)        m = (p + q) / 2

    Of more than two, the mean over them in place of the halves.
    """
    if len(distributions) < 2:
        return 0.0
    middle = [math.fsum(column) / len(distributions) for column in zip(*distributions, strict=True)]
    found = math.fsum(
        p * math.log2(p / m) for one in distributions for p, m in zip(one, middle) if p > 0
    )
    return max(0.0, found / len(distributions))


def outcome_divergence(found: dict[str, GroupOutcome]) -> float:
    """How differently groups fare: the divergence of their shares of right, wrong and neutral."""
    return divergence([one.shares for one in found.values()])

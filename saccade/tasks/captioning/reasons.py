"""Right for the right reasons: what is said of each group, and where it is read from.

Hendricks et al. 2018, arXiv:1803.09797; for any captioner, on the biased world of shapes or on a
user's images whose rows name a group.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from saccade.data.shapes import CONTEXTS, GROUPS, Scene
from saccade.decode.engine import Decoding
from saccade.metrics.outcomes import (
    GroupOutcome,
    WordGroup,
    error_rate,
    group_said,
    outcome_divergence,
    outcomes,
    ratio,
    read_groups,
)
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import Captioned, CaptioningSettings, read_captioned
from saccade.tasks.captioning.pointing import (
    Pointed,
    can_point,
    pointed,
    pointed_given,
    summed,
    write_captions,
)
from saccade.tasks.captioning.regions import group_of

WORLDS = ("biased-test", "balanced-test")


def has_groups(data: Captioned, settings: CaptioningSettings) -> bool:
    """Whether there is anything to report."""
    return any(groups_of(data, read_groups(settings.equalizer.groups)))


def groups_of(data: Captioned, groups: Sequence[WordGroup]) -> list[str | None]:
    """The group that each image is of; None where nothing says so."""
    if data.scenes:
        return [scene.group for scene in data.scenes]
    return [group_of(row, groups) for row in data.rows]


def worlds(captioner: ImageCaptioner, how: Decoding) -> dict[str, Any]:
    """The report on the biased test of shapes and on the balanced one, side by side."""
    settings = captioner.settings
    return {world: reasons(captioner, read_captioned(settings, world), how) for world in WORLDS}


def reasons(captioner: ImageCaptioner, data: Captioned, how: Decoding) -> dict[str, Any]:
    """Outcomes of each group, how far they differ, and the pointing game at the groups' words.

    Only images whose group is known count. Pointing is left out where the model does not look,
    or the data do not say where things are.
    """
    groups = read_groups(captioner.settings.equalizer.groups)
    known = [(i, name) for i, name in enumerate(groups_of(data, groups)) if name is not None]
    some, truth = (
        data.only(torch.tensor([i for i, _ in known], dtype=torch.long), data.report),
        [name for _, name in known],
    )
    looks = can_point(captioner, some)
    said: dict[int, str | None] = {}
    game: list[Pointed] = []
    for number, one in write_captions(captioner, some, how, look=looks):
        said[number] = group_said(one.text, groups)
        game += pointed(captioner, some, number, one) if looks else []
    found = _fared([truth[i] for i in sorted(said)], [said[i] for i in sorted(said)], groups)
    found["of_no_group"] = len(data) - len(some)
    odd = [i for i in sorted(said) if some.scenes and against_the_bias(some.scenes[i])]
    if odd:
        found["against_the_bias"] = _shares(
            sum(outcomes([truth[i]], [said[i]])[truth[i]][kind] for i in odd) for kind in range(3)
        )
    if looks:
        telling = [
            next((one for one in captions if group_said(one, groups) == name), captions[0])
            for captions, name in zip(some.captions, truth)
        ]
        given = pointed_given(captioner, some, telling)
        found |= {
            "pointing": summed(_at_groups(game, groups)),
            "pointing_given": summed(_at_groups(given, groups)),
        }
    return found


def against_the_bias(scene: Scene) -> bool:
    """Whether the surroundings suggest another group than the figure's.

    To be right here takes the figure; elsewhere the surroundings do as well.
    """
    if scene.group is None or scene.context is None:
        return False
    return CONTEXTS.index(scene.context.kind) != GROUPS.index(scene.group)


def _at_groups(game: Iterable[Pointed], groups: Sequence[WordGroup]) -> list[Pointed]:
    people = {word for group in groups for word in group.words}
    return [one for one in game if one.word in people]


def _fared(truth: list[str], said: list[str | None], groups: Sequence[WordGroup]) -> dict[str, Any]:
    """Outcomes in shares, and what follows from them."""
    found = outcomes(truth, said)
    return {
        "images": len(truth),
        "error": error_rate(found),
        "divergence": outcome_divergence(found),
        "ratio": ratio(said, groups),
        "true_ratio": ratio(truth, groups),
        "outcomes": {name: _shares(one) for name, one in found.items()},
    }


def _shares(counts: Iterable[int]) -> dict[str, Any]:
    one = GroupOutcome(*counts)
    return {"images": one.total, **dict(zip(("right", "wrong", "neutral"), one.shares))}

"""The pointing game: at a noun, do words look at the region that the noun means?"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.data.images.lattice import Lattice
from saccade.data.shapes import Scene
from saccade.data.tokens.words import word_spans
from saccade.errors import ConfigError
from saccade.metrics.pointing import points_at
from saccade.models.joint.co_attention import REGIONS
from saccade.tasks.base import Progress, silent
from saccade.tasks.captioning.regions import in_scene, meant_object
from saccade.tasks.joint.batch import seen_regions
from saccade.tasks.joint.task import TextsOfImages
from saccade.tasks.joint.tool import JointTool, SightedImage


class _Noun(NamedTuple):
    """A noun of a text: its tokens, the object it means, and where that is seen."""

    tokens: list[int]
    thing: int
    box: Bool[Tensor, "H W"]


def pointing(tool: JointTool, read: TextsOfImages, progress: Progress = silent) -> dict[str, Any]:
    """At every noun of the first text of each scene: whether the region it looks at most is meant,
    by each head of each joint layer and by the mean of its heads.

    Of boxes it is the very box, among those of the objects; of cells, whether the middle of the
    cell lies in the object's box. Chance is 1 / boxes, or the box's share of the image.
    """
    if not read.sighted.scenes:
        raise ConfigError("the pointing game needs to know what each word means: built-in shapes")
    hits, chances = dict[str, list[Tensor]](), list[float]()
    for number, scene in enumerate(read.sighted.scenes):
        nouns = list(_nouns(tool, scene, read.texts[number][0]))
        seen = _looked(tool, read, number) if nouns else {}
        for noun in nouns:
            if tool.wants_boxes:
                chances.append(1 / len(scene.objects))
            else:
                chances.append(float(noun.box.float().mean()))
            for site, (weights, axis) in seen.items():
                right = _hit(weights[:, noun.tokens].mean(dim=1), axis, noun)
                hits.setdefault(site, []).append(right)
        progress(number + 1, len(read.sighted.scenes))
    if not chances:
        raise ConfigError("no noun of these texts means one object for certain")
    shares = {site: torch.stack(some).float().mean(dim=0).tolist() for site, some in hits.items()}
    return {
        "nouns": len(chances),
        "chance": sum(chances) / len(chances),
        "layers": {site: {"mean": mean, "heads": heads} for site, (mean, *heads) in shares.items()},
    }


def _nouns(tool: JointTool, scene: Scene, text: str) -> Iterator[_Noun]:
    reading = tool.reading(text)
    spans = word_spans(text)
    words, meant = [text[a:b] for a, b in spans], in_scene(scene, tool.settings.image)
    for place, (start, end) in enumerate(spans):
        region, thing = meant(words, place), meant_object(words, place, scene)
        if region is not None and thing is not None:
            pieces = enumerate(zip(reading.spans, reading.sides))
            tokens = [
                t for t, ((a, b), side) in pieces if side is not None and a < end and start < b
            ]
            yield _Noun(tokens, thing, region.box)


@torch.no_grad()
def _looked(
    tool: JointTool, read: TextsOfImages, number: int
) -> dict[str, tuple[Float[Tensor, "H T S"], Axis]]:
    """How much each word of a scene's first text looked at each region, in every joint layer."""
    sighted = read.sighted
    pixels = sighted.images[torch.tensor([number])][0]
    image = SightedImage(pixels, sighted.boxes[number, : int(sighted.counts[number])])
    rows, types = tool.rows([tool.reading(read.texts[number][0])])
    regions = seen_regions(tool.model, tool.glimpse([image]))
    longest = max(len(rows.tokens), len(regions.boxes))
    with looking(
        tool.model, keep=Keep(dense=longest, map_side=0, top=0, received=False), only=".cross"
    ) as trace:
        tool.model(rows, types, regions, torch.zeros(1, dtype=torch.long, device=tool.device))
        found = trace.weights()
        axes = {
            name: columns
            for name, (_, columns) in trace.axes.items()
            if columns.name == REGIONS.name
        }
    return {name: (found[name][0].float().cpu(), axis) for name, axis in axes.items()}


def _hit(looks: Float[Tensor, "H S"], axis: Axis, noun: _Noun) -> Bool[Tensor, " maps"]:
    """Whether the mean of the heads points at it, then each head."""
    maps = torch.cat([looks.mean(dim=0, keepdim=True), looks])
    if axis.kind != "grid":
        return maps[:, 1:].argmax(dim=1) == noun.thing  # the whole image is no answer
    lattice: Lattice = axis.lattice
    on_grid = maps[:, axis.special :].unflatten(1, (axis.height, axis.width))
    return points_at(on_grid, noun.box.expand(len(maps), -1, -1), lattice)

"""The scene in an image: for each colour the shapes that explain its pixels, then what covers what.

It reads what `render` draws, and images that were generated to look so: objects of the eight
simple kinds. Figures, boats and kites it does not know.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from saccade.data.shapes.scenes import COLOURS, Scene, Thing, boxes_meet
from saccade.data.shapes.seeing.evidence import Evidence, evidence
from saccade.data.shapes.seeing.fitting import Layer, best_fit, contrasted, rough_fits, without
from saccade.data.shapes.seeing.templates import SIDE, Pose, blurred
from saccade.errors import DataError

_SMALLEST_IMAGE = 32
_FEWEST = 12  # pixels that are mostly of a colour, or there is nothing to find
_MOST = 6  # objects of one colour
_AGREED = 0.75  # how far a drawing and what is seen must agree
_VISIBLE = 0.5  # share of an object that must be seen
_MARGIN = 1
_HALO, _MOST_AROUND = 1.5, 0.3  # pixels around a drawing, and how much of them may be its colour
_LEAST_GROUND = 0.4  # share of an image that shows background; scenes have more than half


class _SeenObject(NamedTuple):
    thing: Thing
    drawn: Float[np.ndarray, "H W"]
    share: Float[np.ndarray, "H W"]


def see(image: UInt8[np.ndarray, "3 H W"]) -> Scene:
    """The scene that an image shows, objects from far to near.

    Its background and seed are of no meaning. Two objects may share colour and kind, which no
    scene of the splits has. What looks like no shape is left out; an image with hardly any
    background shows no scene, and so no objects.
    """
    seen = evidence(_resized(image))
    if seen.ground.mean() < _LEAST_GROUND:
        return Scene((), "plain", 0)
    found = [
        _SeenObject(pose.thing(colour), pose.drawn(), share)
        for colour, share, weight in zip(COLOURS, seen.share, seen.weight, strict=True)
        for pose in _poses(Layer(share, weight), seen)
    ]
    return Scene(tuple(one.thing for one in _from_far(found)), "plain", 0)


def _poses(layer: Layer, seen: Evidence) -> Iterator[Pose]:
    """Shapes of one colour, the clearest first: each is taken away before the next is sought."""
    whole = layer
    for _ in range(_MOST):
        if np.count_nonzero(layer.share > 0.5) < _FEWEST:
            return
        rough = rough_fits(layer)
        if not rough:
            return
        place = max(rough, key=lambda fit: fit.gain).pose
        clear = contrasted(layer, seen.image, seen.ground, place)
        pose = best_fit(clear or layer, rough).pose
        drawn = pose.drawn()
        if clear and _agrees(clear, drawn) and _ends(whole, drawn):
            yield pose
        layer = without(layer, drawn)


def _agrees(layer: Layer, drawn: Float[np.ndarray, "H W"]) -> bool:
    """Whether what is seen within the box of a drawing is the drawing, and enough of it.

    Σ w s d / (Σ w s² + Σ w d² − Σ w s d) ≥ 0.75,   which for masks is the IoU
    """
    near = _box(drawn > 0.1)
    share, weight, drawn = layer.share[near], layer.weight[near], drawn[near]
    both = float((weight * share * drawn).sum())
    either = float((weight * (share * share + drawn * drawn)).sum()) - both
    return both >= _AGREED * either and both >= _VISIBLE * float((drawn * drawn).sum())


def _ends(layer: Layer, drawn: Float[np.ndarray, "H W"]) -> bool:
    """Whether the colour ends where the drawing does: it is no piece of a larger area."""
    around = np.where(drawn < 0.02, blurred(drawn, _HALO), 0) * layer.weight
    return float((around * layer.share).sum()) <= _MOST_AROUND * float(around.sum())


def _box(inside: Bool[np.ndarray, "H W"]) -> tuple[slice, slice]:
    rows, columns = np.nonzero(inside)
    return _span(rows), _span(columns)


def _span(at: Int[np.ndarray, " P"]) -> slice:
    return slice(max(0, int(at.min()) - _MARGIN), int(at.max()) + 1 + _MARGIN)


def _from_far(found: list[_SeenObject]) -> list[_SeenObject]:
    """Sorted from far to near: where two overlap, the one whose colour is seen there is nearer."""
    left, order = list(found), list[_SeenObject]()
    while left:
        covering = [
            sum(_is_before(one, other) for other in left if other is not one) for one in left
        ]
        order.append(left.pop(int(np.argmin(covering))))
    return order


def _is_before(one: _SeenObject, other: _SeenObject) -> bool:
    if not boxes_meet(one.thing.box, other.thing.box):
        return False
    return float((one.drawn * other.drawn * (one.share - other.share)).sum()) > 0


def _resized(image: UInt8[np.ndarray, "3 H W"]) -> Float[np.ndarray, "3 64 64"]:
    """The image at the side it is read at, from 0 to 1; each pixel is a mean over its area."""
    side = image.shape[-1]
    if image.shape[-2] != side or side < _SMALLEST_IMAGE:
        raise DataError(
            f"an image of {image.shape[-2]}×{side} pixels cannot be read for shapes; "
            f"give a square one of {_SMALLEST_IMAGE} pixels or more"
        )
    shares = image.astype(np.float32) / 255
    if side == SIDE:
        return shares
    edges = np.linspace(0, side, SIDE + 1)[:, None]
    within = np.clip(edges - np.arange(side), 0, 1)  # what lies before each edge
    means = (np.diff(within, axis=0) * (SIDE / side)).astype(np.float32)  # (64, side)
    return means @ shares @ means.T

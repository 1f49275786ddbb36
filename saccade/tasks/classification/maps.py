"""Where a class came from: maps over an image's cells, for any image encoder.

Four kinds. `attention` is where each layer and head looks; `rollout` follows that through all
layers (Abnar and Zuidema 2020, arXiv:2005.00928). Both are the same whatever class is asked for.
`relevance` weighs attention by the gradient of the class's score (Chefer et al. 2021,
arXiv:2103.15679), and `grad_cam` weighs the channels of a grid by it (Selvaraju et al. 2017,
arXiv:1610.02391), which needs no attention. A map says what a model made use of, by one of several
rules: it is no explanation.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.on_image import (
    LayerWeights,
    all_weights,
    falls_on,
    followed_back,
    followed_evenly,
    on_cells,
    read_class,
)
from saccade.attention.look.view import View
from saccade.attention.look.watching import sites, watching
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError
from saccade.metrics.pointing import mass_inside, points_at, widened
from saccade.models.vision.image_encoder import ImageEncoder, image_axis

MapKind = Literal["attention", "rollout", "relevance", "grad_cam"]
Images = Float[Tensor, "B 3 H W"]
Classes = Int[Tensor, " B"]


@dataclass(frozen=True)
class ImageMap:
    """A number for each cell of an image, and where the cells lie; never negative."""

    values: Float[Tensor, "B *heads h w"]
    lattice: Lattice


@dataclass(frozen=True)
class ClassMaps:
    """Maps of a batch of images for a class each; what was not asked for is not there.

    `attention` has a map for each site and head: what the class token looks at or, where there is
    none, what all cells look at on average.
    """

    target: Classes
    scores: Float[Tensor, "B classes"]
    attention: dict[str, ImageMap] = field(default_factory=dict[str, ImageMap])
    maps: dict[MapKind, ImageMap] = field(default_factory=dict[MapKind, ImageMap])


def map_kinds(model: ImageEncoder) -> tuple[MapKind, ...]:
    """Those that there are: without attention only Grad-CAM, and with a single block that reads the
    class at a token of its own no Grad-CAM, which has no grid before that block to weigh.
    """
    every: tuple[MapKind, ...] = get_args(MapKind)
    if not sites(model):
        return ("grad_cam",)
    return every if model.stages > 1 else tuple(kind for kind in every if kind != "grad_cam")


def class_maps(
    model: ImageEncoder,
    image: Images,
    target: Classes | None = None,
    *,
    kinds: Iterable[MapKind] | None = None,
) -> ClassMaps:
    """Maps of the kinds asked for (all by default), for given classes or the predicted ones."""
    kinds = map_kinds(model) if kinds is None else tuple(kinds)
    with _evaluating(model), torch.no_grad():
        scores = model(image)
    classes: Classes = scores.argmax(dim=1) if target is None else target
    attention = attention_maps(model, image) if "attention" in kinds else {}
    maps: dict[MapKind, ImageMap] = {
        kind: make(model, image, classes) for kind, make in MAKERS.items() if kind in kinds
    }
    return ClassMaps(classes, scores, attention, maps)


def attention_maps(model: ImageEncoder, image: Images) -> dict[str, ImageMap]:
    """For each site what each head looks at, on the cells that its keys are."""
    found: dict[str, ImageMap] = {}

    def keep(name: str, layer: LayerWeights) -> None:
        onto = falls_on(read_class(layer.rows, len(image)), layer)
        found[name] = ImageMap(on_cells(onto, layer.columns), _lattice(layer.columns, image))

    with torch.no_grad(), _layers(model, keep):
        model(image)
    return found


def rollout(model: ImageEncoder, image: Images, target: Classes | None = None) -> ImageMap:
    """What the class is read from, through all layers.

    r ← ½ (r + meanₙ(Aₙ)ᵀ r), from the last layer to the first; all of it sums to one
    """
    layers: list[LayerWeights] = []

    def keep(name: str, layer: LayerWeights) -> None:
        layers.append(layer._replace(weights=layer.weights.mean(dim=1, keepdim=True)))

    with torch.no_grad(), _layers(model, keep):
        grid, _ = model.grid_and_scores(image)
        axis = layers[-1].rows if layers[-1].rows.special else _last(model, grid)
        reader = read_class(axis, len(image)).to(grid)
        values, cells = followed_back(reader, axis, layers)
    return ImageMap(values / 2 ** len(layers), _lattice(cells, image))


def relevance(model: ImageEncoder, image: Images, target: Classes) -> ImageMap:
    """How far attention to each cell raises the score y of a class.

        r ← r + Āᵀ r        Ā = meanₙ relu(∂y/∂Aₙ ⊙ Aₙ), from the last layer to the first

    It starts at the class token. Where the class is read from the mean of all cells x̄ = Σₜ aₜ xₜ,
    that is one more attention, with even weights, and starts with relu(∂y/∂aₜ · aₜ), which is
    relu(∂y/∂xₜ · xₜ); what it reads is followed evenly.
    """
    layers: list[LayerWeights] = []

    def keep(name: str, layer: LayerWeights) -> Tensor:
        layers.append(layer)
        return layer.weights  # what is read by them has their gradient

    with _gradients(image) as pixels, _layers(model, keep):
        grid, scores = model.grid_and_scores(pixels)
        inputs = [grid, *(layer.weights for layer in layers)]
        slopes = torch.autograd.grad(_score(scores, target), inputs, materialize_grads=True)
        cells, *products = (slope * x.detach() for slope, x in zip(slopes, inputs))
        positive = [
            layer._replace(weights=product.relu()) for layer, product in zip(layers, products)
        ]
        axis = layers[-1].rows
        if axis.special:
            reader = read_class(axis, len(image)).to(cells)
            values, at = followed_back(reader, axis, positive)
        else:
            reader = cells.sum(dim=1).relu().flatten(1)
            values, at = followed_evenly(reader, _last(model, grid), positive)
    return ImageMap(values, _lattice(at, image))


def grad_cam(
    model: ImageEncoder, image: Images, target: Classes, stage: int | None = None
) -> ImageMap:
    """Where a grid holds what raises the score y of a class.

        relu(Σ_c α_c A_c)        α_c = the mean over all cells of ∂y/∂A_c

    Of the last stage by default; of the one before where the class is read at a token of its own,
    for which the last grid does not matter.
    """
    chosen = model.checked(stage)
    with _evaluating(model), _gradients(image) as pixels:
        grid, scores = model.grid_and_scores(pixels, chosen)
        slope = _slope(_score(scores, target), grid)
    if slope is None and stage is None and chosen > 1:
        return grad_cam(model, image, target, chosen - 1)
    if slope is None:
        raise ConfigError(
            f"stage={chosen}: the class is read at a token of its own, and no score depends on the "
            f"grid after the last stage; "
            + (f"choose a stage from 1 to {chosen - 1}" if chosen > 1 else "ask for relevance")
        )
    alpha = slope.mean(dim=(2, 3), keepdim=True)
    values = (alpha * grid.detach()).sum(dim=1).relu()
    return ImageMap(values, _lattice(image_axis(_shape(values), model.cells(chosen)), image))


MAKERS: dict[MapKind, Callable[[ImageEncoder, Images, Classes], ImageMap]] = {
    "rollout": rollout,
    "relevance": relevance,
    "grad_cam": grad_cam,
}


@dataclass(frozen=True)
class Pointing:
    """The pointing game over images: how often the highest point of a map lay inside what decided
    the class, or near it; how much of the map did, and how large that was (the hits of chance).
    """

    hits: float
    near: float
    mass: float
    chance: float


def pointing(drawn: ImageMap, inside: Bool[Tensor, "B H W"]) -> Pointing:
    """How well a map points at known pixels; a map of nothing points nowhere."""
    maps = drawn.values.cpu()
    there = maps.flatten(1).any(dim=1)
    hits, near = (
        points_at(maps, region, drawn.lattice) & there for region in (inside, widened(inside))
    )
    shares = hits, near, mass_inside(maps, inside, drawn.lattice), inside.float().mean(dim=(1, 2))
    return Pointing(*(float(share.float().mean()) for share in shares))


@contextmanager
def _layers(
    model: ImageEncoder, keep: Callable[[str, LayerWeights], Tensor | None]
) -> Generator[None, None, None]:
    """Hear of every layer's weights while the block runs the model; answers are read by."""
    if not sites(model):
        kind = type(model).__name__
        raise ConfigError(f"{kind} has no attention to look at; ask for grad_cam")

    def record(name: str, seen: View | Float[Tensor, "B N T S"]) -> Tensor | None:
        return keep(name, LayerWeights(all_weights(seen), *axes[name]))

    with _evaluating(model), watching(model, record) as axes:
        yield


@contextmanager
def _gradients(image: Images) -> Generator[Images, None, None]:
    """Compute with gradients, of frozen models too and whoever forbade it outside."""
    with torch.inference_mode(False), torch.enable_grad():
        yield image.detach().clone().requires_grad_()


@contextmanager
def _evaluating(model: ImageEncoder) -> Generator[None, None, None]:
    """Looking leaves no trace in a BatchNorm, and leaves nothing out."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _score(scores: Float[Tensor, "B classes"], target: Classes) -> Float[Tensor, ""]:
    if len(target) != len(scores) or not bool(((target >= 0) & (target < scores.shape[1])).all()):
        raise ConfigError(
            f"target={target.tolist()} must name a class from 0 to {scores.shape[1] - 1} for each "
            f"of {len(scores)} images"
        )
    return scores.gather(1, target.to(scores.device).clone()[:, None]).sum()


def _slope(score: Float[Tensor, ""], of: Tensor) -> Tensor | None:
    """None where the score does not depend on it at all."""
    return torch.autograd.grad(score, [of], allow_unused=True)[0]


def _last(model: ImageEncoder, grid: Float[Tensor, "B C h w"]) -> Axis:
    return image_axis(_shape(grid), model.cells())


def _lattice(axis: Axis, image: Images) -> Lattice:
    return axis.whole.on(_shape(image))


def _shape(grid: Float[Tensor, "*batch h w"]) -> tuple[int, int]:
    return grid.shape[-2], grid.shape[-1]

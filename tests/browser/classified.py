"""Look documents of classes, made up with numpy over scenes of shapes."""

from typing import Any

import numpy as np

from saccade.app.look.axis import grid_entry
from saccade.app.look.document import VERSION
from saccade.data import shapes
from saccade.data.images.lattice import Lattice
from saccade.data.shapes import Scene, ShapesSettings
from tests.browser.captioned import image_of
from tests.browser.documents import Array, Blobs, Made, axis, site, softmax

NAMES = ("circle", "square", "star", "triangle", "heart", "007")
WHOLE = ("relevance", "rollout", "Grad-CAM")
GRIDS = {"cells of 8×8": 8, "cells of 4×4": 4}


def aimed(scene: Scene, side: int, heads: int, *, seed: int) -> Array:
    """A map for each head, (heads, 1, cells), around the first object."""
    rng = np.random.default_rng(seed)
    middle = (np.arange(side) + 0.5) / side
    box = scene.objects[0].box
    away = ((middle - box.cx) ** 2)[None] + ((middle - box.cy) ** 2)[:, None]
    sharp = np.linspace(40, 8, heads)[:, None]
    scores = rng.normal(0, 0.5, (heads, side * side)) - sharp * away.reshape(-1)
    return softmax(scores)[:, None].astype(np.float16)


def chances(item: int, run: int, *, count: int = 5) -> list[tuple[str, float]]:
    """Sure of some images and less of others; every third is taken for another class."""
    order = np.random.default_rng(100 * run + item).permutation(len(NAMES))
    first = NAMES.index(truth_of(item)) if (item + run) % 3 else (item + 1) % len(NAMES)
    labels = [NAMES[first], *(NAMES[i] for i in order if i != first)][:count]
    best = 0.3 + 0.69 * ((7 * item + 3 * run) % 10) / 10
    rest = (1 - best) / len(NAMES)
    return [(label, round(best if i == 0 else rest, 4)) for i, label in enumerate(labels)]


def truth_of(item: int) -> str:
    return NAMES[item % len(NAMES)]


def one_look(
    made: Made, blobs: Blobs, scene: Scene, *, run: str, number: int, item: int, layers: int,
    heads: int, known: bool, target: str | None,
) -> dict[str, Any]:  # fmt: skip
    fine, coarse = GRIDS
    whole = WHOLE if layers else WHOLE[2:]
    every = [(name, 1, coarse if name == "Grad-CAM" else fine) for name in whole]
    every += [(f"encoder.{i}.self", heads, coarse if i else fine) for i in range(layers)]
    sites: list[dict[str, Any]] = []
    for place, (name, count, columns) in enumerate(every):
        weights = aimed(scene, GRIDS[columns], count, seed=place + 10 * number)
        made.weights[len(made.document["looks"]), name] = weights
        one = site(name, "class", columns, heads=count, derived=name in whole)
        sites.append({**one, "arrays": {"weights": blobs.add(weights, "f16")}})
    axes = {
        name: axis([], kind="grid", grid=vars(grid_entry(Lattice(side, side, 0.5))))
        for name, side in GRIDS.items()
    }
    guesses = chances(item, number)
    shown = target or guesses[0][0]
    told = {
        "said": [guesses[0][0]], "guesses": [list(one) for one in guesses], "target": shown,
        "truth": [truth_of(item)] if known else [], "probability": dict(guesses).get(shown, 0.001),
    }  # fmt: skip
    return {
        "run": run, "label": "best", "text": guesses[0][0], "score": guesses[0][1],
        "log_probability": None, "finished": None, "image": item, "classes": told,
        "axes": {"class": axis([shown]), **axes}, "sites": sites,
    }  # fmt: skip


def classes(
    images: int = 1, runs: tuple[str, ...] = ("vit",), *, layers: int = 2, heads: int = 3,
    known: bool = True, boxes: bool = True, target: str | None = None,
) -> Made:  # fmt: skip
    """A document of classes with all of its maps; the second layer has coarser cells."""
    blobs = Blobs()
    scenes = [shapes.scene("test", index + 3, ShapesSettings()) for index in range(images)]
    entries = [image_of(scene, f"test {i}") for i, scene in enumerate(scenes)]
    document: dict[str, Any] = {
        "format": "saccade-look", "version": VERSION, "kind": "classification",
        "title": f"{' and '.join(runs)} · {images} images", "notes": [], "looks": [],
        "images": [{**one, "boxes": one["boxes"] if boxes else []} for one in entries],
    }  # fmt: skip
    made = Made(document, {})
    for number, run in enumerate(runs):
        for item, scene in enumerate(scenes):
            look = one_look(
                made, blobs, scene, run=run, number=number, item=item, layers=layers, heads=heads,
                known=known, target=target,
            )  # fmt: skip
            document["looks"].append(look)
    document["blobs"] = blobs.packed
    return made

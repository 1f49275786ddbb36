"""Look documents of captions, made up with numpy over scenes of shapes."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from saccade.app.look.axis import grid_entry
from saccade.app.look.document import VERSION
from saccade.data import shapes
from saccade.data.images.lattice import Lattice
from saccade.data.shapes import Scene, ShapesSettings
from tests.browser.documents import Array, Blobs, Made, axis, site, softmax

SIDE = 8
CELLS = SIDE * SIDE


def image_of(scene: Scene, name: str) -> dict[str, Any]:
    """A scene as the document has it: its pixels, and what is where."""
    buffer = io.BytesIO()
    Image.fromarray(shapes.render(scene, 256)).save(buffer, "PNG")
    source = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    boxes = [{"label": f"{t.colour} {t.kind}", "box": list(t.box.xyxy)} for t in scene.objects]
    told = list(shapes.captions(scene))
    return {"name": name, "source": source, "side": 256, "seen": 64, "boxes": boxes} | {
        "references": told
    }


def aimed(scene: Scene, words: list[str], heads: int, *, seed: int) -> Array:
    """Weights (heads, words, cells) that fall on the object a word belongs to, or all over."""
    rng = np.random.default_rng(seed)
    middle = (np.arange(SIDE) + 0.5) / SIDE
    scores = rng.normal(0, 0.5, (heads, len(words), CELLS))
    target = scene.objects[0]
    for row, word in reversed(list(enumerate(words))):
        named = [t for t in scene.objects if word in (t.kind, t.colour)]
        target = next((t for t in named if t.kind == word), named[0] if named else target)
        away = ((middle - target.box.cx) ** 2)[None] + ((middle - target.box.cy) ** 2)[:, None]
        sharp = 60.0 if named else 6.0
        scores[:, row] -= np.linspace(1.4, 0.4, heads)[:, None] * sharp * away.reshape(-1)
    return softmax(scores).astype(np.float16)


def near(heads: int, special: int, *, seed: int) -> Array:
    """Self-attention of patches that look around themselves; (heads, P, P)."""
    rng = np.random.default_rng(seed)
    place = np.stack(np.divmod(np.arange(CELLS), SIDE), axis=-1)
    away = ((place[:, None] - place[None]) ** 2).sum(axis=-1)
    size = special + CELLS
    scores = rng.normal(0, 0.8, (heads, size, size))
    scores[:, special:, special:] -= np.linspace(0.05, 0.7, heads)[:, None, None] * away
    return softmax(scores).astype(np.float16)


def choices_of(words: list[str]) -> list[list[list[Any]]]:
    other = ("circle", "square", "blue", "star", "a")
    return [[[word, 0.8], *([o, 0.05] for o in other if o != word)][:5] for word in words]


def one_look(
    scene: Scene, made: Made, blobs: Blobs, *, run: str, image: int, heads: int, layers: int,
    hard: bool, encoder: bool, first: float, place: int = 0,
) -> dict[str, Any]:  # fmt: skip
    text = shapes.captions(scene)[place]
    pieces = [*(f" {word}" if i else word for i, word in enumerate(text.split())), "<end>"]
    words = [*text.split(), "<end>"]
    grid = vars(grid_entry(Lattice(SIDE, SIDE, first)))
    log_p = [-0.05 * (i % 4) for i in range(len(pieces))]
    axes = {
        "source": axis([], kind="grid", grid=grid),
        "target": axis(pieces, log_p=log_p, choices=choices_of(words)),
        "past": axis(["<start>", *pieces[:-1]]),
        "image": axis([], kind="grid", grid={**grid, "special": 1}),
    }
    sites: list[dict[str, Any]] = []
    at = len(made.document["looks"])
    if encoder:
        names = [f"image_encoder.encoder.{i}.self" for i in range(2)]
        for i, name in enumerate([*names, "rollout"]):
            derived = name == "rollout"
            weights = near(1 if derived else 3, 1, seed=i)
            made.weights[at, name] = weights
            entry = site(name, "image", "image", heads=len(weights), derived=derived)
            sites.append({**entry, "arrays": {"weights": blobs.add(weights, "f16")}})
    for layer in range(layers):
        name = f"decoder.{layer}.cross"
        weights = aimed(scene, words, heads, seed=7 * at + layer)
        if hard:
            weights = (weights == weights.max(axis=-1, keepdims=True)).astype(np.float16)
        made.weights[at, name] = weights
        entry = site(name, "target", "source", heads=heads)
        sites.append({**entry, "arrays": {"weights": blobs.add(weights, "f16")}})
    return {
        "run": run, "label": ("best", "2nd", "3rd")[place], "text": text, "score": -0.1 - place,
        "log_probability": -0.5 - place, "finished": True, "image": image, "hard": hard,
        "axes": axes, "sites": sites, "beam": None,
    }  # fmt: skip


def captions(
    images: int = 1, runs: tuple[str, ...] = ("show-attend-tell",), *, layers: int = 1,
    heads: int = 1, best: int = 1, hard: bool = False, encoder: bool = False, first: float = 0.5,
) -> Made:  # fmt: skip
    """A document of captions with all of its weights."""
    blobs = Blobs()
    scenes = [shapes.scene("test", index + 3, ShapesSettings()) for index in range(images)]
    document: dict[str, Any] = {
        "format": "saccade-look", "version": VERSION, "kind": "caption",
        "title": f"{' and '.join(runs)} · {images} pictures", "notes": [],
        "images": [image_of(scene, f"test {i}") for i, scene in enumerate(scenes)],
        "looks": [],
    }  # fmt: skip
    made = Made(document, {})
    for run in runs:
        for i, scene in enumerate(scenes):
            for place in range(best):
                look = one_look(
                    scene, made, blobs, run=run, image=i, heads=heads, layers=layers, hard=hard,
                    encoder=encoder, first=first, place=place,
                )  # fmt: skip
                document["looks"].append(look)
    document["blobs"] = blobs.packed
    return made

"""How well images are judged against prompts: `python -m tests.data.shapes.seeing.table [scenes]`.

For each split, setting and damage: the share of true captions that are judged as fitting (the
upper bound of any generator's figure), and how often captions of another scene, and captions with
one word changed, are judged as fitting where they are true and where they are false.
"""

import io
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image

from saccade.data.shapes import Scene, ShapesSettings, captions, is_right, render, scene
from saccade.data.shapes.seeing import see
from tests.data.shapes.text.test_writing import neighbours

SETTINGS = {
    "1 to 5": ShapesSettings(),
    "1 to 2": ShapesSettings(most=2),
    "2 to 3": ShapesSettings(fewest=2, most=3),
}
_CHANGED = 4  # of the captions with one word changed, per scene


def clean(image: np.ndarray, _seed: int) -> np.ndarray:
    return image


def blurry(image: np.ndarray, _seed: int, sigma: float = 0.7) -> np.ndarray:
    kernel = np.exp(-(np.arange(-3, 4) ** 2) / (2 * sigma**2))
    kernel /= kernel.sum()
    padded = np.pad(image.astype(float), ((3, 3), (3, 3), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (7, 7), axis=(0, 1))
    return np.einsum("hwcij,i,j->hwc", windows, kernel, kernel).round().astype(np.uint8)


def noisy(image: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 8, image.shape)
    return (image + noise).round().clip(0, 255).astype(np.uint8)


def compressed(image: np.ndarray, _seed: int, subsampling: int = 0) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=60, subsampling=subsampling)
    return np.asarray(Image.open(file))


def halved_chroma(image: np.ndarray, seed: int) -> np.ndarray:
    return compressed(image, seed, subsampling=2)


def blurry_and_noisy(image: np.ndarray, seed: int) -> np.ndarray:
    return noisy(blurry(image, seed), seed)


DAMAGES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "none": clean,
    "blur 0.7": blurry,
    "noise 8": noisy,
    "blur, noise": blurry_and_noisy,
    "JPEG 60 4:4:4": compressed,
    "JPEG 60 4:2:0": halved_chroma,
}


class Row(NamedTuple):
    """Shares of captions judged as fitting; `few` of scenes of up to three objects."""

    own: float
    few: float
    other: float  # captions of another scene
    other_true: float  # those of them that are true
    changed_true: float  # captions with a word changed that are still true: judged as fitting
    changed_false: float  # and that are false
    complete: float  # scenes read without a fault: as many objects, and the right ones
    milliseconds: float


def planar(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def measure(scenes: list[Scene], damage: Callable[[np.ndarray, int], np.ndarray]) -> Row:
    """Every caption of every scene, and as many false ones."""
    images = [planar(damage(render(one), index)) for index, one in enumerate(scenes)]
    see(images[0])
    start = time.process_time()
    seen = [see(image) for image in images]
    took = time.process_time() - start
    own, few, other, other_true, complete = (list[bool]() for _ in range(5))
    changed: dict[bool, list[bool]] = {True: [], False: []}
    for index, (one, read) in enumerate(zip(scenes, seen, strict=True)):
        judged = [is_right(caption, read) for caption in captions(one)]
        own += judged
        few += judged if len(one.objects) <= 3 else []
        strange = captions(scenes[index - 1])
        other += [is_right(caption, read) for caption in strange]
        other_true += [is_right(caption, one) for caption in strange]
        complete.append(names(one) == names(read))
        rng = np.random.default_rng(index)
        for caption in rng.permutation(neighbours(captions(one)[0]))[:_CHANGED]:
            changed[is_right(caption, one)].append(is_right(caption, read))
    return Row(
        own=share(own),
        few=share(few),
        other=share(other),
        other_true=share(other_true),
        changed_true=share(changed[True]),
        changed_false=share(changed[False]),
        complete=share(complete),
        milliseconds=1000 * took / len(images),
    )


def share(judged: list[bool]) -> float:
    return float(np.mean(judged)) if judged else float("nan")


def names(one: Scene) -> list[tuple[str, str, str]]:
    return sorted((thing.colour, thing.kind, thing.size) for thing in one.objects)


def main(count: int, damaged: int) -> None:
    """Print the table: whole images for `count` scenes, damaged ones for `damaged`."""
    print("split objects damage | " + " ".join(Row._fields))
    for split in ("test", "compositional"):
        for label, settings in SETTINGS.items():
            for name, damage in DAMAGES.items():
                some = count if name == "none" else damaged
                row = measure([scene(split, index, settings) for index in range(some)], damage)
                shares = " ".join(f"{share:.4f}" for share in row[:-1])
                print(f"{split} | {label} | {name} | {some} | {shares} {row[-1]:.1f}", flush=True)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given or [1000, 300]))

"""What others call the parts of a MobileNetV2; torchvision's names are ours.

Ours are numbered throughout; timm numbers the groups and the blocks of each. A block widens, looks
around and narrows; the first of all does not widen.
"""

from collections.abc import Callable

from saccade.models.names.table import Names
from saccade.models.vision.mobilenet import GROUPS

Layers = list[tuple[str, str]]  # convolution and norm of each
PLACES = [(group, block) for group, one in enumerate(GROUPS) for block in range(one.blocks)]
TOP = 1 + len(PLACES)


def _names(stem: Layers, block: Callable[[int, int, int], Layers], top: Layers, head: str) -> Names:
    """`block` gives the layers of one by its number, its group and its place there."""
    found = {"classifier.1": head}
    for at, (conv, norm) in (("features.0", *stem), (f"features.{TOP}", *top)):
        found |= {f"{at}.0": conv, f"{at}.1": norm}
    for number, place in enumerate(PLACES):
        at, layers = f"features.{number + 1}.conv", block(number, *place)
        for layer, (conv, norm) in enumerate(layers[:-1]):
            found |= {f"{at}.{layer}.0": conv, f"{at}.{layer}.1": norm}
        last = len(layers) - 1  # nothing bends what it gives
        found |= {f"{at}.{last}": layers[last][0], f"{at}.{last + 1}": layers[last][1]}
    return found


def _timm(number: int, group: int, block: int) -> Layers:
    parts = ("conv_dw", "conv_pw") if number == 0 else ("conv_pw", "conv_dw", "conv_pwl")
    at = f"blocks.{group}.{block}"
    return [(f"{at}.{conv}", f"{at}.bn{place}") for place, conv in enumerate(parts, start=1)]


def _both(*layers: str) -> Layers:
    return [(f"{layer}.convolution", f"{layer}.normalization") for layer in layers]


def _hugging_face(number: int, group: int, block: int) -> Layers:
    stem, at = "mobilenet_v2.conv_stem", f"mobilenet_v2.layer.{number - 1}"
    if number == 0:
        return _both(f"{stem}.conv_3x3", f"{stem}.reduce_1x1")
    return _both(f"{at}.expand_1x1", f"{at}.conv_3x3", f"{at}.reduce_1x1")


def _torchvision(number: int, group: int, block: int) -> Layers:
    at, before = f"features.{number + 1}.conv", 1 if number == 0 else 2
    bent = [(f"{at}.{place}.0", f"{at}.{place}.1") for place in range(before)]
    return [*bent, (f"{at}.{before}", f"{at}.{before + 1}")]


LIBRARIES: dict[str, Names] = {
    "timm": _names([("conv_stem", "bn1")], _timm, [("conv_head", "bn2")], "classifier"),
    "torchvision": _names(
        [("features.0.0", "features.0.1")],
        _torchvision,
        [(f"features.{TOP}.0", f"features.{TOP}.1")],
        "classifier.1",
    ),
    "huggingface": _names(
        _both("mobilenet_v2.conv_stem.first_conv"),
        _hugging_face,
        _both("mobilenet_v2.conv_1x1"),
        "classifier",
    ),
}

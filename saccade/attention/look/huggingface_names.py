"""What the attention of a Hugging Face model is called, and what lies along its sides.

A name is the path of the module with the noise left out: `stack.index.kind`, as in
`encoder.3.self`, `decoder.5.cross`, `layers.3.self`, `vision.2.self`, `text.4.self`.

- `kind` is `cross` where the path speaks of crossing or of an encoder's memory, else `self`.
- `index` is the first number in the path.
- `stack` is the first of `encoder`, `decoder`, `vision`, `text` and `audio` that the path speaks
  of (the last three stand for the many names of such towers); else the last word that is none of
  those every model has (`model`, `layer`, `block`, its own prefix); else `layers`.

Where two modules would share a name, all names of the model grow alike until none do: first the
whole stack, then every number (Swin's `encoder.0.1.self`), at last the bare path.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from torch import nn

from saccade.attention.axes import SOURCE, TARGET, TEXT, Axis

ATTENDING = re.compile(r"attn|attention|MLA$", re.IGNORECASE)
CROSSING = re.compile(r"cross|enc_?dec|encoder_(decoder_)?att|encoder_hidden", re.IGNORECASE)
NOISE = re.compile(
    r"(model|module|base_model|transformer|_orig_mod|h"
    r"|\w*_?(layers?|blocks?|layer_groups|modules?_list)|stages?|self|att|mha)$"
)
TOWERS = {
    "vision": re.compile(r"(vision|visual|image)(_\w+)?$"),
    "text": re.compile(r"(text|language|llm)(_\w+)?$"),
    "audio": re.compile(r"(audio|speech)(_\w+)?$"),
}
SIDES = ("encoder", "decoder", *TOWERS)
SPECIAL = ("cls_token", "class_embedding", "class_token", "distillation_token", "register_tokens")


def pretrained(module: nn.Module) -> bool:
    """Whether a module is a model of transformers, told without importing it."""
    return any(
        base.__module__.startswith("transformers.") and base.__name__ == "PreTrainedModel"
        for base in type(module).__mro__
    )


def attending(model: nn.Module) -> dict[str, nn.Module]:
    """Every module that calls itself attention, by its path."""
    return {
        path: module
        for path, module in model.named_modules()
        if ATTENDING.search(type(module).__name__)
    }


def innermost(paths: list[str]) -> list[str]:
    """The paths that hold no other: `layer.0.attention.self`, not `layer.0.attention`."""
    dotted = [f"{path}." if path else "" for path in paths]
    return [
        path
        for path, start in zip(paths, dotted)
        if not any(other.startswith(start) and other != path for other in paths)
    ]


def names(model: nn.Module) -> dict[str, str]:
    """Path to name, for every module that calls itself attention; no two are alike."""
    paths = list(attending(model))
    inner = innermost(paths)
    root = _root(model)
    own = getattr(model.get_submodule(root), "base_model_prefix", "")
    inside = {path: path.removeprefix(f"{root}.") for path in paths}
    chosen = next(
        grown for grown in LEVELS if _distinct([grown(inside[path], own) for path in inner])
    )
    named = {path: chosen(inside[path], own) for path in inner}
    taken = set(named.values())
    for path in paths:  # one that holds another seldom attends itself, and must not take its name
        if path not in named:
            name = chosen(inside[path], own)
            named[path] = path if name in taken else name
            taken.add(named[path])
    return named


def _root(model: nn.Module) -> str:
    """Where the model of transformers is inside something else; nowhere if there are several."""
    found = [path for path, module in model.named_modules() if pretrained(module)]
    outer = [path for path in found if path.startswith(found[0])] if found else []
    return found[0] if found and len(outer) == len(found) else ""


def _short(path: str, own: str) -> str:
    stack, numbers, kind = _parts(path, own)
    side = next((word for word in stack if word in SIDES), None)
    stack = [side] if side else stack[-1:]
    return ".".join([*(stack or ["layers"]), *numbers[:1], kind])


def _stacked(path: str, own: str) -> str:
    stack, numbers, kind = _parts(path, own)
    return ".".join([*(stack or ["layers"]), *numbers[:1], kind])


def _numbered(path: str, own: str) -> str:
    stack, numbers, kind = _parts(path, own)
    return ".".join([*(stack or ["layers"]), *numbers, kind])


def _bare(path: str, own: str) -> str:
    return path


LEVELS: list[Callable[[str, str], str]] = [_short, _stacked, _numbered, _bare]


def _parts(path: str, own: str) -> tuple[list[str], list[str], str]:
    """The stack, the numbers and the kind that a path speaks of."""
    words = path.split(".")
    numbers = [word for word in words if word.isdigit()]
    said = [word for word in words if not (word.isdigit() or word == own or NOISE.match(word))]
    stack = [_tower(word) for word in said if not ATTENDING.search(word)]
    kind = "cross" if any(CROSSING.search(word) for word in words) else "self"
    return [word for word, _ in groupby(stack)], numbers, kind


def _tower(word: str) -> str:
    return next((name for name, known in TOWERS.items() if known.match(word)), word)


def _distinct(found: list[str]) -> bool:
    return max(Counter(found).values(), default=1) == 1


def axes(model: nn.Module, path: str, name: str) -> tuple[Axis, Axis]:
    """What the rows and the columns of a site are, as far as the configs tell."""
    whole = getattr(model, "config", None)
    here = _side(model, path)
    if not getattr(whole, "is_encoder_decoder", False):
        return here, Axis("memory") if name.endswith("cross") else here
    if "decoder" not in name:
        encoder = here if here.kind != "tokens" else SOURCE
        return encoder, encoder
    if not name.endswith("cross"):
        return TARGET, TARGET
    encoder = next((p for p in attending(model) if "encoder" in p and "decoder" not in p), "")
    seen = _side(model, encoder)
    return TARGET, seen if seen.kind == "grid" else SOURCE


def fitted(axis: Axis, size: int) -> Axis:
    """The same axis, or plain tokens where a picture of another size has come."""
    cells = axis.height * axis.width + axis.special
    return axis if axis.kind == "tokens" or cells == size else Axis(axis.name)


def _side(model: nn.Module, path: str) -> Axis:
    """A grid where the nearest config speaks of patches, a window where it speaks of windows."""
    config, owner = _owner(model, path)
    height, width = _pair(getattr(config, "image_size", None))
    down, across = _pair(getattr(config, "patch_size", None))
    window, _ = _pair(getattr(config, "window_size", None))
    if not (height and width and down and across):
        return TEXT
    picture = Axis("image", "grid", height // down, width // across, _specials(owner))
    if not window:
        return picture
    return replace(picture, kind="window", height=window, width=window, special=0)


def _owner(model: nn.Module, path: str) -> tuple[Any, nn.Module]:
    """The config nearest to a module, and the outermost module that has it."""
    words = path.split(".")
    above = [model.get_submodule(".".join(words[:depth])) for depth in range(len(words) + 1)]
    config = next((m.config for m in reversed(above) if hasattr(m, "config")), None)
    return config, next((m for m in above if getattr(m, "config", None) is config), model)


def _pair(size: object) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    if isinstance(size, list | tuple) and len(size) == 2:  # pyright: ignore[reportUnknownArgumentType]
        return int(size[0]), int(size[1])
    return 0, 0


def _specials(owner: nn.Module) -> int:
    """How many learnt tokens stand before the patches: each is a row, or one is a vector."""
    found = (p for path, p in owner.named_parameters() if path.split(".")[-1] in SPECIAL)
    return sum(p.shape[-2] if p.dim() > 1 else 1 for p in found)

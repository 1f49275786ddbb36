"""What the attention of a module is called, and what lies along its sides.

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
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any

from torch import nn

from saccade.attention.axes import SOURCE, TARGET, TEXT, Axis
from saccade.attention.site import Site

ATTENDING = re.compile(r"attn|attention|MLA$", re.IGNORECASE)
CROSSING = re.compile(
    r"cross|enc_?dec|encoder_(decoder_)?att|encoder_hidden|^multihead_attn$", re.IGNORECASE
)
NOISE = re.compile(
    r"(model|module|base_model|transformer|_orig_mod|h"
    r"|\w*_?(layers?|blocks?|layer_groups|modules?_list)|stages?|self|att|mha)$"
)
TOWERS = {
    "vision": re.compile(r"(vision|visual|image)(_\w+)?$"),
    "text": re.compile(r"(text|language|llm)(_\w+)?$"),
    "audio": re.compile(r"(audio|speech)(_\w+)?$"),
}
BARE = 3  # the level at which a name is its path
QUERY = Axis("query")
SIDES = ("encoder", "decoder", *TOWERS)
SPECIAL = (
    "cls_token", "class_embedding", "class_token", "distillation_token", "dist_token",
    "register_tokens", "reg_token",
)  # fmt: skip


def pretrained(module: nn.Module) -> bool:
    """Whether a module is a model of transformers, told without importing it."""
    return _pretrained(type(module))


@lru_cache
def _pretrained(kind: type[nn.Module]) -> bool:
    return any(
        base.__module__.startswith("transformers.") and base.__name__ == "PreTrainedModel"
        for base in kind.__mro__
    )


def calls_itself_attention(module: nn.Module) -> bool:
    """Whether its class is named so; our own sites show themselves."""
    return _speaks_of_attention(type(module).__name__) and not isinstance(module, Site)


@lru_cache  # words come again with every layer and every block
def _speaks_of_attention(word: str) -> bool:
    return bool(ATTENDING.search(word))


def attending(model: nn.Module) -> list[str]:
    """The paths of all modules that call themselves attention."""
    return [path for path, module in model.named_modules() if calls_itself_attention(module)]


def innermost(paths: list[str]) -> list[str]:
    """The paths that hold no other: `layer.0.attention.self`, not `layer.0.attention`."""
    dotted = [f"{path}." if path else "" for path in paths]
    return [
        path
        for path, start in zip(paths, dotted)
        if not any(other.startswith(start) and other != path for other in paths)
    ]


def names(model: nn.Module) -> dict[str, str]:
    """Path to name, for every module; no two are alike.

    Those that call themselves attention come first: the others must not take their names.
    """
    modules = dict(model.named_modules())
    paths = list(modules)
    inner = innermost([path for path, module in modules.items() if calls_itself_attention(module)])
    root = _root(modules)
    own = getattr(modules[root], "base_model_prefix", "")
    inside = {path: path.removeprefix(f"{root}.") for path in paths}
    levels = ({p: _name(inside[p], own, level) for p in paths} for level in range(BARE + 1))
    wanted = next(found for found in levels if len({found[p] for p in inner}) == len(inner))
    named = {path: wanted[path] for path in inner}
    taken = set(named.values())
    for path in paths:
        if path not in named:
            named[path] = (path or "model") if wanted[path] in taken else wanted[path]
            taken.add(named[path])
    return named


def _root(modules: dict[str, nn.Module]) -> str:
    """Where the model of transformers is inside something else; nowhere if there are several."""
    found = [path for path, module in modules.items() if pretrained(module)]
    outer = [path for path in found if path.startswith(found[0])] if found else []
    return found[0] if found and len(outer) == len(found) else ""


def _name(path: str, own: str, level: int) -> str:
    """More of the path at each level: the whole stack from 1 on, every number at 2."""
    if level == BARE:
        return path
    stack, numbers, kind = _parts(path, own)
    if level == 0:
        stack = [word for word in stack if word in SIDES][:1] or stack[-1:]
    return ".".join([*(stack or ["layers"]), *(numbers[:1] if level < BARE - 1 else numbers), kind])


def _parts(path: str, own: str) -> tuple[list[str], list[str], str]:
    """The stack, the numbers and the kind that a path speaks of."""
    words = path.split(".")
    numbers = [word for word in words if word.isdigit()]
    said = (_tower(word) for word in words if word != own)
    kind = "cross" if any(_crosses(word) for word in words) else "self"
    return [word for word, _ in groupby(word for word in said if word)], numbers, kind


@lru_cache
def _tower(word: str) -> str:
    """What a word adds to the name of a stack: often nothing."""
    if word.isdigit() or NOISE.match(word) or _speaks_of_attention(word):
        return ""
    return next((name for name, known in TOWERS.items() if known.match(word)), word)


@lru_cache
def _crosses(word: str) -> bool:
    return bool(CROSSING.search(word))


def axes(model: nn.Module, path: str, name: str) -> tuple[Axis, Axis]:
    """What the rows and the columns of a site are, as far as the configs tell."""
    here = _side(model, path)
    translates = getattr(getattr(model, "config", None), "is_encoder_decoder", None)
    if translates is None:
        translates = any(isinstance(module, nn.Transformer) for module in model.modules())
    if not translates:
        return here, Axis("memory") if name.endswith("cross") else here
    if "decoder" not in name:
        encoder = here if here.kind != "tokens" else SOURCE
        return encoder, encoder
    if not name.endswith("cross"):
        return TARGET, TARGET
    encoder = next((p for p in attending(model) if "encoder" in p and "decoder" not in p), "")
    seen = _side(model, encoder)
    return TARGET, seen if seen.kind == "grid" else SOURCE


def fitted(sides: tuple[Axis, Axis], queries: int, keys: int) -> tuple[Axis, Axis]:
    """The same axes, or plain tokens where an image of another size has come.

    What looks at a grid and is none of its size is a learnt query, as a pooling head's.
    """
    rows, columns = (
        axis if axis.kind == "tokens" or _positions(axis) == size else Axis(axis.name)
        for axis, size in zip(sides, (queries, keys))
    )
    return (QUERY if sides[0].kind != rows.kind != columns.kind else rows), columns


def _positions(axis: Axis) -> int:
    return axis.height * axis.width + axis.special


def _side(model: nn.Module, path: str) -> Axis:
    """A grid where the nearest config speaks of patches, a window where it speaks of windows."""
    config, owner = _owner(model, path)
    height, width = _pair(getattr(config, "image_size", None))
    down, across = _pair(getattr(config, "patch_size", None))
    window, _ = _pair(getattr(config, "window_size", None))
    rows, columns = _pair(getattr(getattr(config, "patch_embed", None), "grid_size", None))
    if height and width and down and across:
        rows, columns = height // down, width // across
    if not (rows and columns):
        return TEXT
    image = Axis("image", "grid", rows, columns, _specials(owner))
    if not window:
        return image
    return replace(image, kind="window", height=window, width=window, special=0)


def _owner(model: nn.Module, path: str) -> tuple[Any, nn.Module]:
    """The config nearest to a module, and the outermost module that has it.

    Models of torchvision and timm are their own: they have `image_size`, or `patch_embed`.
    """
    words = path.split(".")
    above = [model.get_submodule(".".join(words[:depth])) for depth in range(len(words) + 1)]
    own = (m for m in above if hasattr(m, "image_size") or hasattr(m, "patch_embed"))
    plain = next(own, None)
    config = next((m.config for m in reversed(above) if hasattr(m, "config")), plain)
    return config, next((m for m in above if getattr(m, "config", m) is config), model)


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

"""What others call our tensors: one table for each library, read both ways.

A table is written from our name to theirs:

    "parts.{i}.blocks.{j}.mlp.widen": "layers.{i}.blocks.{j}.mlp.fc1"

{i} and {j} are numbers, and theirs may count otherwise: {i+1}, {i-1}, {2i}, {2i+1}, or {n}, the
blocks of all stages in a row. A name without its last part (weight, bias, …) stands for all of
them. Behind theirs may stand which part of a tensor ours is, [0/3] for the first of three stacked
on one another, and the shape that theirs has where ours is plainer.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

Names = Mapping[str, str]
THEIRS = re.compile(r"(?P<name>.*?)(?:\[(?P<part>\d)/(?P<parts>\d)\])?(?: as (?P<shape>\w+))?")


class TheirTensor(NamedTuple):
    """Where one of our tensors is found among theirs."""

    name: str
    part: int = 0
    parts: int = 1
    shape: str = ""


def located(names: Names, ours: Iterable[str]) -> dict[str, TheirTensor]:
    """For each of our tensors that the table knows, where it is among theirs."""
    ours = list(ours)
    before = _blocks_before(ours)
    found: dict[str, TheirTensor] = {}
    for name in ours:
        for pattern, template in _compiled(tuple(names.items())):
            match = pattern.fullmatch(name)
            if match is not None:
                found[name] = _filled(template, match, before)
                break
    return found


def to_ours(
    names: Names, theirs: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Their tensors by our names; what only differs in axes of length one takes our shape."""
    found: dict[str, Tensor] = {}
    for name, at in located(names, wanted).items():
        tensor = theirs.get(at.name)
        if tensor is None:
            continue
        whole = UNSHAPES[at.shape](tensor) if at.shape else tensor
        if at.parts > 1 and (not whole.dim() or len(whole) % at.parts):
            continue
        found[name] = whole.chunk(at.parts)[at.part] if at.parts > 1 else whole
    return found


def to_theirs(names: Names, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors by their names and in their shapes."""
    parts: defaultdict[tuple[str, str], dict[int, Tensor]] = defaultdict(dict)
    for name, at in located(names, ours).items():
        parts[at.name, at.shape][at.part] = ours[name].detach()
    found: dict[str, Tensor] = {}
    for (name, shape), those in parts.items():
        whole = torch.cat([those[part] for part in sorted(those)]) if len(those) > 1 else those[0]
        found[name] = SHAPES[shape](whole) if shape else whole
    return found


def _filled(template: str, match: re.Match[str], before: Mapping[int, int]) -> TheirTensor:
    numbers = {key: int(value) for key, value in match.groupdict().items() if key in "ij"}
    i = numbers.get("i", 0)
    counted: dict[str, int] = {
        **numbers,
        **{"i+1": i + 1, "i-1": i - 1, "2i": 2 * i, "2i+1": 2 * i + 1},
        "n": before.get(i, 0) + numbers.get("j", 0),
    }
    theirs = THEIRS.fullmatch(template)
    assert theirs is not None
    leaf = match["leaf"] or ""
    name = theirs["name"].format_map(counted)
    name = name.replace("*", leaf[1:]) if "*" in name else name + leaf
    part, parts = int(theirs["part"] or 0), int(theirs["parts"] or 1)
    return TheirTensor(name, part, parts, _shape(theirs["shape"] or "", leaf))


def _shape(shape: str, leaf: str) -> str:
    return "" if shape in OF_MATRICES and leaf == ".bias" else shape


@lru_cache
def _compiled(names: tuple[tuple[str, str], ...]) -> list[tuple[re.Pattern[str], str]]:
    """The particular before the general: names of fewer unknown numbers first."""
    rules: list[tuple[re.Pattern[str], str]] = []
    for ours, theirs in sorted(names, key=lambda pair: pair[0].count("{")):
        pattern = re.escape(ours).replace(r"\{i\}", r"(?P<i>\d+)").replace(r"\{j\}", r"(?P<j>\d+)")
        rules.append((re.compile(rf"{pattern}(?P<leaf>\.[a-z_]+)?"), theirs))
    return rules


def _blocks_before(ours: Iterable[str]) -> dict[int, int]:
    """How many blocks there are in all stages before each."""
    staged = re.compile(r"parts\.(\d+)\.blocks\.(\d+)\.")
    depths: dict[int, int] = {}
    for name in ours:
        if match := staged.match(name):
            stage, block = int(match[1]), int(match[2])
            depths[stage] = max(depths.get(stage, 0), block + 1)
    return {stage: sum(depths.get(one, 0) for one in range(stage)) for stage in depths}


def _conv(matrix: Tensor) -> Tensor:
    side = round((matrix.shape[1] / 3) ** 0.5)
    return matrix.unflatten(1, (3, side, side))


def _halved(x: Tensor, axis: int) -> Tensor:
    """All that stands in even places, then all that stands in odd ones."""
    if not x.dim():
        return x
    places = torch.arange(x.shape[axis], device=x.device)
    return x.index_select(axis, torch.cat([places[0::2], places[1::2]]))


def _taking_turns(x: Tensor, axis: int) -> Tensor:
    """The first of each half, then the second of each, and so on: the inverse of `_halved`."""
    if not x.dim():
        return x
    places = torch.arange(x.shape[axis], device=x.device)
    return x.index_select(axis, _halved(places, 0).argsort())


# From our shape to theirs, and back.
SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "conv": _conv,
    "token": lambda x: x[None, None],
    "row": lambda x: x[None],
    "rows": lambda x: x[None],
    "column": lambda x: x[:, None, None],
    "transposed": lambda x: x.mT,
    "reads_halves": lambda x: _halved(x, -1),
    "writes_halves": lambda x: _halved(x, 0),
}
UNSHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "conv": lambda x: x.flatten(1) if x.dim() > 1 else x,
    "token": Tensor.flatten,
    "row": Tensor.flatten,
    "rows": lambda x: x[0] if x.dim() == 3 else x,
    "column": Tensor.flatten,
    "transposed": lambda x: x.mT if x.dim() == 2 else x,
    "reads_halves": lambda x: _taking_turns(x, -1),
    "writes_halves": lambda x: _taking_turns(x, 0),
}
OF_MATRICES = ("conv", "transposed", "reads_halves")  # biases are the same there

"""One matrix of what a decision came from: for a terminal, a picture, or a table of numbers."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.matrix import Shown, Side, between, layer_heads
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.app.look.understanding.document import RELEVANCE, ROLLOUT, understanding_document
from saccade.app.look.understanding.subject import Understood, understand
from saccade.errors import ConfigError
from saccade.tasks.understanding.classifier import TextClassifier, Texts
from saccade.tasks.understanding.maps import DecisionMaps, row_at


class _Rows(NamedTuple):
    """What rows are called, their weights over all tokens, and in words what they are."""

    names: list[str]
    weights: Float[Tensor, "R T"]
    title: str


def understanding_look(
    model: NamedModel[TextClassifier],
    texts: Texts,
    how: LookSettings,
    select: Selection,
    *,
    flow: bool = False,
) -> MatrixLook:
    """A row for each kind of map and each layer; of one layer for each head. Of tags a row for
    each word. With `flow`, for each word of the second text where it looks in the first.
    """
    tool = model.tool
    one = understand(tool, texts, how.of)
    if flow and len(one.axis.texts) != 2:
        raise ConfigError("--flow is between two texts, and this run reads one; leave it out")
    if select.layer is None and select.head is not None:
        raise ConfigError(f"head={select.head} is of a layer; name that too, as --layer 0")
    units: Shown = "pieces" if select.units == "pieces" else "words"
    maps, side = one.maps(tool), Side.of(one.axis)
    if flow:
        rows, columns, weights, title = _between_texts(one, maps, side, select, units)
    else:
        of_words = tool.labels.kind == "tags"
        names, every, title = (_of_words if of_words else _of_decision)(one, maps, select)
        columns = side.pieces if units == "pieces" else side.texts
        weights = every if units == "pieces" else every.double() @ side.membership().T
        rows = names
    select.check_rows(len(rows))
    return MatrixLook(
        rows,
        columns,
        weights,
        title=f"{model.name}: {title}",
        caption=one.caption,
        document=lambda: understanding_document([model], texts, how),
    )


def _of_decision(one: Understood, maps: DecisionMaps, select: Selection) -> _Rows:
    place, title = one.decisions[0].token, f"what made it {one.names[0]}"
    if select.layer is None:
        named = {RELEVANCE: maps.relevance[0], ROLLOUT: maps.rollout[0]}
        named |= {name: row_at(seen.mean(0), place) for name, seen in maps.attention.items()}
    else:
        name, heads = layer_heads(maps.attention, select)
        chosen = range(len(heads)) if select.head is None else [select.head]
        named = {f"{name}, head {head}": row_at(heads[head], place) for head in chosen}
    return _Rows(list(named), torch.stack(list(named.values())), title)


def _of_words(one: Understood, maps: DecisionMaps, select: Selection) -> _Rows:
    names = [f"{word} {tag}" for word, tag in zip(one.names, one.tags)]
    if select.layer is None:
        return _Rows(names, maps.relevance, "what made the tag of each word")
    matrix, title = _attention(maps, select)
    rows = [row_at(matrix, made.token) for made in one.decisions]
    return _Rows(names, torch.stack(rows), title)


def _between_texts(
    one: Understood, maps: DecisionMaps, side: Side, select: Selection, units: Shown
) -> tuple[list[str], list[str], Float[Tensor, "rows columns"], str]:
    """Where the words of the second text look among those of the first."""
    matrix, which = _attention(maps, select)
    (a, b), (c, d) = one.axis.texts
    found = between(matrix[c:d, a:b], _part(side, c, d), _part(side, a, b), units)
    return *found, f"where the second text looks in the first, {which}"


def _part(side: Side, start: int, end: int) -> Side:
    """Of a side what is one text."""
    words = [(a - start, b - start) for a, b in side.words if start <= a and b <= end]
    return Side(side.pieces[start:end], words)


def _attention(maps: DecisionMaps, select: Selection) -> tuple[Float[Tensor, "T T"], str]:
    """The mean over layers and heads, or the layer and head that were chosen."""
    if select.layer is None:
        every = torch.stack([seen.mean(dim=0) for seen in maps.attention.values()])
        return every.mean(dim=0), "mean over layers and heads"
    name, heads = layer_heads(maps.attention, select)
    if select.head is None:
        return heads.mean(dim=0), f"{name}, mean over heads"
    return heads[select.head], f"{name}, head {select.head}"

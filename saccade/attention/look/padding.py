"""Padding in a batch is nobody: it neither looks nor is looked at.

Models let padding look like any token, and throw away what it read. Here it counts nowhere: the
statistics of a row in a padded batch are those of the row alone. What is padding is told by the
masks: a key that no query of its row may see. In self-attention over as many queries as keys the
query at its place is padding too; other sites of the same axis are told so (the decoder's own mask
also says who looks across). Where only weights are seen, a key is hidden if no head of any query
gives it any weight. What no mask says, as of a target that is merely causal, is not known.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention import masks
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import UNSEEN, View

Seen = View | Float[Tensor, "_ _ _ _"]  # what weights follow from, or they themselves
BLANK = {"lse": -torch.inf, "where": -1, "top_places": -1}  # of a query that may look nowhere


def visible_keys(seen: Seen, *, itself: bool) -> Bool[Tensor, "B S"] | None:
    """The keys that some query of their row may see; None where that is all.

    Weights alone tell it only of a sequence that looks at `itself`: elsewhere a key may be there
    that nobody wants.
    """
    if isinstance(seen, Tensor):
        return _with_weight(seen) if itself else None
    if seen.q.is_meta:  # sizes without numbers
        return None
    batch, _, _, keys = seen.shape
    found: Bool[Tensor, "B S"] | None = None
    for side in (seen.mask, None if seen.bias is None else seen.bias > UNSEEN):
        if side is not None:
            found = masks.both(found, side.flatten(1, 2).any(dim=1).expand(batch, keys))
    return None if found is None or bool(found.all()) else found


def _with_weight(weights: Float[Tensor, "B N T S"]) -> Bool[Tensor, "B S"] | None:
    """A query that may look nowhere looks everywhere alike, after softmax, and tells nothing."""
    if not weights.numel():
        return None
    tells = (weights.amax(dim=-1) != weights.amin(dim=-1)).any(dim=1)  # (B, T)
    found = ((weights > 0) & tells[:, None, :, None]).flatten(1, 2).any(dim=1)
    found |= ~tells.any(dim=1, keepdim=True)
    return None if bool(found.all()) else found


class AxisTokens:
    """Which positions of each axis are tokens, as far as sites have told."""

    def __init__(self) -> None:
        self._known: dict[str, Bool[Tensor, "B T"] | None] = {}

    def of(
        self, seen: Seen, rows: str, columns: str
    ) -> tuple[Bool[Tensor, "B T"] | None, Bool[Tensor, "B S"] | None]:
        """The queries and the keys of a look that are tokens; None where all are."""
        batch, _, queries, count = seen.shape
        itself = rows == columns and queries == count
        keys = visible_keys(seen, itself=itself)
        if itself:
            self._known[rows] = keys
            return keys, keys
        if keys is None and isinstance(seen, Tensor):
            keys = self._fitting(columns, batch, count)
        return self._fitting(rows, batch, queries), keys

    def _fitting(self, axis: str, batch: int, size: int) -> Bool[Tensor, "B T"] | None:
        known = self._known.get(axis)
        return known if known is not None and known.shape == (batch, size) else None


def observe_tokens(
    seen: Seen,
    keep: Keep,
    observe: Callable[[Seen, Keep], Glance],
    queries: Bool[Tensor, "B T"] | None,
    keys: Bool[Tensor, "B S"] | None,
) -> Glance:
    """A look at the tokens of each row alone; rows that begin and end alike are taken together.

    Maps of a padded row begin at its first token.
    """
    batch, heads, many, count = seen.shape
    device = seen.q.device if isinstance(seen, View) else seen.device
    sides = [_spans(one, batch, size) for one, size in ((queries, many), (keys, count))]
    if isinstance(seen, View) and many != count and (seen.causal or seen.reach is not None):
        sides[1][:, 1] = count  # the last query must stay beside the last key
    spans = torch.stack(sides, dim=1)  # (B, 2, 2)
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, ends in enumerate(spans.flatten(1).tolist()):
        alike.setdefault(tuple(ends), []).append(row)
    keep = replace(keep, within=(many, count))
    made: Glance | None = None
    for (t0, t1, s0, s1), rows in alike.items():
        if t0 < t1 and s0 < s1:
            part = _part(
                seen, slice(None) if len(alike) == 1 else rows, slice(t0, t1), slice(s0, s1)
            )
            part = _without_holes(part, queries, rows, slice(t0, t1))
            glance = observe(part, keep)
            made = made or _blank(glance, keep, (batch, heads, many, count))
            _put(made, glance, rows, slice(t0, t1), slice(s0, s1))
    if made is None:  # nobody may see anything
        return observe(seen, keep)
    return replace(made, spans=spans.to(device))


def _spans(tokens: Bool[Tensor, "B T"] | None, batch: int, size: int) -> Int[Tensor, "B 2"]:
    """From the first token of each row to after the last."""
    if tokens is None:
        return torch.tensor([[0, size]]).expand(batch, 2).clone()
    places = torch.arange(size, device=tokens.device)
    first = places.masked_fill(~tokens, size).amin(dim=1)
    last = places.masked_fill(~tokens, -1).amax(dim=1) + 1
    return torch.stack([first, last], dim=1).cpu()


def _part(seen: Seen, rows: list[int] | slice, queries: slice, keys: slice) -> Seen:
    if isinstance(seen, View):
        return seen.part(rows, queries, keys)
    return seen[rows][:, :, queries, keys]


def _without_holes(
    seen: Seen, queries: Bool[Tensor, "B T"] | None, rows: list[int], between: slice
) -> Seen:
    """The same; what is no token in the midst of tokens looks nowhere."""
    tokens = None if queries is None else queries[rows][:, between]
    if tokens is None or bool(tokens.all()):
        return seen
    mask = tokens[:, None, :, None]
    if isinstance(seen, Tensor):
        return seen * mask
    return replace(seen, mask=masks.both(seen.mask, mask))


def _blank(like: Glance, keep: Keep, shape: tuple[int, int, int, int]) -> Glance:
    """A look at nothing, with room for what is kept of a whole batch."""
    batch, heads, queries, keys = shape
    high, wide = like.cell
    maps = -(-queries // high), -(-keys // wide)
    sizes = {
        "received": (keys,), "mean_map": maps, "max_map": maps, "weights": (queries, keys),
        "top_weights": (queries, min(keep.top, keys)), "top_places": (queries, min(keep.top, keys)),
    }  # fmt: skip
    room = {
        name: x.new_full((batch, heads, *sizes.get(name, (queries,))), BLANK.get(name, 0))
        for name, x in like.tensors().items()
    }
    return replace(like, **room, keys=keys)  # type: ignore[arg-type]


def _put(whole: Glance, part: Glance, rows: list[int], queries: slice, keys: slice) -> None:
    held = whole.tensors()
    for name, x in part.tensors().items():
        if name in ("where", "top_places"):
            x = torch.where(x >= 0, x + keys.start, x)
        if name == "received":
            held[name][rows, :, keys] = x
        elif name.endswith("_map"):
            held[name][rows, :, : x.shape[2], : x.shape[3]] = x
        elif name == "weights":
            held[name][rows, :, queries, keys] = x
        elif x.dim() == 4:
            held[name][rows, :, queries, : x.shape[3]] = x
        else:
            held[name][rows, :, queries] = x

"""A look that is computed when it is asked for: of most sites of a trace nobody ever asks."""

from dataclasses import fields, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.observe import observe
from saccade.attention.look.padding import Seen
from saccade.attention.look.view import View

LARGER = 4  # times the queries that keys and masks may be: not the whole past of one new word


class Look:
    """What one call of a site looked at.

    On the CPU copies of queries, keys and masks wait to be asked, for the model may write into its
    own; as many as `room` allows, in bytes. Anything else is looked at on the spot.
    """

    def __init__(
        self,
        seen: Seen,
        keep: Keep,
        *,
        queries: Bool[Tensor, "B T"] | None,
        keys: Bool[Tensor, "B S"] | None,
        room: int = 0,
    ) -> None:
        self._keep, self._tokens = keep, (queries, keys)
        self._known: Glance | None = None
        self.waiting = _waiting(seen, room)
        if isinstance(seen, View) and self.waiting:
            self._seen: Seen | None = _copied(seen)
        else:
            self._known, self._seen = self._observed(seen), None

    def glance(self) -> Glance:
        """What it was; the copies are let go."""
        if self._known is None:
            assert self._seen is not None
            off = torch.autocast("cpu", enabled=False)
            with off, torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
                self._known = self._observed(self._seen)
            self._seen = None
        return self._known

    def _observed(self, seen: Seen) -> Glance:
        queries, keys = self._tokens
        return observe(seen, self._keep, queries=queries, keys=keys)


def _tensors(view: View) -> dict[str, Tensor]:
    held = {entry.name: getattr(view, entry.name) for entry in fields(view)}
    return {name: x for name, x in held.items() if isinstance(x, Tensor)}


def _waiting(seen: Seen, room: int) -> int:
    """How many bytes would wait; 0 if they should not."""
    if isinstance(seen, Tensor) or seen.q.device.type != "cpu":
        return 0
    size = sum(x.nbytes for x in _tensors(seen).values())
    return size if size <= min(room, LARGER * seen.q.nbytes) else 0


def _copied(view: View) -> View:
    copies = {name: x.detach().clone() for name, x in _tensors(view).items()}
    return replace(view, **copies)  # type: ignore[arg-type]

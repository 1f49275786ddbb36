"""Keys and values of the positions already decoded, so that a step computes only the new one.

The beams of a sentence share one pool. No key is moved when beams change places: entries stay where
they were written, and each beam knows which entries are its own past. What was read before the
beams parted is there once for all of them. Entries that no beam remembers are dropped now and then.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TIDY = 8  # steps between looks at whether a pool may shrink
WORTH = 0.6  # a pool is tidied when it shrinks to this share or less


@dataclass
class Lineage:
    """Which entries of the pool are each beam's past, in order."""

    entries: Int[Tensor, "B k T"]

    @classmethod
    def parting(cls, sentences: int, beams: int, length: int, device: torch.device) -> "Lineage":
        """Beams that have everything in common: the `length` entries that there are."""
        return cls(torch.arange(length, device=device).expand(sentences, beams, -1))

    @property
    def beams(self) -> int:
        return self.entries.shape[1]

    def grown(self, length: int) -> Int[Tensor, "B k T"]:
        """With the newest entries, one for each beam, that fill a pool up to `length`."""
        fresh = torch.arange(length - self.beams, length, device=self.entries.device)
        fresh = fresh[None, :, None].expand(len(self.entries), -1, -1)
        return torch.cat([self.entries, fresh], dim=2)

    def follow(self, parents: Int[Tensor, "B k"], length: int) -> "Lineage":
        """Beam i goes on from beam `parents[i]`, whose newest entry is among the last."""
        entries = self.grown(length)
        return Lineage(entries.gather(1, parents[:, :, None].expand_as(entries)))

    def select(self, sentences: Int[Tensor, " B2"]) -> "Lineage":
        return Lineage(self.entries[sentences])

    def mask(self, length: int) -> Bool[Tensor, "B k E"]:
        """Which entries of a pool of `length` each beam may look at, its newest included."""
        mine = torch.zeros(*self.entries.shape[:2], length, dtype=torch.bool)
        mine = mine.to(self.entries.device)
        return mine.scatter_(2, self.grown(length), True)

    def used(self, length: int) -> Int[Tensor, "B E2"] | None:
        """The entries that some beam remembers, padded with others, if they are few of `length`."""
        wanted = torch.zeros(len(self.entries), length, dtype=torch.uint8)
        wanted = wanted.to(self.entries.device).scatter_(1, self.entries.flatten(1), 1)
        most = int(wanted.sum(dim=1).max())
        if most > WORTH * length:
            return None
        return wanted.argsort(dim=1, descending=True, stable=True)[:, :most]

    def moved(self, kept: Int[Tensor, "B E2"], length: int) -> "Lineage":
        """The same past after only the entries `kept` were left of `length`."""
        places = kept.new_zeros(len(kept), length)
        places.scatter_(1, kept, torch.arange(kept.shape[1], device=kept.device).expand_as(kept))
        return Lineage(places.gather(1, self.entries.flatten(1)).view_as(self.entries))


@dataclass
class KeyValues:
    """One layer's memory. `room` is allocated ahead and doubled when full; `length` is in use."""

    keys: Float[Tensor, "B N room K"]
    values: Float[Tensor, "B N room Kv"]
    length: int = 0
    lineage: Lineage | None = None

    @classmethod
    def empty(cls, like: Float[Tensor, "B D"], *, heads: int, width: int) -> "KeyValues":
        """No positions yet, for as many rows as `like` has, on its device and in its precision."""
        nothing = like.new_empty(like.shape[0], heads, 0, width)
        return cls(nothing, nothing)

    def write(
        self, keys: Float[Tensor, "B N T K"], values: Float[Tensor, "B N T Kv"]
    ) -> tuple[Float[Tensor, "B N E K"], Float[Tensor, "B N E Kv"]]:
        """Put new entries into the pool and return all of it, without a copy."""
        if torch.compiler.is_exporting():  # sizes are free in a graph: no room is kept there
            self.keys = torch.cat([self.keys, keys], dim=2)
            self.values = torch.cat([self.values, values], dim=2)
            self.length = self.keys.shape[2]
            return self.keys, self.values
        end = self.length + keys.shape[2]
        if end > self.keys.shape[2]:
            room = max(2 * self.keys.shape[2], end, 16)
            self.keys, self.values = (
                _grown(self.keys, room, keys),
                _grown(self.values, room, values),
            )
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def select(self, sentences: Int[Tensor, " B2"]) -> "KeyValues":
        """Keep these sentences, in this order; one may be kept more than once."""
        lineage = None if self.lineage is None else self.lineage.select(sentences)
        return KeyValues(self.keys[sentences], self.values[sentences], self.length, lineage)

    def led_by(self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None) -> "KeyValues":
        """The same entries, or the `kept` ones, seen by beams with this past."""
        if kept is None:
            return KeyValues(self.keys, self.values, self.length, lineage)
        index = kept[:, None, :, None]
        keys, values = (
            x.gather(2, index.expand(-1, x.shape[1], -1, x.shape[3]))
            for x in (self.keys, self.values)
        )
        return KeyValues(keys, values, kept.shape[1], lineage)


def followed(
    lineage: Lineage, parents: Int[Tensor, "B k"], length: int, step: int
) -> tuple[Lineage, Int[Tensor, "B E2"] | None]:
    """The lineage after beams changed places, and the entries to keep if it is time to tidy up."""
    lineage = lineage.follow(parents, length)
    kept = lineage.used(length) if step % TIDY == 0 else None
    return (lineage if kept is None else lineage.moved(kept, length)), kept


def _grown(
    held: Float[Tensor, "R N room K"], room: int, like: Float[Tensor, "R N T K"]
) -> Float[Tensor, "R N more K"]:
    bigger = torch.empty(*held.shape[:2], room, held.shape[3], dtype=like.dtype, device=like.device)
    bigger[:, :, : held.shape[2]] = held
    return bigger

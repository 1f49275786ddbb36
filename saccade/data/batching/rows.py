"""A batch of token sequences, end to end: no padding between them."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

FILLER = 0  # any token: nobody looks at it


class BatchShape(NamedTuple):
    """A shape that many batches fit into, so that one compiled or captured step serves them all."""

    tokens: int
    sequences: int
    longest: int

    def filling(self, sequences: int, tokens: int) -> list[int]:
        """Lengths of what fills up: as long as allowed, one rest, and empty ones."""
        rest, places = self.tokens - tokens, self.sequences - sequences
        assert 0 <= rest <= places * self.longest
        full, last = divmod(rest, self.longest)
        lengths = [self.longest] * full + [last] * (last > 0)
        return lengths + [0] * (places - len(lengths))


class Rows(NamedTuple):
    """Sequence i is `tokens[starts[i] : starts[i + 1]]`.

    `lengths` are those of the real sequences, which come first, and stay on the CPU; the rest only
    fills a shape. `longest` bounds every length; it takes few values, for each may need a kernel.
    """

    tokens: Int[Tensor, " total"]
    places: Int[Tensor, " total"]  # of each token within its own sequence
    starts: Int[Tensor, " boundaries"]
    lengths: Int[Tensor, " B"]
    longest: int
    rectangular: bool  # all are equally long and nothing else is there

    @classmethod
    def of(
        cls,
        tokens: Int[Tensor, " total"],
        lengths: Int[Tensor, " B"],
        *,
        shape: BatchShape | None = None,
    ) -> "Rows":
        """Sequences that lie end to end already; with a `shape`, filled up to it."""
        longest, every = few(int(lengths.max())), lengths
        if shape is not None:
            filling = torch.tensor(shape.filling(len(lengths), len(tokens)), dtype=lengths.dtype)
            longest, every = few(shape.longest), torch.cat([lengths, filling])
            tokens = torch.cat([tokens, tokens.new_full((int(filling.sum()),), FILLER)])
        ends = every.numpy().cumsum()
        starts = np.concatenate([[0], ends]).astype(np.int32)
        places = np.arange(len(tokens)) - np.repeat(starts[:-1], every.numpy())
        found = torch.from_numpy(places), torch.from_numpy(starts)
        real = int(lengths.sum())
        rectangular = len(tokens) == real == len(lengths) * int(lengths.max())
        return cls(tokens, *found, lengths, longest, rectangular)

    def to(self, device: torch.device) -> "Rows":
        """Moved, but for the lengths."""
        later = device.type == "cuda"  # the way back from there must be over before one reads
        tokens, places, starts = (
            x.to(device, non_blocking=later) for x in (self.tokens, self.places, self.starts)
        )
        return self._replace(tokens=tokens, places=places, starts=starts)

    @property
    def shape(self) -> tuple[int, int, int]:
        """All that a kernel's launch depends on."""
        return len(self.tokens), len(self.starts), self.longest

    def pinned(self) -> "Rows":
        """In memory from which a GPU can fetch it by itself."""
        tokens, places, starts = (x.pin_memory() for x in (self.tokens, self.places, self.starts))
        return self._replace(tokens=tokens, places=places, starts=starts)

    def padded(self) -> Int[Tensor, "B T"]:
        """The sequences below each other, filled up on the right."""
        return self.rectangle(self.tokens)

    def rectangle(self, x: Shaped[Tensor, "total *rest"]) -> Shaped[Tensor, "B T *rest"]:
        """What is known of each token, by sequence and place; zero (`FILLER`) beyond its end."""
        if self.rectangular:
            return x.unflatten(0, (len(self.lengths), -1))
        rows, longest = len(self.lengths), int(self.lengths.max())
        flat = x.new_zeros(rows * longest, *x.shape[1:])
        return flat.index_copy(0, self._places(), x[: self.real]).unflatten(0, (rows, longest))

    def out_of_rectangle(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "real D"]:
        """What was computed for `padded`, end to end again, without the padding."""
        flat = x.flatten(0, 1)
        return flat if self.rectangular else flat[self._places()]

    def _places(self) -> Int[Tensor, " real"]:
        """Where each real token stands in `padded`, read row by row."""
        return (self.sequences * int(self.lengths.max()) + self.places)[: self.real]

    @property
    def sequences(self) -> Int[Tensor, " total"]:
        """The sequence that each token is of."""
        each = torch.arange(len(self.tokens), device=self.starts.device)
        return torch.bucketize(each, self.starts, right=True) - 1

    @property
    def real(self) -> int:
        """How many tokens are not filling."""
        return int(self.lengths.sum())


def with_token(
    tokens: Int[Tensor, " total"], lengths: Int[Tensor, " B"], token: int, *, first: bool
) -> Int[Tensor, " longer"]:
    """Sequences end to end, each with one more token: as its first or as its last."""
    before = np.repeat(np.arange(len(lengths)), lengths.numpy())  # tokens put in before each
    longer = np.full(len(tokens) + len(lengths), token)
    longer[np.arange(len(tokens)) + before + first] = tokens.numpy()
    return torch.from_numpy(longer)


def few(length: int) -> int:
    """The next of a few lengths: powers of two, from 16."""
    return max(16, 1 << (length - 1).bit_length())

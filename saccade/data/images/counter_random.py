"""Random numbers by address: a pure function of (seed, epoch, index, stream), with no state.

Which batch an example is in, which worker makes it, what came before: nothing of it matters.

    h₀ = mix(seed)        hₖ₊₁ = mix(hₖ + (k-th of epoch, index, stream, place) · γ)

with the output function of SplitMix64 (Steele et al. 2014, doi:10.1145/2660193.2660195) as mix.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Words = np.ndarray[Any, np.dtype[np.uint64]]
GAMMA = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / the golden ratio
NOTHING: Words = np.zeros(0, np.uint64)


def mix(x: Words) -> Words:
    """SplitMix64's output function: every bit of x changes half the bits of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uniform(
    indices: Int[Tensor, " B"], count: int, *, seed: int, epoch: int, stream: int
) -> Float[Tensor, "B count"]:
    """`count` numbers in 0 ≤ u < 1 for each index."""
    return uniforms(indices, {stream: count}, seed=seed, epoch=epoch)


def uniform_at(
    indices: Int[Tensor, " n"], places: Int[Tensor, " n"], *, seed: int, epoch: int, stream: int
) -> Float[Tensor, " n"]:
    """For each index the number at one place, which is the one that `uniform` has there."""
    h = np.zeros((1, 1), np.uint64)
    for key in (_word(seed), _word(epoch), _words(indices), _word(stream), _words(places)):
        h = _next(h, key)
    return _shares(h)[0].to(indices.device)


def uniforms(
    indices: Int[Tensor, " B"], counts: Mapping[int, int], *, seed: int, epoch: int
) -> Float[Tensor, "B counts"]:
    """So many numbers of each stream for each index, one stream after another."""
    h = np.zeros((1, 1), np.uint64)
    for key in (_word(seed), _word(epoch), _words(indices)[:, None], _word(*counts)):
        h = _next(h, key)  # (B, streams) in the end
    places = [np.arange(count, dtype=np.uint64) for count in counts.values()]
    h = _next(np.repeat(h, list(counts.values()), axis=1), np.concatenate([*places, NOTHING]))
    return _shares(h).to(indices.device)


def _shares(h: Words) -> Float[Tensor, "rows columns"]:
    high = (h >> np.uint64(40)).astype(np.float32)  # 24 bits: all that a float32 below 1 can hold
    return torch.from_numpy(high * np.float32(2**-24))


def _words(keys: Int[Tensor, " n"]) -> Words:
    return keys.cpu().numpy().astype(np.uint64)


def _next(h: Words, key: Words) -> Words:
    return mix(h + (key + np.uint64(1)) * GAMMA)  # + 1: from zero, zero would come


def _word(*keys: int) -> Words:
    return np.array([[key & (1 << 64) - 1 for key in keys]], np.uint64)

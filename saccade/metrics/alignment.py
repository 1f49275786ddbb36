"""Attention as a word alignment, and its error against the truth (Och & Ney 2003)."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

Link = tuple[int, int]
Span = tuple[int, int]


def alignment_error_rate(
    found: Iterable[set[Link]], sure: Iterable[set[Link]], possible: Iterable[set[Link]]
) -> float:
    """How far found links are from the truth: 0 is perfect, 1 has nothing in common.

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    """
    hits, total = 0, 0
    for a, s, p in zip(found, sure, possible, strict=True):
        hits += len(a & s) + len(a & (p | s))
        total += len(a) + len(s)
    return 1 - hits / total if total else 0.0


def merge_pieces(
    weights: Float[Tensor, "T S"],
    *,
    source_pieces: list[Span],
    target_pieces: list[Span],
    source_words: list[Span],
    target_words: list[Span],
) -> Float[Tensor, "words_out words_in"]:
    """Attention between words: what a word's pieces receive adds up, what they give is averaged.

    A piece that touches several words, such as ")." does, is shared out among them.
    """
    columns = _membership(source_pieces, source_words)  # (S, words)
    columns = columns / columns.sum(dim=1, keepdim=True).clamp(min=1)
    inside = weights[:, : len(source_pieces)].double()
    return merge_rows(inside, pieces=target_pieces, words=target_words) @ columns


def merge_rows(
    weights: Float[Tensor, "T S"], *, pieces: list[Span], words: list[Span]
) -> Float[Tensor, "words S"]:
    """Where each word looked: the mean over its pieces; rows after the last piece are left out."""
    rows = _membership(pieces, words)  # (T, words)
    return rows.T @ weights[: len(pieces)].double() / rows.sum(dim=0).clamp(min=1)[:, None]


def best_links(weights: Float[Tensor, "words_out words_in"]) -> set[Link]:
    """For each target word, the source word that it looks at most, as (source, target)."""
    return {(source, target) for target, source in enumerate(weights.argmax(dim=1).tolist())}


def _membership(pieces: list[Span], words: list[Span]) -> Float[Tensor, "pieces words"]:
    """1 where a piece shares a character with a word (pieces may hold the blank before it)."""
    if not pieces or not words:
        return torch.zeros(len(pieces), len(words), dtype=torch.float64)
    piece, word = torch.tensor(pieces)[:, None], torch.tensor(words)[None]  # (P, 1, 2), (1, W, 2)
    overlap = torch.minimum(piece[..., 1], word[..., 1]) - torch.maximum(
        piece[..., 0], word[..., 0]
    )
    return (overlap > 0).double()

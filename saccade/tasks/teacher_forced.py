"""A model made to say given words, and what is seen of it: where it looks, what it might have said.

One pass over all words gives what decoding gave word by word, at every site and not only at those
that decoding runs.
"""

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.glance import PER_QUERY, Glance

CHOICES = 5  # words that are named for each place


@dataclass(frozen=True)
class TeacherForced:
    """What was seen at each site, in the order in which they run, and how words were chosen."""

    sites: dict[str, Glance]
    axes: dict[str, tuple[Axis, Axis]]
    log_p: list[float]
    choices: list[list[tuple[int, float]]]


def word_choices(
    logits: Float[Tensor, "T V"], said: list[int]
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """How probable each word was, and the most probable ones at its place."""
    log_p = logits.float().log_softmax(dim=-1).cpu()
    top = log_p.topk(min(CHOICES, log_p.shape[-1]), dim=-1)
    choices = [
        list(zip(tokens, p)) for tokens, p in zip(top.indices.tolist(), top.values.exp().tolist())
    ]
    return log_p[range(len(said)), said].tolist(), choices


def first_queries(seen: Glance, row: int, count: int) -> Glance:
    """One row of a batch and its first queries; the rest fills up a longer one's batch."""
    own = seen.row(row)
    assert own.weights is not None
    kept = {name: x[:, :, :count] for name, x in own.tensors().items() if name in PER_QUERY}
    return replace(own, **kept, received=own.weights[:, :, :count].sum(dim=2))  # type: ignore[arg-type]

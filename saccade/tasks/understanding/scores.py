"""What a model gives texts: scores of each, or of each of its words, in the order of the texts."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.batching.batches import Batches
from saccade.models.protocol import ScoresTexts
from saccade.tasks.base import Progress, silent
from saccade.tasks.understanding.encode import NO_PIECE, EncodedTexts
from saccade.tasks.understanding.labels import Labels

AT_ONCE = 8192  # tokens


@torch.no_grad()
def text_scores(
    model: ScoresTexts,
    texts: EncodedTexts,
    labels: Labels,
    device: torch.device,
    progress: Progress = silent,
) -> list[Float[Tensor, "... C"]]:
    """Of each text its scores, or those of each of its words; texts alike in length go together.

    Words of which nothing is read have NaN.
    """
    found: dict[int, Tensor] = {}
    lengths = texts.tokens.lengths[:, None]
    budget = max(AT_ONCE, int(lengths.max())) if len(lengths) else AT_ONCE
    for chosen in Batches.of_lengths(lengths, budget=budget, seed=0).epoch(0) if len(texts) else ():
        rows, types = texts.rows(chosen)
        on_device = rows.to(device)
        scores = model.scores(model(on_device, types.to(device)), on_device).float().cpu()
        parts: Sequence[Tensor] = scores[: len(chosen)].unbind(0)
        if labels.kind == "tags":
            parts = _of_words(scores, *texts.word_heads(chosen))
        found.update(zip(chosen.tolist(), parts))
        progress(len(found), len(texts))
    return [found[place] for place in range(len(texts))]


def _of_words(
    scores: Float[Tensor, "tokens C"], heads: Int[Tensor, " words"], counts: Int[Tensor, " B"]
) -> Sequence[Tensor]:
    each = scores[heads.clamp(min=0)]
    each = each.masked_fill((heads == NO_PIECE)[:, None], torch.nan)
    return each.split(counts.tolist())

"""What is learnt from hidden words: which they were, what comes next, and which were replaced."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.models.protocol import FillsWords, ReplacesWords
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.masked.batch import MaskedBatch

REPLACED_WEIGHT = 50.0  # λ of ELECTRA


class LossWeights(NamedTuple):
    """How many hidden words there are to a text and to a word, over all data.

    A loss of texts times the first, summed, is their mean where hidden words are counted.
    """

    text: float
    word: float


class ReplacedWords(NamedTuple):
    """Texts with a generator's words in place of hidden ones, and where these are not right."""

    rows: Rows
    wrong: Bool[Tensor, " words"]
    features: Float[Tensor, "hidden E"]  # of the generator, at the hidden words


def features_at(
    model: FillsWords, hidden: Float[Tensor, "words D"], at: Int[Tensor, " hidden"]
) -> Float[Tensor, "hidden E"]:
    """What the output layer reads, at some words alone."""
    return model.transformed(hidden.index_select(0, at))


def exact(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """In single precision or better, whatever they were computed in."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def word_losses(
    model: FillsWords, batch: MaskedBatch, weights: LossWeights
) -> dict[str, Float[Tensor, ""]]:
    """Cross-entropy of the hidden words, and of whether a text follows.

    −Σᵢ log p(xᵢ | the text with its words hidden)        −Σ log p(next or not | both texts)
    """
    hidden = model(batch.rows, batch.types)
    features = features_at(model, hidden, batch.at)
    found = {"words": summed_cross_entropy(features, model.output, batch.labels)}
    if batch.follows is not None:
        logits = exact(model.follows(hidden, batch.rows))
        loss = F.cross_entropy(logits, batch.follows, ignore_index=IGNORED, reduction="sum")
        found["next"] = weights.text * loss
    return found


def replaced_losses(
    model: ReplacesWords, batch: MaskedBatch, weights: LossWeights, mask: int
) -> dict[str, Float[Tensor, ""]]:
    """That of a generator, and of telling the words that it drew from the author's.

        Lg = −Σᵢ log pg(xᵢ)        x̂ᵢ ~ pg        Ld = −Σₜ log pd(x̂ₜ = xₜ, or not)

        Lg / hidden words + 50 Ld / words

    No gradient goes through the draws.
    """
    seen = replace_words(model.generator, batch, mask)
    found = summed_cross_entropy(seen.features, model.generator.output, batch.labels)
    z = replaced_scores(model, seen.rows, batch)
    loss = F.binary_cross_entropy_with_logits(z, seen.wrong.to(z.dtype), reduction="none")
    weight = REPLACED_WEIGHT * weights.word
    return {"generator": found, "replaced": weight * (loss * batch.real).sum()}


def replaced_scores(
    model: ReplacesWords, rows: Rows, batch: MaskedBatch
) -> Float[Tensor, " words"]:
    """Of each word, the logit of not being the author's."""
    return exact(model.scores(model(rows, batch.types), rows)[:, 0])


def replace_words(
    generator: FillsWords, batch: MaskedBatch, mask: int, draws: torch.Generator | None = None
) -> ReplacedWords:
    """Hide all of the chosen words, and draw what a generator finds likely in their place.

    x̂ = argmaxᵥ (zᵥ + gᵥ), g Gumbel noise: a draw from softmax(z)
    """
    rows, at = batch.rows, batch.at
    there, fills = rows.tokens.index_select(0, at), batch.labels == IGNORED

    def put(words: Tensor | int) -> Int[Tensor, " total"]:
        return rows.tokens.index_copy(0, at, torch.where(fills, there, words))

    hidden = generator(rows._replace(tokens=put(mask)), batch.types)
    features = features_at(generator, hidden, at)
    with torch.no_grad():
        logits = exact(generator.output(features))
        noise = torch.rand(logits.shape, generator=draws, device=logits.device)
        drawn = (logits - (-noise.log()).log()).argmax(dim=-1)
    author, read = put(batch.labels), put(drawn)
    return ReplacedWords(rows._replace(tokens=read), read != author, features)

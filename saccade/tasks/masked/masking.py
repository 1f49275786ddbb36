"""Which words of a text are hidden, and what stands in their place (Devlin et al. 2019).

Of each text a share of the words is chosen, at least one: of these 80 % become the mask, 10 %
another word, and 10 % stay as they are, so that a model cannot rely on what it reads. The
published code makes such choices once and for all; here they are another ones in every epoch, as in
RoBERTa (Liu et al. 2019), and a pure function of (seed, epoch, index) whatever else is in a batch.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.ragged import AT_ONCE
from saccade.data.images.counter_random import uniform_at
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.tasks.masked.framed import FramedTexts, TextRows

MASKED, REPLACED = 0.8, 0.1  # of the chosen words; the rest stays as it is
CHOICE, FATE, SUBSTITUTE = range(3)  # streams of random numbers


class HiddenWords(NamedTuple):
    """Texts of which some words are hidden, where these stand, and what they were."""

    tokens: Int[Tensor, " total"]
    at: Int[Tensor, " hidden"]
    labels: Int[Tensor, " hidden"]


@dataclass(frozen=True)
class Masking:
    """How words are hidden. `hideable` says of each token of the vocabulary whether it may be.

    With `whole_words` all pieces of a word are chosen together, yet meet their fates alone.
    """

    share: float
    mask: int
    hideable: Bool[Tensor, " V"]
    whole_words: bool
    seed: int
    stream: int = 0

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, *, share: float, whole_words: bool, seed: int, stream: int = 0
    ) -> "Masking":
        """That of a tokenizer: neither special tokens nor unknown words are hidden."""
        if vocabulary.mask is None:
            raise ConfigError(
                "the tokenizer has no token for hidden words, such as [MASK]; start from a run "
                "or a folder whose tokenizer has one, or let one be learnt (leave --init out)"
            )
        hideable = torch.ones(len(vocabulary), dtype=torch.bool)
        hideable[[token for token in vocabulary.special if token is not None]] = False
        return cls(share, vocabulary.mask, hideable, whole_words, seed, stream)

    def target(self, words: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """How many of so many words are hidden, whole words aside: at least one."""
        return (self.share * words.double() + 0.5).long().clamp(min=1) * (words > 0)

    def words(self, texts: TextRows) -> Int[Tensor, " rows"]:
        """How many words of each may be hidden."""

        def of_lines(rows: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
            taken = (texts.lines.tokens.take(some) for some in rows.split(AT_ONCE))
            return torch.cat([_sums(self.hideable[x].long(), lengths) for x, lengths in taken])

        return texts.summed(of_lines)

    def most(self, texts: TextRows, words: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
        """How many words of each are hidden at most: the last whole word may be half too long."""
        target = self.target(words)
        if not self.whole_words:
            return target
        longest = texts.largest(texts.lines.longest_words)
        return torch.maximum(target + longest // 2, longest)

    def hide(self, texts: FramedTexts, index: Int[Tensor, " B"], *, epoch: int) -> HiddenWords:
        """Hide words of each text, whose random numbers are those of its index."""
        row = torch.repeat_interleave(torch.arange(len(index)), texts.lengths)
        place = torch.arange(len(row)) - (texts.lengths.cumsum(0) - texts.lengths)[row]
        at = self._chosen(texts, index, row, place, epoch).nonzero()[:, 0]
        address = {"seed": self.seed, "epoch": epoch}
        who, where = index[row[at]], place[at]
        fate = uniform_at(who, where, **address, stream=self.stream + FATE)
        other = uniform_at(who, where, **address, stream=self.stream + SUBSTITUTE)
        words = self.hideable.nonzero()[:, 0]
        substitutes = words[(other.double() * len(words)).long()]
        labels, tokens = texts.tokens[at], texts.tokens.clone()
        read = torch.where(fate < MASKED + REPLACED, substitutes, labels)
        tokens[at] = torch.where(fate < MASKED, self.mask, read)
        return HiddenWords(tokens, at, labels)

    def _chosen(
        self,
        texts: FramedTexts,
        index: Int[Tensor, " B"],
        row: Int[Tensor, " total"],
        place: Int[Tensor, " total"],
        epoch: int,
    ) -> Bool[Tensor, " total"]:
        """In random order, words are taken until half of the next one would be too much; where just
        that half would fit, a coin decides, so that the share is right on average.
        """
        may = self.hideable[texts.tokens]
        begins = texts.begins if self.whole_words else torch.ones_like(may)
        word, first = begins.cumsum(0) - 1, begins.nonzero()[:, 0]
        sizes = torch.bincount(word[may], minlength=len(first))
        draws = uniform_at(
            index[row[first]], place[first], seed=self.seed, epoch=epoch, stream=self.stream
        )
        order = torch.from_numpy(np.lexsort((draws.numpy(), row[first].numpy())))
        size, of = sizes[order], row[first][order]
        hideable = torch.bincount(row[may], minlength=len(index))
        before = size.cumsum(0) - size - (hideable.cumsum(0) - hideable)[of]
        coin = (draws[order].double() * 2**24).long() % 2
        taken = (2 * before + size < 2 * self.target(hideable)[of] + coin) | (before == 0)
        chosen = torch.empty_like(taken)
        chosen[order] = taken
        return may & chosen[word]


def _sums(x: Int[Tensor, " total"], lengths: Int[Tensor, " lines"]) -> Int[Tensor, " lines"]:
    """Of each stretch; some may be empty."""
    totals, ends = torch.cat([x.new_zeros(1), x.cumsum(0)]), lengths.cumsum(0)
    return totals[ends] - totals[ends - lengths]

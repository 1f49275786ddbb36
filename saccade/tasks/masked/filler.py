"""Using a trained model of hidden words: texts with blanks, and the likeliest words for each."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError, DataError
from saccade.models.protocol import FillsWords, ReplacesWords
from saccade.printable import printable
from saccade.tasks.base import Progress, silent
from saccade.tasks.masked.blanks import BLANK, BlankReader, BlankText, FilledText
from saccade.tasks.masked.losses import features_at
from saccade.tasks.masked.task import MaskedSettings

BUDGET = 8192  # tokens that are read together


class BlankFiller:
    """A model that fills hidden words, and its vocabulary."""

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, settings: MaskedSettings) -> None:
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device
        self.blanks = BlankReader(vocabulary)

    @property
    def fills(self) -> FillsWords:
        """The part of the model that fills words: of an ELECTRA its generator."""
        model: Any = self.model
        return model.generator if isinstance(model, ReplacesWords) else model

    def read_whole(self, text: str) -> BlankText:
        """A text with or without blanks; one that is longer than the model reads is refused."""
        found, longest = self.blanks.read(text), self.fills.longest
        if longest is not None and len(found.tokens) > longest:
            raise DataError(
                f"the text has {len(found.tokens)} tokens, but the model sees {longest}; shorten it"
            )
        return found

    def read_blanks(self, text: str) -> BlankText:
        """A text with blanks; one without is refused."""
        found = self.read_whole(text)
        if not found.at:
            example = (
                f"{text.split(maxsplit=1)[0]} {BLANK}" if text.split() else f"The {BLANK} is here."
            )
            raise DataError(
                f"{printable(text[:60])!r} has no blank to fill; write {BLANK} or [MASK] in place "
                f'of a word, as in "{printable(example[:60])}"'
            )
        return found

    def fill(
        self, texts: Sequence[str], *, n_best: int = 5, progress: Progress = silent
    ) -> list[FilledText]:
        """The likeliest words for every blank; each is told as if the others stayed blank."""
        if n_best < 1:
            raise ConfigError(f"n_best={n_best} must be at least 1")
        read = [self.read_blanks(text) for text in texts]
        order = sorted(range(len(read)), key=lambda row: len(read[row].tokens))
        filled = dict[int, FilledText]()
        for rows in _batches(order, [len(one.tokens) for one in read]):
            some = [read[row] for row in rows]
            chances = iter(self.chances(some).split([len(one.at) for one in some]))
            filled |= {row: self.blanks.filled(read[row], next(chances), n_best) for row in rows}
            progress(len(filled), len(read))
        return [filled[row] for row in range(len(read))]

    @torch.inference_mode()
    def chances(self, texts: Sequence[BlankText]) -> Float[Tensor, "blanks V"]:
        """How likely each word is in each blank; special tokens are no words."""
        model, (rows, types) = self.fills, self.rows(texts)
        starts = rows.starts.tolist()
        at = [start + place for start, one in zip(starts, texts) for place in one.at]
        where = torch.tensor(at, dtype=torch.long, device=self.device)
        logits = model.output(features_at(model, model(rows, types), where))
        return self.blanks.chances(logits)

    def rows(self, texts: Sequence[BlankText]) -> tuple[Rows, Tensor]:
        """Texts end to end, and the types of their tokens."""
        tokens = torch.tensor([token for one in texts for token in one.tokens])
        types = torch.tensor([kind for one in texts for kind in one.types])
        lengths = torch.tensor([len(one.tokens) for one in texts])
        return Rows.of(tokens, lengths).to(self.device), types.to(self.device)


def _batches(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Rows of similar length, so many that they have some thousand tokens."""
    batches, size = list[list[int]](), 0
    for row in order:
        size += lengths[row]
        if not batches or size > BUDGET:
            batches.append([])
            size = lengths[row]
        batches[-1].append(row)
    return batches

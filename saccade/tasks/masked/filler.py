"""Using a trained model of hidden words: texts with blanks, and the likeliest words for each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.data.rows import Rows
from saccade.data.vocabulary import Vocabulary
from saccade.data.words import Span
from saccade.errors import ConfigError, DataError
from saccade.models.protocol import FillsWords, ReplacesWords
from saccade.printable import printable
from saccade.tasks.base import Progress, silent
from saccade.tasks.masked.losses import features_at
from saccade.tasks.masked.task import MaskedSettings

BLANK = "___"
BUDGET = 8192  # tokens that are read together
STAND_IN = "x"  # read in place of a blank, so that the tokenizer sees a word there


class BlankText(NamedTuple):
    """A text as the model reads it: its tokens, and where its blanks are among these.

    `spans` are the characters of `plain` that words for the blanks replace; a letter stands there.
    """

    text: str
    plain: str
    tokens: list[int]
    types: list[int]
    at: list[int]
    spans: list[Span]


class BlankWord(NamedTuple):
    """A word that may stand in a blank, and how likely it is there."""

    word: str
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text with its blanks filled by the likeliest words, and the best words for each blank."""

    given: str
    text: str
    blanks: tuple[tuple[BlankWord, ...], ...]


class BlankFiller:
    """A model that fills hidden words, and its vocabulary."""

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, settings: MaskedSettings) -> None:
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device
        if vocabulary.mask is None:
            raise ConfigError("the tokenizer has no token for hidden words, such as [MASK]")
        self.mask = vocabulary.mask
        names = ("[MASK]", vocabulary.name(self.mask) or BLANK)
        self._blank = re.compile("|".join(["_{3,}", *map(re.escape, names)]))
        special = [token for token in vocabulary.special if token is not None]
        self._special = torch.tensor(special, device=self.device)

    @property
    def fills(self) -> FillsWords:
        """The part of the model that fills words: of an ELECTRA its generator."""
        model: Any = self.model
        return model.generator if isinstance(model, ReplacesWords) else model

    def read(self, text: str) -> BlankText:
        """A text with or without blanks."""
        parts = self._blank.split(text)
        plain, ends = STAND_IN.join(parts), [0]
        for part in parts:
            ends.append(ends[-1] + len(part) + len(STAND_IN))
        blanks = [(end - len(STAND_IN), end) for end in ends[1:-1]]
        (reading,) = self.vocabulary.readings([(plain,)])
        found = BlankText(text, plain, [], [], [], [])
        for start, stop in _every(self.vocabulary.word_groups(reading.tokens), len(reading.tokens)):
            word = _covered(reading.spans[start:stop], plain)
            inside = [one for one in blanks if one[0] < word[1] and word[0] < one[1]]
            if inside:
                _check_alone(text, plain, word, inside)
                found.at.append(len(found.tokens))
                found.spans.append(word)
            found.tokens.extend([self.mask] if inside else reading.tokens[start:stop])
            found.types.extend(reading.types[start : start + 1 if inside else stop])
        return found

    def read_whole(self, text: str) -> BlankText:
        """The same; one that is longer than the model reads is refused."""
        found, longest = self.read(text), self.fills.longest
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
            filled |= {row: self._filled(read[row], next(chances), n_best) for row in rows}
            progress(len(filled), len(read))
        return [filled[row] for row in range(len(read))]

    @torch.inference_mode()
    def chances(self, texts: Sequence[BlankText]) -> Float[Tensor, "blanks V"]:
        """How likely each word is in each blank; special tokens are no words."""
        model, (rows, types) = self.fills, self.rows(texts)
        starts = rows.starts.tolist()
        at = [start + place for start, one in zip(starts, texts) for place in one.at]
        where = torch.tensor(at, dtype=torch.long, device=self.device)
        logits = model.output(features_at(model, model(rows, types), where)).float()
        return logits.index_fill(1, self._special, -torch.inf).softmax(dim=-1).cpu()

    def rows(self, texts: Sequence[BlankText]) -> tuple[Rows, Tensor]:
        """Texts end to end, and the types of their tokens."""
        tokens = torch.tensor([token for one in texts for token in one.tokens])
        types = torch.tensor([kind for one in texts for kind in one.types])
        lengths = torch.tensor([len(one.tokens) for one in texts])
        return Rows.of(tokens, lengths).to(self.device), types.to(self.device)

    def word(self, token: int) -> str:
        """A token as a word."""
        piece = self.vocabulary.piece(token, after=[])
        return piece.strip() or piece

    def best(self, chances: Float[Tensor, " V"], count: int) -> tuple[BlankWord, ...]:
        """The likeliest words."""
        top = chances.topk(min(count, len(chances) - len(self._special)))
        pairs = zip(top.indices.tolist(), top.values.tolist())
        return tuple(BlankWord(self.word(token), p) for token, p in pairs)

    def _filled(
        self, read: BlankText, chances: Float[Tensor, "blanks V"], n_best: int
    ) -> FilledText:
        blanks = tuple(self.best(row, n_best) for row in chances)
        text, end = "", 0
        for (start, stop), (best, *_) in zip(read.spans, blanks):
            text, end = text + read.plain[end:start] + best.word, stop
        return FilledText(read.text, text + read.plain[end:], blanks)


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


def _every(words: list[Span], count: int) -> list[Span]:
    """Words, and what lies between them, token by token."""
    inside = {place for start, stop in words for place in range(start, stop)}
    return sorted([*words, *((place, place + 1) for place in set(range(count)) - inside)])


def _covered(spans: list[Span], text: str) -> Span:
    """The characters of a word, without a blank before them."""
    start, stop = min(start for start, _ in spans), max(stop for _, stop in spans)
    return start + len(text[start:stop]) - len(text[start:stop].lstrip()), stop


def _check_alone(text: str, plain: str, word: Span, blanks: list[Span]) -> None:
    """Refuse a blank that is a part of a word: the tokenizer cannot tell how long it is."""
    ends = [word[0], *(place for blank in blanks for place in blank), word[1]]
    around = "".join(plain[start:stop] for start, stop in list(pairwise(ends))[::2])
    if len(blanks) > 1 or any(map(str.isalnum, around)):
        raise DataError(
            f"{printable(text[:60])!r} has a blank within a word; a blank stands for a whole one: "
            f'put spaces around it, as in "The {BLANK} is here."'
        )

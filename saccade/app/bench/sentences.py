"""Made-up sentences of given lengths: what all contenders train on and translate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.batches import pad
from saccade.data.tokens.vocabulary import CONTROL, OURS, Vocabulary
from saccade.tasks.base import Preparation, Task
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.masked.task import MaskedLanguageModelling, MaskedSettings
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.tasks.translation.task import TranslationSettings

PAD, START, END = OURS.pad, OURS.start, OURS.end


class Padded(NamedTuple):
    """A batch as most programs hold it: rectangles, filled up on the right."""

    source: Int[Tensor, "B S"]
    target: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]

    def to(self, device: torch.device) -> "Padded":
        return Padded(*(x.to(device) for x in self))


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of rows of random words; the ends and starts are added when batches are made."""

    sources: list[Int[Tensor, " _"]]
    targets: list[Int[Tensor, " _"]]

    @classmethod
    def draw(
        cls,
        count: int,
        *,
        vocabulary: int,
        source: tuple[int, int],
        target: tuple[int, int],
        seed: int = 0,
    ) -> "SentencePairs":
        """Lengths between the two given, END or START counted."""
        rng = torch.Generator().manual_seed(seed)

        def rows(shortest: int, longest: int) -> list[Tensor]:
            lengths = torch.randint(shortest - 1, longest, (count,), generator=rng).tolist()
            return [torch.randint(len(CONTROL), vocabulary, (n,), generator=rng) for n in lengths]

        return cls(rows(*source), rows(*target))

    @property
    def source_lengths(self) -> list[int]:
        return [len(row) + 1 for row in self.sources]

    @property
    def target_lengths(self) -> list[int]:
        return [len(row) + 1 for row in self.targets]

    @property
    def tokens(self) -> int:
        """Real ones, of both sides."""
        return sum(self.source_lengths) + sum(self.target_lengths)

    @property
    def inputs(self) -> list[Int[Tensor, " _"]]:
        """Sources with their ends, as models read them."""
        return [torch.cat([row, torch.tensor([END])]) for row in self.sources]

    def padded(self) -> Padded:
        start, end = torch.tensor([START]), torch.tensor([END])
        return Padded(
            pad(self.inputs, value=PAD),
            pad([torch.cat([start, row]) for row in self.targets], value=PAD),
            pad([torch.cat([row, end]) for row in self.targets], value=PAD),
        )

    @property
    def padding(self) -> float:
        """The share of padding in the rectangles."""
        padded = self.padded()
        return 1 - self.tokens / (padded.source.numel() + padded.target.numel())


def translation_task(
    sentences: SentencePairs, *, vocabulary: int, smoothing: float = 0.0
) -> Task[Any]:
    """The task as `saccade train` makes it from a user's files, all sentences in one batch."""
    longest = max(*sentences.source_lengths, *sentences.target_lengths)
    with TemporaryDirectory() as folder:
        for split, count in (("train", None), ("valid", 1)):
            for side, rows in (("src", sentences.sources), ("tgt", sentences.targets)):
                text = "\n".join(text_of(row.tolist()) for row in rows[:count])
                Path(folder, f"{split}.{side}").write_text(text + "\n")
        settings = TranslationSettings(
            data=folder,
            source="src",
            target="tgt",
            level="words",
            vocabulary=vocabulary,
            longest=longest + 1,
            label_smoothing=smoothing,
        )
        return settings.prepare(
            Preparation(
                budget=2 * longest * len(sentences.sources),
                seed=0,
                batching="mixed",
                folder=_with_tokenizer(folder, numbered(vocabulary)),
            )
        )


def _with_tokenizer(folder: str, vocabulary: Vocabulary) -> Path:
    """A folder with an asset of the task, as a run that was started before has it."""
    for name, content in tokenizer_asset(vocabulary).items():
        Path(folder, name).write_bytes(content)
    return Path(folder)


def language_task(*, rows: int, window: int, vocabulary: int, seed: int = 0) -> Task[Any]:
    """The task as `saccade train` makes it from a text, `rows` windows to a batch."""
    rng = torch.Generator().manual_seed(seed)
    # Cutting a stream into windows leaves one out and needs one word more.
    words = torch.randint(len(CONTROL), vocabulary, ((rows + 1) * window + 1,), generator=rng)
    with TemporaryDirectory() as folder:
        Path(folder, "train.txt").write_text(text_of(words.tolist()))
        Path(folder, "valid.txt").write_text(text_of(words[: 2 * window].tolist()))
        settings = LanguageSettings(
            data=folder, unit="stream", window=window, level="words", vocabulary=vocabulary
        )
        kept = _with_tokenizer(folder, numbered(vocabulary))
        return settings.prepare(Preparation(budget=rows * window, seed=seed, folder=kept))


def masked_task(
    count: int, *, lengths: tuple[int, int], vocabulary: int, seed: int = 0
) -> MaskedLanguageModelling:
    """The task as `saccade train` makes it from a text, all sentences in one batch.

    Lengths between the two given, START and END counted.
    """
    rng = torch.Generator().manual_seed(seed)
    shortest, longest = lengths
    sizes = torch.randint(shortest - 2, longest - 1, (count,), generator=rng).tolist()
    every = [torch.randint(len(CONTROL) + 1, vocabulary, (n,), generator=rng) for n in sizes]
    with TemporaryDirectory() as folder:
        for split, rows in (("train", every), ("valid", every[:1])):
            text = "\n".join(text_of(row.tolist()) for row in rows)
            Path(folder, f"{split}.txt").write_text(text + "\n")
        settings = MaskedSettings(data=folder, window=longest, level="words", vocabulary=vocabulary)
        kept = _with_tokenizer(folder, numbered(vocabulary, masks=True))
        how = Preparation(budget=longest * count, seed=seed, batching="mixed", folder=kept)
        return settings.prepare(how)


def word(token: int) -> str:
    return f"{token:06}"


def text_of(tokens: Sequence[int]) -> str:
    return " ".join(map(word, tokens))


def numbered(size: int, *, masks: bool = False) -> Vocabulary:
    """Words that are the numbers of their tokens: all equally frequent, the alphabet decides."""
    words = text_of(range(len(CONTROL) + masks, size))
    return Vocabulary.train([words], level="words", size=size, masks=masks)

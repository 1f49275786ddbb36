"""Text to image: the words of a text and the codes of its image, one after another.

loss = 1/8 mean(−log p(word)) + 7/8 mean(−log p(code))        Ramesh et al. 2021, §2.2
"""

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from random import Random
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batching.ragged import Sequences
from saccade.data.images.counter_random import uniform
from saccade.data.tokens.bpe_dropout import BpeDropout
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError
from saccade.models.image_tokens.dalle import Dalle, DalleConfig
from saccade.models.image_tokens.dvae import Dvae
from saccade.tasks.base import (
    Deciding,
    LengthBound,
    Preparation,
    Progress,
    each_told,
    silent,
)
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.captioning.task import encode
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.epochs import batches_of
from saccade.tasks.images import digest, some_of_each
from saccade.tasks.kept_texts import KeptTexts
from saccade.tasks.reconstruction.asset import ASSET, dvae_asset
from saccade.tasks.text_to_image.data import (
    TextToImageSettings,
    image_codes,
    image_tokenizer,
    read_both_texts,
    sizes_of,
)
from saccade.tasks.tokenizer import tokenizer_asset

FRAME = 3  # start, end, and a last position that every text leaves free
DROP, PAIRS = 1 << 21, (1 << 21) + 1  # streams of draws: that hide texts, that pass over pairs
KEY = 1 << 24  # as many numbers as a draw tells apart
VALIDATED = 64  # images at a time


class TextImageBatch(NamedTuple):
    """Texts that begin with a start and end with an end, and the codes of their images."""

    words: Int[Tensor, "B T"]
    lengths: Int[Tensor, " B"]
    codes: Int[Tensor, "B cells"]
    tokens: int  # images that count

    @property
    def shape(self) -> Hashable:
        return tuple(self.words.shape), tuple(self.codes.shape)

    def to(self, device: torch.device) -> "TextImageBatch":
        words, lengths, codes = (x.to(device, non_blocking=True) for x in self[:3])
        return TextImageBatch(words, lengths, codes, self.tokens)

    def pinned(self) -> "TextImageBatch":
        words, lengths, codes = (x.pin_memory() for x in self[:3])
        return TextImageBatch(words, lengths, codes, self.tokens)


class CodedTexts(NamedTuple):
    """Images as codes; the texts about image i are `first[i]` up to `first[i + 1]`."""

    codes: Int[Tensor, "I cells"]
    texts: Sequences
    first: Int[Tensor, " boundaries"]
    digest: str

    def tokens(self, texts: Int[Tensor, " B"]) -> list[list[int]]:
        """Some of the texts."""
        flat, counts = self.texts.take(texts)
        return [some.tolist() for some in flat.split(counts.tolist())]

    def fingerprint(self) -> str:
        """Changes when a pixel does, or a word."""
        about = hashlib.sha256(self.first.numpy().tobytes()).hexdigest()
        return f"{self.digest} {self.texts.fingerprint()} {about}"


class TextToImage:
    """Implements `Task[TextImageBatch]`. An epoch sees every image once, with one of its texts."""

    deciding = Deciding("codes", label="loss per code")
    padding = 0.0

    def __init__(self, settings: TextToImageSettings, how: Preparation) -> None:
        self.settings, self.seed, self._how = settings, how.seed, how
        self.dvae = image_tokenizer(settings, how)
        train, valid = read_both_texts(settings, how.progress)
        learnt, held = (KeptTexts(side.captions, how.progress) for side in (train, valid))
        self.vocabulary = learnt.tokenizer(settings, how)
        most = how.most_words or DalleConfig.text
        self._text, bound = most, LengthBound(most - FRAME, "--model.text")
        self.report = [f"train: {train.report}", f"valid: {valid.report}"]
        self._train = self._coded(train, learnt, bound, "training texts")
        self._valid = self._coded(valid, held, bound, "validation texts")
        self.report += dict.fromkeys([*learnt.notes, *held.notes])
        rate = settings.bpe_dropout
        self._pairs = BpeDropout(self.vocabulary, rate) if rate else None
        images = torch.arange(len(self._train.codes))
        self._order = batches_of(images, max(1, how.budget), seed=how.seed)

    def _coded(
        self, read: Captioned, texts: KeptTexts, bound: LengthBound, what: str
    ) -> CodedTexts:
        coded = coded_texts(
            read,
            self.vocabulary,
            self.dvae,
            most=bound.tokens,
            none_fits=bound.none_fits(what),
            progress=self._how.progress,
            texts=texts,
        )
        self.report += bound.report(coded[1], what)
        return coded[0]

    @property
    def batches_per_epoch(self) -> int:
        return len(self._order)

    @property
    def sizes(self) -> str:
        config = self.dvae.config
        used = len(self._train.codes.unique())
        return (
            f"{len(self.vocabulary):,} tokens in the vocabulary, {config.grid} × {config.grid} "
            f"codes to an image, {used:,} of {config.codes:,} in use"
        )

    def assets(self) -> dict[str, bytes]:
        return {**tokenizer_asset(self.vocabulary), ASSET: self._dvae_asset}

    @cached_property
    def _dvae_asset(self) -> bytes:
        return dvae_asset(self.dvae)

    def fit(self, model: ModelConfig) -> ModelConfig:
        sizes: dict[str, Any] = {"vocabulary": len(self.vocabulary), **sizes_of(self.dvae)}
        return replace(model, **sizes)

    def fingerprint(self) -> str:
        coded_by = hashlib.sha256(self._dvae_asset).hexdigest()
        return f"{self._train.fingerprint()} {self._valid.fingerprint()} {coded_by}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> TextImageBatch:
        rows, counts, epoch = self._order.at(position, shard, shards)
        draws = {"seed": self.seed, "epoch": epoch}
        texts, _ = some_of_each(self._train.first, rows, 1, **draws)
        words = self._in_pieces(texts, uniform(texts, 2, **draws, stream=PAIRS))
        batch = collate(self._train.codes[rows], words, self.vocabulary, self._text)
        hidden = uniform(rows, 1, **draws, stream=DROP)[:, 0] < self.settings.dropped
        batch = without_words(batch, hidden, self.vocabulary)
        return batch if counts else batch._replace(tokens=0)

    def _in_pieces(self, texts: Int[Tensor, " B"], keys: Float[Tensor, "B 2"]) -> list[list[int]]:
        """Texts as tokens; with dropout in other pieces, unless these are too many."""
        whole = self._train.tokens(texts)
        if self._pairs is None:
            return whole
        most, found = self._text - FRAME, list[list[int]]()
        for row, (high, low) in zip(whole, (keys.double() * KEY).long().tolist()):
            pieces = self._pairs.again(row, Random(high * KEY + low))
            found.append(pieces if len(pieces) <= most else row)
        return found

    def losses(self, model: Dalle, batch: TextImageBatch) -> dict[str, Float[Tensor, ""]]:
        """Each a mean, times its weight and the number of images."""
        words, codes = text_image_losses(model, batch)
        share = self.settings.text_weight
        weighed = {"words": share * words, "codes": (1 - share) * codes}
        return {name: loss * batch.tokens for name, loss in weighed.items()}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        batches = validation_batches(self._valid, self.vocabulary, self._text, progress)
        found = mean_losses(model, batches, device)
        share = self.settings.text_weight
        return {"loss": share * found["words"] + (1 - share) * found["codes"], **found}


def coded_texts(
    read: Captioned,
    vocabulary: Vocabulary,
    dvae: Dvae,
    *,
    most: int,
    none_fits: str,
    progress: Progress = silent,
    texts: KeptTexts | None = None,
) -> tuple[CodedTexts, int]:
    """Images as codes with their texts of at most so many tokens, and how many have more; if all
    have, `none_fits` says what to do.
    """
    try:
        tokens, too_long = encode(read, vocabulary, longest=most + 1, texts=texts)
    except DataError:
        raise DataError(f"{read.report}: {none_fits}") from None
    codes = image_codes(dvae, tokens.images, progress)
    return CodedTexts(codes, tokens.captions, tokens.first, digest(tokens.images)), too_long


def text_image_losses(
    model: Dalle, batch: TextImageBatch
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """−mean log p of the words, the end among them, and of the codes."""
    hidden = model(batch.words, batch.lengths, batch.codes[:, :-1])  # (B, T + cells − 1, D)
    last = batch.words.shape[1] - 1  # from the last position of the text on codes are told
    places = torch.arange(1, last + 1, device=batch.words.device)
    labels = torch.where(places < batch.lengths[:, None], batch.words[:, 1:], IGNORED)
    words = summed_cross_entropy(
        hidden[:, :last].flatten(0, 1), model.word_output, labels.flatten()
    )
    codes = summed_cross_entropy(
        hidden[:, last:].flatten(0, 1), model.output, batch.codes.flatten()
    )
    return words / (labels != IGNORED).sum().clamp_min(1), codes / batch.codes.numel()


@torch.no_grad()
def mean_losses(
    model: Dalle, batches: Iterator[TextImageBatch], device: torch.device
) -> dict[str, float]:
    """Per word and per code, over all images of all batches."""
    sums, counts = [0.0, 0.0], [0, 0]
    for batch in batches:
        sizes = int((batch.lengths - 1).sum()), batch.codes.numel()
        for which, loss in enumerate(text_image_losses(model, batch.to(device))):
            sums[which] += float(loss) * sizes[which]
            counts[which] += sizes[which]
    return {name: sums[i] / max(1, counts[i]) for i, name in enumerate(("words", "codes"))}


def validation_batches(
    data: CodedTexts, vocabulary: Vocabulary, text: int, progress: Progress = silent
) -> Iterator[TextImageBatch]:
    """Every image with its first text."""
    for rows in each_told(torch.arange(len(data.codes)).split(VALIDATED), progress):
        yield collate(data.codes[rows], data.tokens(data.first[rows]), vocabulary, text)


def collate(
    codes: Int[Tensor, "B cells"], texts: list[list[int]], vocabulary: Vocabulary, text: int
) -> TextImageBatch:
    """The codes of some images, and a text to each."""
    words, lengths = framed_words(texts, vocabulary, text)
    return TextImageBatch(words, lengths, codes.long(), len(codes))


def framed_words(
    rows: list[list[int]], vocabulary: Vocabulary, text: int
) -> tuple[Int[Tensor, "B T"], Int[Tensor, " B"]]:
    """Texts between a start and an end, and how long they are with these."""
    whole = [[vocabulary.start, *row, vocabulary.end] for row in rows]
    lengths = torch.tensor([len(row) for row in whole])
    words = torch.zeros(len(rows), text, dtype=torch.long)
    words[torch.arange(text) < lengths[:, None]] = torch.tensor([*chain.from_iterable(whole)])
    return words, lengths


def without_words(batch: TextImageBatch, which: Tensor, vocabulary: Vocabulary) -> TextImageBatch:
    """The texts of some say nothing: a start and an end."""
    nothing, lengths = framed_words([[]], vocabulary, batch.words.shape[1])
    words = torch.where(which[:, None], nothing, batch.words)
    return batch._replace(words=words, lengths=torch.where(which, lengths, batch.lengths))

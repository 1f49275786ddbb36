"""Using a trained captioner: say what is in an image, and where it looked for each word."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import Trace, looking
from saccade.attention.look.watching import sites
from saccade.data.batching.batches import pad
from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.lattice import Lattice
from saccade.data.images.square import fit_square
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import word_spans
from saccade.decode.engine import Decoding, decode
from saccade.decode.protocol import Hypothesis, OnStep
from saccade.errors import ConfigError
from saccade.metrics.alignment import merge_rows
from saccade.models.caption.captioner import Captioner
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.decoder_cache import DecoderCache
from saccade.tasks.teacher_forced import first_queries
from saccade.tasks.translation.translator import renumbered

BATCH = 64  # images at a time
GPU_BATCH = 512
EVERY_CELL = Keep(map_side=0, dense=1 << 14)


@dataclass(frozen=True)
class WrittenCaption:
    """One image, captioned. `others` are the rest of the n-best list.

    `cells` says how the columns of every attention lie on the image.
    """

    text: str
    score: float
    log_probability: float
    finished: bool
    attention: dict[str, Glance]
    tokens: list[int]
    cells: Axis | None = None
    others: tuple["WrittenCaption", ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid that was looked at; none if nobody watched."""
        return (0, 0) if self.cells is None else (self.cells.height, self.cells.width)


class ImageCaptioner:
    """A model, its vocabulary, and how images are made to fit."""

    def __init__(
        self, model: nn.Module, vocabulary: Vocabulary, settings: CaptioningSettings
    ) -> None:
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device
        self.decoders = DecoderCache(self.model)

    @property
    def batch(self) -> int:
        """How many images are captioned at a time."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    @property
    def looks(self) -> bool:
        """Whether it looks at the image again while it speaks."""
        return any(name.endswith("cross") for name in sites(self.model))

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 size size"]:
        """An image upright and square, just as those that were learnt from.

        `name` is for messages, where the image has none of its own.
        """
        size = self.settings.image
        return fit_square(pixels_of(image, name=name, short=2 * size), size, self.settings.fit)

    def caption(
        self,
        images: UInt8[Tensor, "B 3 H W"],
        how: Decoding,
        *,
        look: bool = False,
        streams: list[int] | None = None,
        on_step: OnStep | None = None,
    ) -> Iterator[tuple[int, WrittenCaption]]:
        """Captions with the number of their image, batch by batch as they are ready.

        What an image is called does not depend on its batch. `on_step` hears of every step and
        may give images up, which then have no caption.
        """
        if look:
            self._check()
        for rows in torch.arange(len(images)).split(self.batch):
            tell = None if on_step is None else renumbered(on_step, rows.tolist())
            draws = [row if streams is None else streams[row] for row in rows.tolist()]
            found = self._decode(images[rows], how, streams=draws, on_step=tell)
            if look:
                found = self._watched(images[rows], found)
            for row, written in zip(rows.tolist(), found):
                if written is not None:
                    yield row, written

    def read_captions(
        self, images: UInt8[Tensor, "B 3 H W"], captions: list[str]
    ) -> Iterator[tuple[int, Float[Tensor, "words h w"], Lattice]]:
        """Where attention falls for each word of given captions, one to an image."""
        said = self.vocabulary.encode_all(captions)
        for rows in torch.arange(len(captions)).split(self.batch):
            trace = self._follow(images[rows], [said[row] for row in rows.tolist()])
            seen = _mean([weights.cpu() for weights in trace.weights().values()])
            cells = _cells(trace)
            lattice = cells.lattice
            for i, row in enumerate(rows.tolist()):
                pieces = self.vocabulary.spans(captions[row])
                yield row, _on_picture(seen[i], cells, captions[row], pieces), lattice

    def looked(self, image: UInt8[Tensor, "3 H W"], one: WrittenCaption) -> WrittenCaption:
        """The same caption with its attention, also if nobody watched it being made."""
        if one.attention:
            return one
        (seen,) = self._watched(image[None], [replace(one, others=())])
        assert seen is not None
        return replace(seen, others=one.others)

    def _watched(
        self, images: UInt8[Tensor, "B 3 H W"], found: list[WrittenCaption | None]
    ) -> list[WrittenCaption | None]:
        """Captions with their attention: the model is made to say these very words again.

        So the search stays what it is when nobody looks, and only what it found is watched.
        """
        every = [
            (row, one)
            for row, best in enumerate(found)
            if best is not None
            for one in (best, *best.others)
        ]
        if not every:
            return found
        said = [one.tokens if one.finished else one.tokens[:-1] for _, one in every]
        trace = self._follow(images[[row for row, _ in every]], said)
        glances = {site: trace[site].cpu() for site in trace}
        again: dict[int, list[WrittenCaption]] = {}
        for i, (row, one) in enumerate(every):
            seen = {
                site: first_queries(glance, i, len(said[i]) + 1) for site, glance in glances.items()
            }
            again.setdefault(row, []).append(replace(one, attention=seen, cells=_cells(trace)))
        return [
            replace(again[row][0], others=tuple(again[row][1:])) if row in again else None
            for row in range(len(found))
        ]

    @torch.inference_mode()
    def _follow(self, images: UInt8[Tensor, "B 3 H W"], said: list[list[int]]) -> Trace:
        """Make the model say given words; a row for each, and one for what comes after."""
        self._check()
        model: Any = self.model
        tokens = [torch.tensor([self.vocabulary.start, *words]) for words in said]
        written = pad(tokens, value=self.vocabulary.pad).to(self.device)  # (B, T)
        with looking(model, keep=EVERY_CELL, only="cross") as trace:
            model.teacher_forced(images.to(self.device), written)
        return trace

    def words_looked_at(self, one: WrittenCaption) -> Float[Tensor, "words h w"]:
        """Where attention fell for each word, averaged over layers and heads that look."""
        if one.cells is None:
            raise ConfigError("nobody watched this caption being made; see `looked`")
        seen = _mean([weights[None] for weights in self.weights(one).values()])[0]
        return _on_picture(seen, one.cells, one.text, self.vocabulary.spans_of(one.tokens))

    @staticmethod
    def weights(one: WrittenCaption) -> dict[str, Float[Tensor, "N T S"]]:
        """Every weight between the cells of the image and the tokens, by site."""
        kept = {site: glance.weights for site, glance in one.attention.items()}
        return {site: weights[0] for site, weights in kept.items() if weights is not None}

    def limits(self, images: int) -> Int[Tensor, " B"]:
        """How many tokens a caption may have: as many as those that were learnt from."""
        assert isinstance(self.model, Captioner)
        longest = self.model.longest or self.settings.longest
        return torch.full((images,), min(longest, self.settings.longest))

    def _decode(
        self,
        images: UInt8[Tensor, "B 3 H W"],
        how: Decoding,
        *,
        streams: list[int],
        on_step: OnStep | None,
    ) -> list[WrittenCaption | None]:
        model: Any = self.decoders.decoder(how.precision)
        first = torch.full((len(images),), self.vocabulary.start, device=self.device)
        with torch.inference_mode():
            state = model.start(images.to(self.device))
        limits, captured = self.limits(len(images)), self.decoders.captured(how.precision)
        ends: dict[str, Any] = {"limits": limits, "end": self.vocabulary.end}
        more: dict[str, Any] = {"streams": streams, "on_step": on_step, "captured": captured}
        found = decode(model, state, first, **ends, how=how, **more)
        return [self.written(some) if some else None for some in found]

    def written(self, hypotheses: list[Hypothesis]) -> WrittenCaption:
        """What was found for an image, in words."""
        first, *others = (
            WrittenCaption(
                text=self.vocabulary.decode(one.tokens),
                score=one.score,
                log_probability=one.log_probability,
                finished=one.finished,
                attention={},
                tokens=one.tokens,
            )
            for one in hypotheses
        )
        return replace(first, others=tuple(others))

    def _check(self) -> None:
        if not self.looks:
            raise ConfigError(
                f"{type(self.model).__name__} does not look at the image while it speaks: it has "
                "no attention to look at"
            )


def _cells(trace: Trace) -> Axis:
    """How the columns lie on the image: the same at every site that looks at it."""
    return next(columns for _, columns in trace.axes.values())


def _mean(by_site: list[Float[Tensor, "B N T S"]]) -> Float[Tensor, "B T S"]:
    """The mean over heads and sites."""
    return torch.stack([weights.mean(dim=1) for weights in by_site]).mean(dim=0)


def _on_picture(
    weights: Float[Tensor, "T S"], cells: Axis, text: str, pieces: list[tuple[int, int]]
) -> Float[Tensor, "words h w"]:
    """By words, on the grid alone: what falls on other positions is left out."""
    words = word_spans(text, pieces)
    by_word = merge_rows(weights[:, cells.special :], pieces=pieces, words=words)
    return by_word.unflatten(1, (cells.height, cells.width))

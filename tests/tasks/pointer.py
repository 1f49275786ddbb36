"""A describer that says what it was told to, and looks where it was told to."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.data.images.lattice import Lattice
from saccade.data.tokens.words import word_spans, words
from saccade.decode.engine import Decoding
from saccade.metrics.pointing import widened
from saccade.tasks.captioning.captioner import ImageCaptioner, WrittenCaption
from saccade.tasks.captioning.data import Captioned, CaptioningSettings
from saccade.tasks.captioning.pointing import meaning

CELLS = 8
Saying = Callable[[int], str]


class Pointer(ImageCaptioner):
    """Picture by picture it says `saying(number)`, looking `at` things or `away` from them."""

    def __init__(
        self,
        told: Captioned,
        settings: CaptioningSettings,
        saying: Saying,
        *,
        well: bool = True,
        first: float = 0.5,
    ) -> None:
        self.grid = Axis("source", "grid", CELLS, CELLS, first=first)
        self.told, self.settings, self.saying, self.well = told, settings, saying, well
        self.device = torch.device("cpu")
        self.vocabulary: Any = SimpleNamespace(
            spans=word_spans, spans_of=lambda tokens: word_spans(saying(tokens[0]))
        )
        self.watched = 0
        every = told.images[torch.arange(len(told))]
        self._number = {picture.numpy().tobytes(): i for i, picture in enumerate(every)}

    @property
    def looks(self) -> bool:
        return True

    def caption(
        self, pictures: UInt8[Tensor, "B 3 H W"], how: Decoding, *, look: bool = False, **_: Any
    ) -> Iterator[tuple[int, WrittenCaption]]:
        self.watched += look
        for row in reversed(range(len(pictures))):  # in no order, as batches come
            number = self._number[pictures[row].numpy().tobytes()]
            yield row, WrittenCaption(self.saying(number), 0.0, 0.0, True, {}, [number], self.grid)

    def words_looked_at(self, one: WrittenCaption) -> Float[Tensor, "words h w"]:
        return self._maps(one.tokens[0], one.text)

    def read_captions(
        self, pictures: UInt8[Tensor, "B 3 H W"], captions: list[str]
    ) -> Iterator[tuple[int, Float[Tensor, "words h w"], Lattice]]:
        for row, caption in enumerate(captions):
            number = self._number[pictures[row].numpy().tobytes()]
            yield row, self._maps(number, caption), self.grid.lattice

    def _maps(self, number: int, caption: str) -> Float[Tensor, "words h w"]:
        said, meant = words(caption), meaning(self.told, number, self.settings)
        maps = torch.full((len(said), CELLS, CELLS), 1e-3)
        for place in range(len(said)):
            region = meant(said, place)
            if region is not None:
                side = region.box.shape[0] // CELLS
                start = int(self.grid.first * side)
                wanted = region.box if self.well else ~widened(region.box[None])[0]
                cells = wanted[start::side, start::side].nonzero()
                maps[place, *cells[len(cells) // 2]] = 1.0
        return maps


class Blind(Pointer):
    """One that does not look."""

    @property
    def looks(self) -> bool:
        return False

"""Using a trained text-to-image model: prompts in, codes drawn one after another, images out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn

from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.square import fit_square
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.decode.captured import CapturedDecoder
from saccade.decode.engine import Decoding, decode
from saccade.decode.guided import Guided, GuidedState
from saccade.decode.protocol import OnStep
from saccade.errors import ConfigError, DataError
from saccade.models.image_tokens.dalle import Dalle
from saccade.models.image_tokens.dvae import Dvae
from saccade.printable import printable
from saccade.tasks.base import Progress, silent
from saccade.tasks.decoder_cache import DecoderCache
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.tasks.text_to_image.task import FRAME, framed_words

BATCH, GPU_BATCH = 16, 64  # images that are drawn together


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How images are drawn.

    Args:
        temperature: below 1 draws more carefully, above 1 more boldly.
        top_k: draw only among this many best codes; 0 among all.
        top_p: draw only among the best codes that together reach this probability.
        guidance: 1 draws as the model says; more follows the text more closely.
        seed: of the draws.
        capture: on a GPU, capture the step once and replay it.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    guidance: float = 1.0
    seed: int = 0
    capture: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.guidance < float("inf"):
            raise ConfigError(f"guidance={self.guidance} must be 0 or more; 1 leaves it out")
        _ = self.decoding  # refuses what cannot be

    @property
    def decoding(self) -> Decoding:
        """The same for any decoder."""
        names = ("temperature", "top_k", "top_p", "seed", "capture")
        return Decoding(beam=1, sample=True, **{name: vars(self)[name] for name in names})


class Drawn(NamedTuple):
    """An image as codes, row by row, and how probable these are given the text."""

    codes: list[int]
    log_probability: float


class ImageDrawer:
    """A text-to-image model, the tokenizer of its texts and that of its images."""

    def __init__(
        self, model: nn.Module, dvae: Dvae, vocabulary: Vocabulary, settings: TextToImageSettings
    ) -> None:
        assert isinstance(model, Dalle)
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device
        self.dvae = dvae.eval().to(self.device)
        self.decoders = DecoderCache(self.model)
        self._guided: tuple[Guided, CapturedDecoder | None] | None = None

    @property
    def batch(self) -> int:
        """How many images are drawn together."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    def read(self, prompt: str) -> list[int]:
        """A prompt as tokens; what is empty or too long is refused."""
        tokens, most = self.vocabulary.encode(prompt), self.model.config.text - FRAME
        if not tokens:
            raise DataError(f"{printable(prompt[:60])!r} has no word to draw; write one")
        if len(tokens) > most:
            raise DataError(
                f"the prompt has {len(tokens)} tokens, but the model reads {most}; shorten it"
            )
        return tokens

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 side side"]:
        """An image upright and square, just as those that were learnt from."""
        side = self.settings.image
        return fit_square(pixels_of(image, name=name, short=2 * side), side, self.settings.fit)

    def upper_part(self, image: UInt8[Tensor, "3 side side"], rows: int) -> Int[Tensor, " codes"]:
        """The codes of an image's upper rows of cells, for the rest to be drawn."""
        grid = self.model.config.grid
        if not 1 <= rows < grid:
            raise ConfigError(f"rows={rows} must be from 1 to {grid - 1}: there are {grid} in all")
        return self.dvae.codes(image[None].to(self.device))[0, : rows * grid]

    def text_tokens(self, prompts: Sequence[str]) -> Int[Tensor, "B T"]:
        """Prompts as the model reads them, filled up; "" says nothing."""
        rows = [self.read(prompt) if prompt else [] for prompt in prompts]
        words, lengths = framed_words(rows, self.vocabulary, self.model.config.text)
        return self.model.text_tokens(words, lengths).to(self.device)

    @torch.inference_mode()
    def draw(
        self,
        prompts: Sequence[str],
        how: Drawing,
        *,
        begun: Int[Tensor, " codes"] | None = None,
        streams: Sequence[int] | None = None,
        on_step: OnStep | None = None,
        progress: Progress = silent,
    ) -> list[Drawn]:
        """An image for each prompt, which may be there several times; `begun` is its upper part.

        Images of the same seed and stream come from the same draws, whatever is drawn beside them.
        """
        found, numbers = list[Drawn](), list(streams or range(len(prompts)))
        for first in range(0, len(prompts), self.batch):
            some = slice(first, first + self.batch)
            found += self._some(prompts[some], how, begun, numbers[some], on_step)
            progress(len(found), len(prompts))
        return found

    def _some(
        self,
        prompts: Sequence[str],
        how: Drawing,
        begun: Int[Tensor, " codes"] | None,
        streams: Sequence[int],
        on_step: OnStep | None,
    ) -> list[Drawn]:
        guided = how.guidance != 1
        both = [one for prompt in prompts for one in ((prompt, "") if guided else (prompt,))]
        tokens = self.text_tokens(both)
        known = [] if begun is None else begun.tolist()
        if begun is not None:
            tokens = torch.cat([tokens, begun.expand(len(tokens), -1)], dim=1)
        model, captured = self._decoder(how)
        inner = model.model if guided else model
        _, state = inner.read(tokens[:, :-1], inner.start(len(tokens)))
        first = tokens[:, -1][:: 2 if guided else 1]
        cells = self.model.config.cells
        hypotheses = decode(
            model,
            GuidedState(state) if guided else state,
            first,
            limits=torch.full((len(prompts),), cells - len(known)),
            end=-1,  # an image has as many codes as any other
            how=how.decoding,
            streams=streams,
            on_step=on_step,
            captured=captured,
        )
        return [Drawn([*known, *one.tokens], one.log_probability) for (one,) in hypotheses]

    def _decoder(self, how: Drawing) -> tuple[Any, CapturedDecoder | None]:
        """What decodes, and its captured steps where there is a GPU."""
        precision = how.decoding.precision
        model, captured = self.decoders.decoder(precision), self.decoders.captured(precision)
        if how.guidance == 1:
            return model, captured
        if self._guided is None or self._guided[0].model is not model:
            guided = Guided(model, torch.ones((), device=self.device))
            self._guided = guided, None if captured is None else CapturedDecoder(guided)
        self._guided[0].scale.fill_(how.guidance)
        return self._guided

    @torch.inference_mode()
    def images(self, drawn: Sequence[Drawn]) -> UInt8[Tensor, "B 3 H W"]:
        """What codes look like."""
        codes = torch.tensor([one.codes for one in drawn], device=self.device)
        return torch.cat([self.dvae.decode(some) for some in codes.split(self.batch)]).cpu()

"""Using a trained translator: translate, and say where it looked."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.attention.look.watching import sites
from saccade.data.batches import pad
from saccade.data.ragged import Ragged
from saccade.data.vocabulary import PAD, START, Vocabulary
from saccade.data.words import word_spans
from saccade.decode.engine import Decoding, decode
from saccade.decode.protocol import Candidate, Hypothesis, OnStep
from saccade.errors import DataError
from saccade.metrics.alignment import merge_pieces
from saccade.tasks.decoder_cache import Ready
from saccade.tasks.translation.task import collate, encode_source

BATCH_TOKENS = 4096  # of source, times the beam
GPU_BATCH_TOKENS = 65536


@dataclass(frozen=True)
class Translated:
    """One sentence, translated. `others` are the rest of the n-best list."""

    source: str
    text: str
    score: float
    log_probability: float
    finished: bool
    attention: dict[str, Glance]
    tokens: list[int]
    others: tuple["Translated", ...] = ()


class Translator:
    """A model and its vocabulary."""

    def __init__(self, model: nn.Module, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model.eval(), vocabulary
        self.device = next(model.parameters()).device
        self.ready = Ready(self.model)

    @property
    def _batch_tokens(self) -> int:
        return GPU_BATCH_TOKENS if self.device.type == "cuda" else BATCH_TOKENS

    @property
    def looks(self) -> bool:
        """Whether there is any attention to the source."""
        return any(name.endswith("cross") for name in sites(self.model))

    def translate(
        self,
        texts: list[str],
        how: Decoding,
        *,
        look: bool = False,
        on_step: OnStep | None = None,
    ) -> Iterator[tuple[int, Translated]]:
        """Translations with the number of their text, batch by batch as they are ready.

        Batches hold texts of similar length; what a text becomes does not depend on its batch.
        `on_step` hears of every step and may give texts up, which then have no translation.
        """
        sources = [self.encode(text) for text in texts]
        for rows in _batches([len(source) for source in sources], self._batch_tokens // how.beam):
            tell = None if on_step is None else renumbered(on_step, rows)
            found = self._decode([sources[row] for row in rows], how, look=look, on_step=tell)
            for row, hypotheses in zip(rows, found):
                if hypotheses:
                    yield row, self.translated(texts[row], sources[row], hypotheses)

    @torch.inference_mode()
    def align(
        self, pairs: list[tuple[str, str]]
    ) -> Iterator[tuple[int, dict[str, Float[Tensor, "words_out words_in"]]]]:
        """Attention between the words of given translations, per site, averaged over heads."""
        sources, targets = (self.vocabulary.encode_all([p[side] for p in pairs]) for side in (0, 1))
        encoded = Ragged.of(sources), Ragged.of(targets)
        sizes = [len(source) + len(target) for source, target in zip(sources, targets)]
        for rows in _batches(sizes, BATCH_TOKENS):
            batch = collate(encoded, torch.tensor(rows)).to(self.device)
            source, target = batch.source.padded(), batch.target.padded()
            keep = Keep(map_side=0, top=0, dense=max(source.shape[1], target.shape[1]))
            with looking(self.model, keep=keep, only="cross") as trace:
                self.model(source, batch.source.lengths, target)
                seen = {site: w.mean(dim=1).cpu() for site, w in trace.weights().items()}
            for i, row in enumerate(rows):
                pieces = self.vocabulary.spans(pairs[row][1])
                yield (
                    row,
                    {
                        site: self._between_words(weights[i], *pairs[row], pieces)
                        for site, weights in seen.items()
                    },
                )

    def words_looked_at(self, one: Translated) -> Float[Tensor, "words_out words_in"]:
        """Attention between words, averaged over the layers and heads that look at the source."""
        weights = torch.stack([w.mean(dim=0) for w in self.weights(one).values()]).mean(dim=0)
        return self._between_words(
            weights, one.source, one.text, self.vocabulary.spans_of(one.tokens)
        )

    @staticmethod
    def weights(one: Translated) -> dict[str, Float[Tensor, "N T S"]]:
        """Every weight between the source's tokens and the target's, by site."""
        kept = {site: glance.weights for site, glance in one.attention.items()}
        return {site: weights[0] for site, weights in kept.items() if weights is not None}

    def _between_words(
        self, weights: Tensor, source: str, target: str, target_pieces: list[tuple[int, int]]
    ) -> Tensor:
        return merge_pieces(
            weights,
            source_pieces=self.vocabulary.spans(source),
            target_pieces=target_pieces,
            source_words=word_spans(source),
            target_words=word_spans(target),
        )

    def _decode(
        self, sources: list[Tensor], how: Decoding, *, look: bool, on_step: OnStep | None = None
    ) -> list[list[Hypothesis]]:
        # Only the model itself can be looked into.
        model: Any = self.model if look else self.ready.decoder(how.precision)
        captured = None if look else self.ready.captured(how.precision)
        lengths = torch.tensor([source.numel() for source in sources])
        first = torch.full((len(sources),), START, device=self.device)
        limits = self.limits(lengths)
        with torch.inference_mode():
            state = model.start(pad(sources, value=PAD).to(self.device), lengths)
        longest = int(max(lengths.max(), limits.max()))
        keep = Keep(map_side=0, dense=longest)
        watch: dict[str, Any] = {"on_step": on_step, "captured": captured}
        with looking(model, keep=keep, only="cross") if look else nullcontext() as trace:
            return decode(model, state, first, limits=limits, how=how, trace=trace, **watch)

    def translated(self, text: str, source: Tensor, hypotheses: list[Hypothesis]) -> Translated:
        """What was found for a sentence, in words."""
        first, *others = (self._one(text, source, hypothesis) for hypothesis in hypotheses)
        return replace(first, others=tuple(others))

    def _one(self, text: str, source: Tensor, hypothesis: Hypothesis) -> Translated:
        size = len(source)
        return Translated(
            source=text,
            text=self.vocabulary.decode(hypothesis.tokens),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            finished=hypothesis.finished,
            attention={s: glance.narrowed(size) for s, glance in hypothesis.attention.items()},
            tokens=hypothesis.tokens,
        )

    def limits(self, lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """How long translations may become: a sentence's own, so that batch mates do not matter."""
        longest = getattr(self.model.config, "longest", None)
        limits = lengths * 2 + 20
        return limits if longest is None else limits.clamp(max=longest)

    def encode(self, text: str) -> Int[Tensor, " S"]:
        """A sentence to be translated, with its end marked; refuses what is none."""
        if not text.strip():
            raise DataError("there is nothing to translate in an empty text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{text!r} is not Unicode text: {error.reason}") from error
        return encode_source(self.vocabulary, text)


def renumbered(on_step: OnStep, rows: list[int]) -> OnStep:
    """Speak of texts, where the search speaks of rows of its batch."""

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        given_up = on_step({rows[i]: candidates for i, candidates in step.items()})
        return [i for i, row in enumerate(rows) if row in given_up]

    return tell


def _batches(sizes: list[int], budget: int) -> Iterator[list[int]]:
    """Rows of similar size, longest first, at most `budget` tokens together (at least one row)."""
    rows: list[int] = []
    for row in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        if rows and (len(rows) + 1) * sizes[rows[0]] > budget:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows

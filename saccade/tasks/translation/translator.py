"""Using a trained translator: translate, and say where it looked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.attention.look.watching import sites
from saccade.data.batching.batches import pad
from saccade.data.batching.ragged import Ragged
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import word_spans
from saccade.decode.engine import Decoding, decode
from saccade.decode.protocol import Candidate, Hypothesis, OnStep
from saccade.errors import DataError
from saccade.metrics.alignment import merge_pieces
from saccade.models.protocol import TranslationNetwork
from saccade.tasks.decoder_cache import DecoderCache
from saccade.tasks.teacher_forced import first_queries
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
        self.decoders = DecoderCache(self.model)

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
        streams: list[int] | None = None,
        on_step: OnStep | None = None,
    ) -> Iterator[tuple[int, Translated]]:
        """Translations with the number of their text, batch by batch as they are ready.

        Batches hold texts of similar length; what a text becomes does not depend on its batch.
        To `look` changes nothing of the search: what it found is said again under a watcher.
        Where words are drawn, text i draws from stream i unless `streams` says otherwise.
        `on_step` hears of every step and may give texts up, which then have no translation.
        """
        sources = [self.encode(text) for text in texts]
        for rows in _batches([len(source) for source in sources], self._batch_tokens // how.beam):
            tell = None if on_step is None else renumbered(on_step, rows)
            some = [sources[row] for row in rows]
            draws = rows if streams is None else [streams[row] for row in rows]
            found = self._decode(some, how, streams=draws, on_step=tell)
            every = [(one.tokens, one.finished) for some_found in found for one in some_found]
            owners = [some[i] for i, hypotheses in enumerate(found) for _ in hypotheses]
            attention = iter(self._watch(owners, every) if look else [{} for _ in every])
            for row, hypotheses in zip(rows, found):
                if hypotheses:
                    looks = [next(attention) for _ in hypotheses]
                    yield row, self.translated(texts[row], hypotheses, looks)

    @torch.inference_mode()
    def align(
        self, pairs: list[tuple[str, str]]
    ) -> Iterator[tuple[int, dict[str, Float[Tensor, "words_out words_in"]]]]:
        """Attention between the words of given translations, per site, averaged over heads."""
        sources, targets = (self.vocabulary.encode_all([p[side] for p in pairs]) for side in (0, 1))
        encoded = Ragged.of(sources), Ragged.of(targets)
        sizes = [len(source) + len(target) for source, target in zip(sources, targets)]
        for rows in _batches(sizes, BATCH_TOKENS):
            special = self.vocabulary.special
            batch = collate(encoded, torch.tensor(rows), special).to(self.device)
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

    def watched(self, one: Translated) -> Translated:
        """The same translation with its attention, also if nobody watched it being made."""
        if one.attention:
            return one
        source = self.encode(one.source)
        (seen,) = self._watch([source], [(one.tokens, one.finished)])
        return replace(one, attention=seen)

    @property
    def longest(self) -> int | None:
        """How many tokens a sentence may have."""
        assert isinstance(self.model, TranslationNetwork)
        return self.model.longest

    def fitting(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those whose sides, with an end or a start, have as many tokens as the model may see."""
        longest = self.longest
        if longest is None:
            return pairs
        sides = [self.vocabulary.encode_all(list(side)) for side in zip(*pairs)]
        return [
            pair
            for pair, source, target in zip(pairs, *sides)
            if max(len(source), len(target)) < longest
        ]

    def _between_words(
        self, weights: Tensor, source: str, target: str, target_pieces: list[tuple[int, int]]
    ) -> Tensor:
        source_pieces = self.vocabulary.spans(source)
        return merge_pieces(
            weights,
            source_pieces=source_pieces,
            target_pieces=target_pieces,
            source_words=word_spans(source, source_pieces),
            target_words=word_spans(target, target_pieces),
        )

    def _decode(
        self,
        sources: list[Tensor],
        how: Decoding,
        *,
        streams: list[int] | None = None,
        on_step: OnStep | None = None,
    ) -> list[list[Hypothesis]]:
        model: Any = self.decoders.decoder(how.precision)
        lengths = torch.tensor([source.numel() for source in sources])
        first = torch.full((len(sources),), self.vocabulary.start, device=self.device)
        with torch.inference_mode():
            padded = pad(sources, value=self.vocabulary.pad).to(self.device)
            state = model.start(padded, lengths)
        captured = self.decoders.captured(how.precision)
        ends: dict[str, Any] = {"limits": self.limits(lengths), "end": self.vocabulary.end}
        more: dict[str, Any] = {"streams": streams, "on_step": on_step, "captured": captured}
        return decode(model, state, first, **ends, how=how, **more)

    @torch.inference_mode()
    def _watch(
        self, sources: list[Tensor], found: list[tuple[list[int], bool]]
    ) -> list[dict[str, Glance]]:
        """Where the model looks in the source while it is made to say what the search found."""
        said = [tokens if finished else tokens[:-1] for tokens, finished in found]
        if not said:
            return []
        model: Any = self.model
        lengths = torch.tensor([len(source) for source in sources])
        source = pad(sources, value=self.vocabulary.pad).to(self.device)
        starts = [torch.tensor([self.vocabulary.start, *words]) for words in said]
        target = pad(starts, value=self.vocabulary.pad).to(self.device)
        keep = Keep(map_side=0, dense=max(source.shape[1], target.shape[1]))
        with looking(model, keep=keep, only="cross") as trace:
            model(source, lengths, target)
            seen = {site: trace[site].cpu() for site in trace}
        return [
            {
                site: first_queries(glance, i, len(words) + 1).narrowed(int(lengths[i]))
                for site, glance in seen.items()
            }
            for i, words in enumerate(said)
        ]

    def translated(
        self,
        text: str,
        hypotheses: list[Hypothesis],
        attention: list[dict[str, Glance]] | None = None,
    ) -> Translated:
        """What was found for a sentence, in words."""
        best, *others = (
            Translated(
                source=text,
                text=self.vocabulary.decode(one.tokens),
                score=one.score,
                log_probability=one.log_probability,
                finished=one.finished,
                attention=looks,
                tokens=one.tokens,
            )
            for one, looks in zip(hypotheses, attention or [{}] * len(hypotheses))
        )
        return replace(best, others=tuple(others))

    def limits(self, lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """How long translations may become: a sentence's own, so that batch mates do not matter."""
        longest, limits = self.longest, lengths * 2 + 20
        return limits if longest is None else limits.clamp(max=longest)

    def encode(self, text: str) -> Int[Tensor, " S"]:
        """A sentence to be translated, with its end marked; refuses what is none."""
        if not text.strip():
            raise DataError("there is nothing to translate in an empty text")
        tokens, longest = encode_source(self.vocabulary, text), self.longest
        if longest is not None and len(tokens) > longest:
            raise DataError(
                f"the text has {len(tokens)} tokens, but the model sees {longest}; shorten it"
            )
        return tokens


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

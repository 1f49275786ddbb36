"""Using a trained language model: go on from a prompt, and say how probable a text is."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from saccade.data.batching.batches import pad
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.decode.engine import Decoding, decode
from saccade.decode.protocol import Hypothesis, OnStep
from saccade.errors import ConfigError, DataError
from saccade.models.protocol import LanguageNetwork
from saccade.tasks.decoder_cache import DecoderCache
from saccade.tasks.language.task import LanguageSettings


@dataclass(frozen=True)
class Generated:
    """A prompt and what the model wrote after it; `text` and `tokens` are both.

    `others` are the rest of the n-best list.
    """

    prompt: str
    text: str
    score: float
    log_probability: float
    finished: bool
    tokens: list[int]
    others: tuple["Generated", ...] = ()


class Writer:
    """A language model and its vocabulary."""

    def __init__(
        self, model: nn.Module, vocabulary: Vocabulary, settings: LanguageSettings
    ) -> None:
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device
        self.decoders = DecoderCache(self.model)

    def write(
        self,
        prompt: str,
        how: Decoding,
        *,
        count: int = 1,
        most_tokens: int = 100,
        on_step: OnStep | None = None,
    ) -> list[Generated]:
        """Continue a prompt `count` times; an empty prompt starts a text.

        `on_step` hears of every step and may give texts up: they end there; a beam's are gone.
        """
        for name, value in (("count", count), ("most_tokens", most_tokens)):
            if value < 1:
                raise ConfigError(f"{name}={value} must be at least 1")
        tokens = self.begin(prompt)
        model: Any = self.decoders.decoder(how.precision)
        most = self.most(tokens, most_tokens)
        with torch.inference_mode():
            state = model.start(count)
            if len(tokens) > 1:
                prompts = torch.tensor([tokens[:-1]], device=self.device).expand(count, -1)
                _, state = model.read(prompts, state)
        first = torch.full((count,), tokens[-1], device=self.device)
        ends: dict[str, Any] = {"limits": torch.full((count,), most), "end": self.vocabulary.end}
        captured = self.decoders.captured(how.precision)
        found = decode(model, state, first, **ends, how=how, on_step=on_step, captured=captured)
        return [self.generated(prompt, tokens, hypotheses) for hypotheses in found if hypotheses]

    @property
    def reach(self) -> int | None:
        """How many tokens back the model sees."""
        assert isinstance(self.model, LanguageNetwork)
        return self.model.reach

    def most(self, tokens: list[int], most_tokens: int) -> int:
        """How many words may follow a prompt before the model cannot see all of it."""
        reach = self.reach
        most = most_tokens if reach is None else min(most_tokens, reach - len(tokens) + 1)
        if most < 1:
            raise DataError(
                f"the prompt has {len(tokens)} tokens, but the model sees {reach}; shorten it"
            )
        return most

    def begin(self, prompt: str) -> list[int]:
        """The tokens to go on from; lines begin with a start, a stream as after an end."""
        vocabulary = self.vocabulary
        opening = vocabulary.start if self.settings.unit == "lines" else vocabulary.end
        tokens = self.vocabulary.encode(prompt) if prompt else []
        if self.settings.unit == "stream" and tokens:
            return tokens
        return [opening, *tokens]

    def generated(self, prompt: str, tokens: list[int], hypotheses: list[Hypothesis]) -> Generated:
        """What was found after a prompt, in words."""
        opening = 1 if self.settings.unit == "lines" or tokens[0] == self.vocabulary.end else 0
        best, *others = (
            Generated(
                prompt,
                self.vocabulary.decode([*tokens[opening:], *one.tokens]),
                one.score,
                one.log_probability,
                one.finished,
                [*tokens, *one.tokens],
            )
            for one in hypotheses
        )
        return replace(best, others=tuple(others))

    def without_feedback(self, count: int, *, seed: int) -> list[str]:
        """Draw each word from the model's distribution at its place, but do not tell it the word.

        Written with feed-back, then the words of each place are exchanged between the sentences:
        every word stays as probable where it stands, and nothing ties it to its neighbours.
        """
        how = Decoding(sample=True, beam=1, seed=seed)
        model: Any = self.model
        end = self.vocabulary.end
        first = torch.full((count,), self.begin("")[0], device=self.device)
        limits = torch.full((count,), 50)
        found = decode(model, model.start(count), first, limits=limits, end=end, how=how)
        words = pad([torch.tensor([*one[0].tokens, end]) for one in found], value=end)  # (n, T)
        rng = torch.Generator().manual_seed(seed)
        mixed = torch.stack([w[torch.randperm(count, generator=rng)] for w in words.T], dim=1)
        return [self.vocabulary.decode(_until(end, row)) for row in mixed.tolist()]


def _until(end: int, row: list[int]) -> list[int]:
    return row[: row.index(end)] if end in row else row

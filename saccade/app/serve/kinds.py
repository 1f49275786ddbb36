"""What is peculiar to a kind of run: what it takes, which settings it knows, how it decodes.

What something becomes never depends on what is decoded beside it: translations and captions are
taken together only when they are searched for, and with equal settings; whatever is drawn at
random is drawn alone, from its own seed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from prometheus_client import Counter
from torch import Tensor

from saccade.app.look.captioning.images import Shown
from saccade.app.serve.batcher import Job
from saccade.app.serve.draft import Draft
from saccade.app.serve.http.errors import RequestError, invalid
from saccade.app.serve.schema import PredictRequest
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate, OnStep
from saccade.tasks.captioning.captioner import Described, Describer
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.translation.translator import Translated, Translator

Takes = Literal["text", "image"]
Given = str | Tensor | Shown  # a text, or a picture made to fit
Tool = Translator | Writer | Describer


@dataclass(frozen=True)
class Predict:
    """Texts or pictures, and how to go on from them."""

    given: tuple[Given, ...]
    how: Decoding
    count: int
    most_tokens: int
    stream: bool


class Steps:
    """After each step: a sign of life, news for streams, and whose rows are given up."""

    def __init__(self, tokens: Counter, steps: Counter, beat: Callable[[], None]) -> None:
        self._tokens, self._steps, self._beat = tokens, steps, beat

    def wrote(self, tokens: int) -> None:
        self._tokens.inc(tokens)

    def told(self, owners: list[Job], drafts: list[Draft]) -> OnStep:
        def tell(step: dict[int, list[Candidate]]) -> Collection[int]:
            self._beat()
            self._steps.inc()
            for row, candidates in step.items():
                if owners[row].work.stream:
                    owners[row].tell(drafts[row].grow(candidates))
            return [row for row in step if owners[row].gone]

        return tell


class Kind(ABC):
    """A kind of run."""

    name: ClassVar[str]
    takes: ClassVar[Takes] = "text"
    draws: ClassVar[bool] = False  # unless a search is asked for; else the other way round

    @abstractmethod
    def refuse(self, run: str, asked: PredictRequest) -> None:
        """Refuse settings that runs of this kind have no use for."""

    @abstractmethod
    def check(self, run: str, tool: Any, given: Given) -> None:
        """Refuse what a model cannot read. It has been measured: this is not much work."""

    @abstractmethod
    def decode(self, tool: Any, jobs: Sequence[Job], steps: Steps) -> None:
        """Answer each of some predictions that may be decoded together."""

    def about(self, task: Any) -> dict[str, Any]:
        """What else a client may want to know before it asks."""
        return {}


class Translating(Kind):
    name = "translation"

    def refuse(self, run: str, asked: PredictRequest) -> None:
        _refuse_writing(f"{run} translates", asked)

    def check(self, run: str, tool: Translator, given: Given) -> None:
        text = str(given)
        if not text.strip():
            raise invalid("there is nothing to translate in an empty text", "text")
        tokens = len(tool.vocabulary.encode(text)) + 1  # and the end of the sentence
        _check_length(run, tokens, getattr(tool.model.config, "longest", None))

    def decode(self, tool: Translator, jobs: Sequence[Job], steps: Steps) -> None:
        def search(given: list[Any], on_step: OnStep) -> Iterator[tuple[int, Translated]]:
            return tool.translate(given, jobs[0].work.how, on_step=on_step)

        def answer(one: Translated) -> dict[str, Any]:
            return {"source": one.source, **_best(one)}

        _side_by_side(tool, jobs, steps, search, answer)


class Describing(Kind):
    name = "captioning"
    takes = "image"

    def refuse(self, run: str, asked: PredictRequest) -> None:
        _refuse_writing(f"{run} describes images", asked)

    def check(self, run: str, tool: Describer, given: Given) -> None:
        """A picture that could be decoded was made to fit."""

    def decode(self, tool: Describer, jobs: Sequence[Job], steps: Steps) -> None:
        def search(given: list[Any], on_step: OnStep) -> Iterator[tuple[int, Described]]:
            return tool.describe(torch.stack(given), jobs[0].work.how, on_step=on_step)

        _side_by_side(tool, jobs, steps, search, _best)

    def about(self, task: CaptioningSettings) -> dict[str, Any]:
        return {"image": task.image}


class Writing(Kind):
    name = "language"
    draws = True

    def refuse(self, run: str, asked: PredictRequest) -> None:
        if asked.n_best > 1:
            raise invalid(f"{run} is a language run: ask for count instead of n_best", "n_best")

    def check(self, run: str, tool: Writer, given: Given) -> None:
        _check_length(run, len(tool.begin(str(given))), getattr(tool.model, "reach", None))

    def decode(self, tool: Writer, jobs: Sequence[Job], steps: Steps) -> None:
        for job in jobs:
            made = list[dict[str, Any]]()
            for prompt in job.work.given:
                made += self._written(tool, prompt, job, steps)
            if not job.gone:
                job.finish(made)

    def _written(
        self, tool: Writer, prompt: str, job: Job, steps: Steps
    ) -> Iterator[dict[str, Any]]:
        begun, work = tool.begin(prompt), job.work
        draft = Draft(lambda tokens: tool.vocabulary.decode([*begun, *tokens]), work.how)
        tell = steps.told([job] * work.count, [draft] * work.count)
        count, most = work.count, work.most_tokens
        if job.gone:
            return
        for one in tool.write(prompt, work.how, count=count, most_tokens=most, on_step=tell):
            steps.wrote(len(one.tokens) - len(begun))
            yield {"prompt": one.prompt, **_figures(one), "others": []}


KINDS: dict[type[Any], Kind] = {
    TranslationSettings: Translating(),
    LanguageSettings: Writing(),
    CaptioningSettings: Describing(),
}


def _side_by_side(
    tool: Translator | Describer,
    jobs: Sequence[Job],
    steps: Steps,
    search: Callable[[list[Given], OnStep], Iterator[tuple[int, Any]]],
    answer: Callable[[Any], dict[str, Any]],
) -> None:
    """Search for all that was given at once."""
    given = [one for job in jobs for one in job.work.given]
    owners = [job for job in jobs for _ in job.work.given]
    how, made = jobs[0].work.how, dict[int, dict[str, Any]]()
    drafts = [Draft(tool.vocabulary.decode, how) for _ in given]
    # Draws come from one stream for a whole batch, so what is drawn goes one by one.
    groups = [[row] for row in range(len(given))] if how.sample else [[*range(len(given))]]
    for rows in groups:
        if all(owners[row].gone for row in rows):
            continue
        tell = steps.told([owners[row] for row in rows], [drafts[row] for row in rows])
        for place, one in search([given[row] for row in rows], tell):
            steps.wrote(len(one.tokens))
            made[rows[place]] = answer(one)
            _finish_if_whole(owners, owners[rows[place]], made)


def _finish_if_whole(owners: list[Job], job: Job, made: dict[int, dict[str, Any]]) -> None:
    """Answer a request as soon as all that it gave is done, not when the batch is over."""
    rows = [row for row, owner in enumerate(owners) if owner is job]
    if all(row in made for row in rows):
        job.finish([made[row] for row in rows])


def _refuse_writing(who: str, asked: PredictRequest) -> None:
    if asked.count > 1:
        raise invalid(f"{who}: ask for n_best instead of count", "count")
    if asked.most_tokens is not None:
        raise invalid(f"{who}: it ends by itself", "most_tokens")


def _check_length(run: str, tokens: int, longest: int | None) -> None:
    if longest is not None and tokens > longest:
        message = f"the text has {tokens} tokens; {run} sees {longest}"
        raise RequestError(422, "too_long", message, field="text")


def _best(one: Translated | Described) -> dict[str, Any]:
    return {**_figures(one), "others": [_figures(other) for other in one.others]}


def _figures(one: Translated | Described | Generated) -> dict[str, Any]:
    return {
        "text": one.text,
        "score": _finite(one.score),
        "log_probability": _finite(one.log_probability),
        "finished": one.finished,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if math.isfinite(value) else None

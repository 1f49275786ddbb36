"""From a checked request to work for a run's thread, and the work itself.

What a text becomes never depends on what is decoded beside it: translations are taken together
only when they are searched for, and with equal settings; whatever is drawn at random is drawn
alone, from its own seed.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from saccade.app.look.document import LookSettings, look_document
from saccade.app.serve.batcher import Job
from saccade.app.serve.draft import Draft
from saccade.app.serve.errors import RequestError, invalid, to_json
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.runs import Run
from saccade.app.serve.schema import LookRequest, PredictRequest
from saccade.app.serve.settings import ServeSettings
from saccade.attention.watching import sites
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate
from saccade.tasks.generate import Generated, Writer
from saccade.tasks.translate import Translated, Translator

LookFunction = Callable[..., dict[str, Any]]
MOST_TOKENS = 100  # of a language run that is not told otherwise


@dataclass(frozen=True)
class Predict:
    """Texts, and how to go on from them."""

    texts: tuple[str, ...]
    how: Decoding
    count: int
    most_tokens: int
    stream: bool


@dataclass(frozen=True)
class Look:
    """A text to look at with one run or two."""

    text: str
    settings: LookSettings
    compare: Run | None


def predict_job(run: Run, asked: PredictRequest, settings: ServeSettings, name: str) -> Job:
    """Check what only the run can tell, then make a job of it."""
    for text in asked.texts:
        check_text(run, text)
    language = run.kind == "language"
    if asked.stream and (isinstance(asked.text, list) or asked.count > 1):
        raise invalid("a stream is of one text: text must be a string, and count 1", "stream")
    if language and asked.n_best > 1:
        raise invalid(f"{run.name} is a language run: ask for count instead of n_best", "n_best")
    if not language and asked.count > 1:
        raise invalid(f"{run.name} translates: ask for n_best instead of count", "count")
    if not language and asked.most_tokens is not None:
        raise invalid(f"{run.name} translates: it ends by itself", "most_tokens")
    how = _decoding(asked, language, settings)
    most = asked.most_tokens or min(MOST_TOKENS, settings.most_tokens)
    work = Predict(tuple(asked.texts), how, asked.count, most, asked.stream)
    together = not language and not how.sample
    return Job(work, key=how if together else None, size=len(work.texts), name=name)


def _decoding(asked: PredictRequest, language: bool, settings: ServeSettings) -> Decoding:
    usual = 1 if language else min(5, settings.beam)
    beam = asked.beam or max(usual, asked.n_best)
    # A language run draws, unless a search was asked for.
    sample = language and asked.beam is None if asked.sample is None else asked.sample
    if asked.n_best > beam:
        raise invalid(f"n_best={asked.n_best} must be at most beam={beam}", "n_best")
    if sample and asked.n_best > 1:
        raise invalid("n_best needs a search; it cannot go with sample", "n_best")
    return Decoding(
        beam=beam,
        n_best=asked.n_best,
        length_penalty=asked.length_penalty,
        sample=sample,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=asked.seed,
    )


def look_job(
    run: Run, compare: Run | None, asked: LookRequest, settings: ServeSettings, name: str
) -> Job:
    """Check that the runs can look at this text, then make a job of it."""
    for one in (run,) if compare is None else (run, compare):
        check_text(one, asked.text)
        known = sites(one.tool.model)
        if not known:
            raise invalid(f"{one.name} has no attention to look at", "run")
        for zoom in asked.zoom:
            if zoom.site not in known:
                there = ", ".join(known)
                raise invalid(f"there is no site {zoom.site[:60]!r}; there are: {there}", "zoom")
    if not asked.text and not asked.most_tokens:
        raise invalid("there is nothing to look at in an empty text", "text")
    if compare is run:
        raise invalid("compare must name another run", "compare")
    if compare is not None and compare.kind != run.kind:
        raise invalid(f"{run.name} and {compare.name} do different work", "compare")
    how = LookSettings(
        beam=asked.beam,
        most_tokens=asked.most_tokens,
        sample=asked.sample is None or asked.sample,
        temperature=asked.temperature or 1.0,
        seed=asked.seed,
        budget=settings.look_bytes,
        zoom=tuple((zoom.site, zoom.head) for zoom in asked.zoom),
    )
    return Job(Look(asked.text, how, compare), name=name)


def check_text(run: Run, text: str) -> None:
    """Refuse what a model cannot read. Characters have been counted: this is not much work."""
    tool = run.tool
    if isinstance(tool, Writer):
        tokens, longest = len(tool.begin(text)), _number(tool.model, "reach")
    else:
        if not text.strip():
            raise invalid("there is nothing to translate in an empty text", "text")
        tokens = len(tool.vocabulary.encode(text)) + 1  # and the end of the sentence
        longest = _number(tool.model.config, "longest")
    if longest is not None and tokens > longest:
        message = f"the text has {tokens} tokens; {run.name} sees {longest}"
        raise RequestError(422, "too_long", message, field="text")


def _number(owner: Any, name: str) -> int | None:
    return getattr(owner, name, None)


class Decoder:
    """What a run's thread does with a batch."""

    def __init__(
        self,
        run: Run,
        settings: ServeSettings,
        metrics: Metrics,
        look: LookFunction = look_document,
    ) -> None:
        self._run, self._settings, self._look = run, settings, look
        self._tokens = metrics.tokens.labels(run.name)
        self._steps = metrics.steps.labels(run.name)

    def __call__(self, jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        jobs = [job for job in jobs if not job.gone]
        if not jobs:
            return
        work, tool = jobs[0].work, self._run.tool
        with ExitStack() as held:
            other = work.compare if isinstance(work, Look) else None
            self._hold(held, [self._run] if other is None else [self._run, other])
            beat()
            if isinstance(work, Look):
                jobs[0].finish(self._looked(work))
            elif isinstance(tool, Translator):
                self._translate(tool, jobs, beat)
            else:
                for job in jobs:
                    self._write(tool, job, beat)

    def _hold(self, held: ExitStack, runs: list[Run]) -> None:
        """Models one at a time, always in the same order, so that no two wait for each other."""
        for run in sorted(runs, key=lambda run: run.order):
            if not run.lock.acquire(timeout=self._settings.deadline_s):
                raise RequestError(503, "busy", f"{run.name} is busy", retry_after=5)
            held.callback(run.lock.release)

    def _looked(self, work: Look) -> bytes:
        document = self._look(self._run, work.text, work.settings, compare=work.compare)
        body = to_json(document)
        if len(body) > 2 * self._settings.look_bytes:
            message = f"the look takes {len(body)} bytes; shorten the text, or narrow the beam"
            raise RequestError(422, "too_large", message, field="text")
        return body

    def _translate(self, tool: Translator, jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        texts = [text for job in jobs for text in job.work.texts]
        owners = [job for job in jobs for _ in job.work.texts]
        how, made = jobs[0].work.how, dict[int, dict[str, Any]]()
        drafts = [Draft(tool.vocabulary.decode, how) for _ in texts]
        # Draws come from one stream for a whole batch, so texts that are drawn go one by one.
        groups = [[row] for row in range(len(texts))] if how.sample else [[*range(len(texts))]]
        for rows in groups:
            if all(owners[row].gone for row in rows):
                continue
            tell = self._on_step([owners[row] for row in rows], [drafts[row] for row in rows], beat)
            found = tool.translate([texts[row] for row in rows], how, on_step=tell)
            for place, one in found:
                made[rows[place]] = self._translated(one)
                _finish_if_whole(owners, owners[rows[place]], made)

    def _write(self, tool: Writer, job: Job, beat: Callable[[], None]) -> None:
        work, made = job.work, list[dict[str, Any]]()
        for prompt in work.texts:
            begun = tool.begin(prompt)
            draft = Draft(lambda tokens: tool.vocabulary.decode([*begun, *tokens]), work.how)  # noqa: B023
            tell = self._on_step([job] * work.count, [draft] * work.count, beat)
            most = work.most_tokens
            written = tool.write(prompt, work.how, count=work.count, most_tokens=most, on_step=tell)
            if job.gone:
                return
            made += [self._generated(one, len(begun)) for one in written]
        job.finish(made)

    def _on_step(
        self, owners: list[Job], drafts: list[Draft], beat: Callable[[], None]
    ) -> Callable[[dict[int, list[Candidate]]], Collection[int]]:
        """After each step: a sign of life, news for streams, and whose rows are given up."""

        def tell(step: dict[int, list[Candidate]]) -> Collection[int]:
            beat()
            self._steps.inc()
            for row, candidates in step.items():
                if owners[row].work.stream:
                    owners[row].tell(drafts[row].grow(candidates))
            return [row for row in step if owners[row].gone]

        return tell

    def _translated(self, one: Translated) -> dict[str, Any]:
        self._tokens.inc(len(one.tokens))
        others = [_figures(other) for other in one.others]
        return {"source": one.source, **_figures(one), "others": others}

    def _generated(self, one: Generated, given: int) -> dict[str, Any]:
        self._tokens.inc(len(one.tokens) - given)
        return {"prompt": one.prompt, **_figures(one), "others": []}


def _finish_if_whole(owners: list[Job], job: Job, made: dict[int, dict[str, Any]]) -> None:
    """Answer a request as soon as all its texts are there, not when the batch is over."""
    rows = [row for row, owner in enumerate(owners) if owner is job]
    if all(row in made for row in rows):
        job.finish([made[row] for row in rows])


def _figures(one: Translated | Generated) -> dict[str, Any]:
    return {
        "text": one.text,
        "score": _finite(one.score),
        "log_probability": _finite(one.log_probability),
        "finished": one.finished,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if math.isfinite(value) else None

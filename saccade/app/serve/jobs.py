"""From a checked request to work for a run's thread, and the work itself."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from saccade.app.look.document import LookDocument, to_json
from saccade.app.look.settings import LookSettings
from saccade.app.serve.batcher import Job
from saccade.app.serve.http.errors import RequestError, invalid
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.requests import ReadRequest
from saccade.app.serve.runs import ServedRun
from saccade.app.serve.schema import LookRequest, PredictRequest
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.steps import PredictJob, Steps
from saccade.attention.look.watching import head_counts
from saccade.decode.engine import Decoding

MOST_TOKENS = 100  # of a language run that is not told otherwise


@dataclass(frozen=True)
class LookJob:
    """A text or an image to look at with one run or two."""

    given: Any
    settings: LookSettings
    compare: ServedRun | None


def predict_job(asked: ReadRequest, settings: ServeSettings, name: str) -> Job:
    """Check what only the run can tell, then make a job of it."""
    run, wanted = asked.run, asked.wanted
    assert isinstance(wanted, PredictRequest)
    tokens = sum(tokens_of(run, one, settings) for one in asked.given)
    many = isinstance(wanted.given(run.serving.takes), list)
    if wanted.stream and (many or wanted.count > 1):
        what = run.serving.takes
        raise invalid(f"a stream is of one {what}: {what} must be no list, and count 1", "stream")
    run.serving.refuse(run.name, wanted)
    how = _decoding(wanted, run.serving.draws, settings)
    most = wanted.most_tokens or min(MOST_TOKENS, settings.most_tokens)
    more = wanted.threshold, wanted.guidance
    work = PredictJob(asked.given, how, wanted.count, most, wanted.stream, *more)
    together = not run.serving.draws
    written = 0 if together else work.most_tokens * len(work.given)
    units = float((tokens + written) * work.count * how.beam)
    return Job(work, key=how if together else None, size=len(work.given), units=units, name=name)


def tokens_of(run: ServedRun, given: Any, settings: ServeSettings) -> int:
    """How long a text is for a run; refuses what the run cannot read, or should not here."""
    tokens = run.serving.check(run.name, run.tool, given)
    if tokens > settings.text_tokens:
        most = f"{settings.text_tokens} (text_tokens)"
        message = f"the text has {tokens} tokens; there may be {most}: shorten it"
        raise RequestError(422, "too_long", message, field=run.serving.takes)
    return tokens


def _decoding(asked: PredictRequest, draws: bool, settings: ServeSettings) -> Decoding:
    usual = 1 if draws else min(5, settings.beam)
    beam = asked.beam or max(usual, asked.n_best)
    sample = draws and asked.beam is None if asked.sample is None else asked.sample
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


def look_job(asked: ReadRequest, settings: ServeSettings, name: str) -> Job:
    """Check that the runs can look at this, then make a job of it."""
    run, compare, wanted, (given,) = asked.run, asked.compare, asked.wanted, asked.given
    assert isinstance(wanted, LookRequest)
    both, tokens = [run] if compare is None else [run, compare], 0
    for one in both:
        tokens += tokens_of(one, given, settings)
        known = head_counts(one.tool.model)
        if not one.serving.looks(one.tool.model):
            raise invalid(f"{one.name} has no attention to look at", "run")
        _check_class(one, wanted.of, given)
        if wanted.threshold is not None and "threshold" not in one.serving.uses:
            raise invalid(f"{one.name} {one.serving.does}: leave threshold out", "threshold")
        for zoom in wanted.zoom:
            if zoom.site not in known:
                there = ", ".join(known)
                raise invalid(f"there is no site {zoom.site[:60]!r}; there are: {there}", "zoom")
            if zoom.head >= known[zoom.site]:
                heads = f"it has {known[zoom.site]}, counted from 0"
                raise invalid(f"{zoom.site} has no head {zoom.head}; {heads}", "zoom")
    if given == "" and not wanted.most_tokens:
        raise invalid("there is nothing to look at in an empty text", "text")
    if compare is run:
        raise invalid("compare must name another run", "compare")
    how = LookSettings(
        beam=wanted.beam,
        most_tokens=wanted.most_tokens,
        sample=wanted.sample is None or wanted.sample,
        temperature=wanted.temperature or 1.0,
        seed=wanted.seed,
        budget=settings.look_bytes,
        of=wanted.of,
        **({} if wanted.threshold is None else {"threshold": wanted.threshold}),
        zoom=tuple((zoom.site, zoom.head) for zoom in wanted.zoom),
    )
    written = wanted.most_tokens * len(both) if run.serving.draws else 0
    units = float((tokens + written) * wanted.beam)
    return Job(LookJob(given, how, compare), units=units, name=name)


def _check_class(run: ServedRun, of: str | None, given: Any) -> None:
    known = run.serving.classes(run.tool, given)
    if of is None or of in known:
        return
    if not known:
        raise invalid(f"{run.name} knows no classes; leave of out", "of")
    raise invalid(f"of={of[:60]!r} is no class of {run.name}; `predict` names those it knows", "of")


class Decoder:
    """What a run's thread does with a batch."""

    def __init__(
        self,
        run: ServedRun,
        settings: ServeSettings,
        metrics: Metrics,
    ) -> None:
        self._run, self._settings = run, settings
        self._tokens = metrics.tokens.labels(run.name)
        self._steps = metrics.steps.labels(run.name)

    def __call__(self, jobs: Sequence[Job], beat: Callable[[], None]) -> None:
        jobs = [job for job in jobs if not job.gone]
        if not jobs:
            return
        work = jobs[0].work
        with ExitStack() as held:
            other = work.compare if isinstance(work, LookJob) else None
            self._hold(held, [self._run] if other is None else [self._run, other])
            beat()
            if isinstance(work, LookJob):
                jobs[0].finish(self._looked(work))
            else:
                steps = Steps(self._tokens, self._steps, beat)
                self._run.serving.predict(self._run.tool, jobs, steps)

    def _hold(self, held: ExitStack, runs: list[ServedRun]) -> None:
        """Models one at a time, always in the same order, so that no two wait for each other."""
        for run in sorted(runs, key=lambda run: run.order):
            if not run.lock.acquire(timeout=self._settings.deadline_s):
                raise RequestError(503, "busy", f"{run.name} is busy", retry_after=5)
            held.callback(run.lock.release)

    def _looked(self, work: LookJob) -> bytes:
        models = [self._run] if work.compare is None else [self._run, work.compare]
        document: LookDocument = self._run.serving.look(models, work.given, work.settings)
        body = to_json(document).encode()
        if len(body) > 2 * self._settings.look_bytes:
            takes = self._run.serving.takes
            message = f"the look takes {len(body)} bytes; shorten the text, or narrow the beam"
            raise RequestError(422, "too_large", message, field=takes)
        return body

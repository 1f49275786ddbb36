"""What a kind of work needs to answer requests: jobs, what happens after each step, sides by side.

Without the server's own libraries, so that a kind can be used where these are not installed.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from saccade.app.serve.draft import Draft
from saccade.app.serve.http.errors import RequestError
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate, OnStep


@dataclass(frozen=True)
class PredictJob:
    """Texts or images, and how to go on from them."""

    given: tuple[Any, ...]
    how: Decoding
    count: int
    most_tokens: int
    stream: bool
    threshold: float | None = None
    guidance: float = 1.0


# Settings of runs that search for words, or draw them.
WRITING = frozenset(
    (
        "beam",
        "n_best",
        "length_penalty",
        "sample",
        "temperature",
        "top_k",
        "top_p",
        "seed",
        "stream",
    )
)


@runtime_checkable
class ServedJob(Protocol):
    """One request on its way."""

    work: Any
    gone: bool

    def finish(self, answer: Any) -> None: ...

    def tell(self, draft: dict[str, Any]) -> None: ...


@runtime_checkable
class PredictFields(Protocol):
    """What a request asks for beside its text or image."""

    def changed(self, *, draws: bool) -> list[str]:
        """The names of settings that are other than usual for runs that draw, or do not."""
        ...


@runtime_checkable
class StepCounter(Protocol):
    """Counts up."""

    def inc(self, amount: float = 1) -> None: ...


class Steps:
    """After each step: a sign of life, news for streams, and whose rows are given up."""

    def __init__(self, tokens: StepCounter, steps: StepCounter, beat: Callable[[], None]) -> None:
        self._tokens, self._steps, self._beat = tokens, steps, beat

    def wrote(self, tokens: int) -> None:
        self._tokens.inc(tokens)

    def on_step(self, owners: list[Any], drafts: list[Draft]) -> OnStep:
        def tell(step: dict[int, list[Candidate]]) -> Collection[int]:
            self._beat()
            self._steps.inc()
            for row, candidates in step.items():
                if owners[row].work.stream:
                    owners[row].tell(drafts[row].grow(candidates))
            return [row for row in step if owners[row].gone]

        return tell


def search_together(
    decode_tokens: Callable[[list[int]], str],
    jobs: Sequence[ServedJob],
    steps: Steps,
    search: Callable[[list[Any], OnStep], Iterator[tuple[int, Any]]],
    response: Callable[[Any], dict[str, Any]],
) -> None:
    """Search for all that was given at once."""
    given = [one for job in jobs for one in job.work.given]
    owners = [job for job in jobs for _ in job.work.given]
    made = dict[int, dict[str, Any]]()
    drafts = [Draft(decode_tokens, jobs[0].work.how) for _ in given]
    for row, one in search(given, steps.on_step(owners, drafts)):
        steps.wrote(len(one.tokens))
        made[row] = response(one)
        _finish_if_whole(owners, owners[row], made)


def _finish_if_whole(
    owners: list[ServedJob], job: ServedJob, made: dict[int, dict[str, Any]]
) -> None:
    """Answer a request as soon as all that it gave is done, not when the batch is over."""
    rows = [row for row, owner in enumerate(owners) if owner is job]
    if all(row in made for row in rows):
        job.finish([made[row] for row in rows])


def check_length(run: str, tokens: int, longest: int | None) -> int:
    """Refuse more than a model can see; gives back how many tokens there are."""
    if longest is not None and tokens > longest:
        message = f"the text has {tokens} tokens; {run} sees {longest}"
        raise RequestError(422, "too_long", message, field="text")
    return tokens


def with_others(one: Any) -> dict[str, Any]:
    """A hypothesis and the rest of its n-best list."""
    return {**figures(one), "others": [figures(other) for other in one.others]}


def figures(one: Any) -> dict[str, Any]:
    """A hypothesis for JSON, which has no infinities."""
    return {
        "text": one.text,
        "score": _finite(one.score),
        "log_probability": _finite(one.log_probability),
        "finished": one.finished,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

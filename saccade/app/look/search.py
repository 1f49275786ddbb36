"""How the words of a look were chosen: one search, its history, and the hypotheses it found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

from saccade.app.look.axis import special_name, text_axis
from saccade.app.look.document import AxisEntry, CandidateEntry, LookEntry, SiteEntry
from saccade.data.tokens.pieces import PART
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.decode.beam import Beam
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate, OnStep
from saccade.tasks.teacher_forced import TeacherForced

PLACES = ("best", "2nd", "3rd")
History = list[list[CandidateEntry]]


@runtime_checkable
class SearchResult(Protocol):
    """A hypothesis of a translator or a captioner."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def finished(self) -> bool: ...
    @property
    def tokens(self) -> list[int]: ...


Best = TypeVar("Best")
Hypothesis = TypeVar("Hypothesis", bound=SearchResult)


def run_search(
    search: Callable[[OnStep], Iterator[tuple[int, Best]]], how: Decoding, vocabulary: Vocabulary
) -> tuple[Best, History | None]:
    """What one search for one input found, and its history if it had a beam."""
    steps: list[list[Candidate]] = []

    def keep(step: dict[int, list[Candidate]]) -> list[int]:
        steps.extend(step.values())
        return []

    ((_, best),) = search(keep)
    if how.beam == 1 or how.sample:
        return best, None
    return best, history(vocabulary, steps, Beam(size=how.beam, length_penalty=how.length_penalty))


def as_predicted(
    best: Hypothesis, beam: History | None, predicted: Hypothesis | None
) -> tuple[Hypothesis, History | None]:
    """What a search found, or what was predicted where that says something else.

    Another engine, batch or stream of draws may have found it; the history is then not its own.
    """
    if predicted is None or (predicted.tokens, predicted.finished) == (best.tokens, best.finished):
        return best, beam
    return predicted, None


def history(vocabulary: Vocabulary, steps: list[list[Candidate]], beam: Beam) -> History:
    """Every step's candidates with their texts so far."""
    history: History = []
    before: list[list[int]] = [[]]
    for t, step in enumerate(steps):
        texts = [[*before[one.parent], one.token] for one in step]
        history.append(
            [
                CandidateEntry(
                    text=vocabulary.decode(tokens).rstrip(PART),
                    token=_choice(vocabulary, one.token, tokens[:-1]),
                    parent=one.parent,
                    score=round(one.log_probability / beam.penalty(t + 1), 4),
                    log_probability=round(one.log_probability, 4),
                    ended=one.ended,
                )
                for one, tokens in zip(step, texts)
            ]
        )
        before = [tokens for one, tokens in zip(step, texts) if not one.ended]
    return history


def hypothesis_entry(
    run: str,
    place: int,
    one: SearchResult,
    axes: dict[str, AxisEntry],
    sites: list[SiteEntry],
    beam: History | None,
) -> LookEntry:
    """A place in the n-best list; the first carries the history of the search."""
    return LookEntry(
        run=run,
        label=PLACES[place] if place < len(PLACES) else f"{place + 1}th",
        text=one.text,
        score=one.score,
        log_probability=one.log_probability,
        finished=one.finished,
        axes=axes,
        sites=sites,
        beam=None if place else beam,
    )


def written_axes(
    vocabulary: Vocabulary, one: SearchResult, seen: TeacherForced
) -> dict[str, AxisEntry]:
    """What was written, and the same one place later, which is what the model read meanwhile."""
    target = [*one.tokens, *([vocabulary.end] if one.finished else [])]
    axes = target_axes(vocabulary, target)
    log_p, choices = chosen_words(vocabulary, seen, target, axes["target"].tokens)
    return axes | {"target": replace(axes["target"], log_p=log_p, choices=choices)}


def target_axes(vocabulary: Vocabulary, target: list[int]) -> dict[str, AxisEntry]:
    """Tokens that were written, and the same one place later."""
    return {
        "target": text_axis(vocabulary, target),
        "past": text_axis(vocabulary, [vocabulary.start, *target[:-1]]),
    }


def chosen_words(
    vocabulary: Vocabulary, seen: TeacherForced, said: list[int], labels: list[str]
) -> tuple[list[float | None], list[list[tuple[str, float]]]]:
    """How probable each token was, and what else might have been said in its place.

    The token that was said is named as it is on its axis.
    """
    choices = [
        [
            (
                labels[place]
                if said[place : place + 1] == [token]
                else _choice(vocabulary, token, said[:place]),
                round(p, 4),
            )
            for token, p in some
        ]
        for place, some in enumerate(seen.choices)
    ]
    return [round(value, 4) for value in seen.log_p], choices


def _choice(vocabulary: Vocabulary, token: int, after: list[int]) -> str:
    return special_name(vocabulary, token) or vocabulary.piece(token, after=after)

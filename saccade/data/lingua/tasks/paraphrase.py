"""Paraphrase: whether two sentences mean the same.

Both sentences are drawn as a meaning and a wording. From one to the other, a few things change:

    same        the wording, in one to three ways: a date goes to the front, active and passive,
                did not and didn't, the order of two statements, a synonym
    different   the same, and one thing in the meaning: who did it to whom, when, how many, or
                whether at all

Most changes of meaning exchange two parts, which leaves the words as they are; one that brings in
another word stands in the place of a change of the wording.
"""

from typing import NamedTuple

from saccade.data.lingua import LinguaSettings, check_request, no_sentence
from saccade.data.lingua.clauses import DeadEndError
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.chance import Menu, statement
from saccade.data.lingua.tasks.exchanges import EXCHANGES, REPLACEMENTS
from saccade.data.lingua.tasks.labelled import LabelledSentence, TaskItem
from saccade.data.lingua.tasks.rewording import Saying, Sayings, fitted, reworded, rewordings
from saccade.data.lingua.tasks.statements import (
    Statement,
    has_held_out,
    say_all,
    say_statement,
)
from saccade.data.lingua.tokens import write_english

LABELS = ("same", "different")
MENU = Menu(
    ("the", "the", "the", "my", "our", "your", "a", "number", "number"),
    ("the", "the", "the", "my", "our", "your", "a", "number", "number"),
)
_DEFAULT = LinguaSettings()
_ATTEMPTS = 20_000
_EXCHANGED = 0.75  # how often the change of meaning keeps the words
_TRIES = 60  # second sentences for one first sentence


class ParaphrasePair(NamedTuple):
    """Two sentences and whether they mean the same."""

    first: Sayings
    second: Sayings
    label: str
    texts: tuple[str, str]


def paraphrase(
    split: str, count: int, settings: LinguaSettings = _DEFAULT
) -> list[LabelledSentence]:
    """The first `count` pairs of sentences of a split, half of them with the same meaning."""
    check_request(split, count)
    made = (paraphrase_pair(split, index, settings) for index in range(count))
    return [LabelledSentence(each.texts, each.label) for each in made]


def paraphrase_pair(split: str, index: int, settings: LinguaSettings = _DEFAULT) -> ParaphrasePair:
    """One item, with what its sentences say."""
    item = TaskItem("paraphrase", split, index, settings)
    rng, label = item.rng(), item.label(LABELS)
    for _ in range(_ATTEMPTS):
        draw = Draw(rng, compositional=split == "compositional")
        first = _sentence(draw)
        text = _said(item, first)
        for _ in range(_TRIES if text else 0):
            second = _altered(first, label, draw)
            other = _said(item, second)
            if other and other != text:
                return ParaphrasePair(first, second, label, (text, other))
    raise no_sentence(split, settings)


def mean_the_same(first: tuple[Statement, ...], second: tuple[Statement, ...]) -> bool:
    """Whether the statements are the same, in whatever order."""
    return second in (first, first[::-1])


def _said(item: TaskItem, sayings: Sayings) -> str:
    """The sentence, if it is one for this item, else nothing."""
    words = [say_statement(*saying) for saying in sayings]
    text = write_english(say_all(words)) if words else ""
    held_out = any(has_held_out(saying.statement) for saying in sayings)
    return text if text and item.takes(text, held_out=held_out) else ""


def _sentence(draw: Draw) -> Sayings:
    """One statement, or two about others who do something else, in any wording."""
    try:
        first = statement(draw, MENU)
        second = statement(draw, MENU)
    except DeadEndError:
        return ()
    words = [mention.word for each in (first, second) for mention in each.mentions]
    acts = first.verb and second.verb and first.verb.name == second.verb.name
    both = len(set(words)) == len(words) and not acts and draw.chance(0.8)
    sayings = tuple(Saying(each) for each in ((first, second) if both else (first,)))
    return reworded(sayings, [each for each in rewordings(sayings) if draw.chance(0.5)])


def _altered(sayings: Sayings, label: str, draw: Draw) -> Sayings:
    """So many changes, all of the wording or one of the meaning; nothing if chance fails."""
    wanted = draw.between(1, 3)
    if label == "different":
        statements = tuple(saying.statement for saying in sayings)
        exchanged = draw.chance(_EXCHANGED)
        others = draw.pick(EXCHANGES if exchanged else REPLACEMENTS)(statements, draw)
        if mean_the_same(statements, others):
            return ()
        sayings = tuple(fitted(old, new, draw) for old, new in zip(sayings, others))
        wanted -= not exchanged
    choices = rewordings(sayings)
    chosen = {draw.pick(choices) for _ in range(wanted)} if choices else set()
    return reworded(sayings, sorted(chosen))

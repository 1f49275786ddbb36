"""Entailment: whether the premise entails the hypothesis, contradicts it, or leaves it open.

Premise and hypothesis speak of the same happening: it happens once, at one time and in one place,
and "the dog" or "two dogs" are the same ones in both. The hypothesis H is drawn first and the
label without looking at it; then a premise is made that the label is true of:

    entails       stronger(H)          a rival of ¬H
    contradicts   stronger(¬H), ¬H     a rival of H   H of another number
    neutral       weaker(H)            weaker(¬H)     of somebody else   a rival that may be true

So the hypothesis alone tells nothing of the label. Each kind of premise uses the same words in the
same places; what they amount to hangs on every, a, the, no and not (`strength.py`).
"""

from collections.abc import Callable
from typing import NamedTuple

from saccade.data.lingua import LinguaSettings, check_request, no_sentence
from saccade.data.lingua.clauses import DeadEndError
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.chance import Menu, adjective, company, manner, statement
from saccade.data.lingua.tasks.labelled import LabelledSentence, TaskItem
from saccade.data.lingua.tasks.statements import (
    Participant,
    Statement,
    Wording,
    has_held_out,
    say_all,
    say_statement,
)
from saccade.data.lingua.tasks.strength import (
    allows_rivals,
    changed,
    excludes_rivals,
    opposite,
    recounted,
    rivals,
)
from saccade.data.lingua.tokens import write_english
from saccade.data.lingua.words.lexicon import expressions, nouns_of

LABELS = ("entails", "contradicts", "neutral")
MENU = Menu(
    (*("the",) * 6, "owner", "owner", "number", "number", *("a", "every", "no") * 2, "not every"),
    (*("the",) * 4, "this", "owner", "owner", *("a",) * 3),
)
_DEFAULT = LinguaSettings()
_ATTEMPTS = 20_000
_RIVAL = 0.9  # how often, where it can be done
_TRIES = 300  # premises for one hypothesis
# Of these, one may be another: a wife is a woman, a hen is a bird.
_BROAD = ("man", "woman", "boy", "girl", "child", "friend", "guest", "hero", "bird", "machine")
_NARROW_KINDS = ("person", "animal", "thing", "food", "height")
Statements = tuple[Statement, ...]


class Argument(NamedTuple):
    """A premise, a hypothesis, and how the one bears on the other."""

    premise: Statements
    hypothesis: Statements
    label: str
    texts: tuple[str, str]


def entailment(
    split: str, count: int, settings: LinguaSettings = _DEFAULT
) -> list[LabelledSentence]:
    """The first `count` pairs of premise and hypothesis of a split, a third of each label."""
    check_request(split, count)
    made = (argument(split, index, settings) for index in range(count))
    return [LabelledSentence(each.texts, each.label) for each in made]


def argument(split: str, index: int, settings: LinguaSettings = _DEFAULT) -> Argument:
    """One item, with the statements that its sentences make."""
    item = TaskItem("entails", split, index, settings)
    rng, label = item.rng(), item.label(LABELS)
    for _ in range(_ATTEMPTS):
        draw = Draw(rng, compositional=split == "compositional")
        hypothesis = _hypothesis(draw)
        second = _said(item, draw, hypothesis)
        for _ in range(_TRIES if second else 0):
            premise = _premise(hypothesis, label, draw)
            first = _said(item, draw, premise)
            if first:
                return Argument(premise, hypothesis, label, (first, second))
    raise no_sentence(split, settings)


def _said(item: TaskItem, draw: Draw, statements: Statements) -> str:
    """The sentence, if it is one for this item, else nothing."""
    words = [say_statement(each, Wording(time_first=draw.chance(0.3))) for each in statements]
    text = write_english(say_all(words)) if words else ""
    held_out = any(has_held_out(each) for each in statements)
    return text if text and item.takes(text, held_out=held_out) else ""


def _hypothesis(draw: Draw) -> Statements:
    try:
        first = statement(draw, MENU)
        return (first, *_more(draw, (first,))) if draw.chance(0.3) else (first,)
    except DeadEndError:
        return ()


def _more(draw: Draw, others: Statements) -> Statements:
    """Another statement, about others who do something else; or none, if chance fails."""
    more = statement(draw, MENU)
    taken = {mention.word for other in others for mention in other.mentions}
    acts = {other.verb and other.verb.name for other in others}
    is_new = taken.isdisjoint(mention.word for mention in more.mentions)
    return (more,) if is_new and (more.verb and more.verb.name) not in acts else ()


def _premise(hypothesis: Statements, label: str, draw: Draw) -> Statements:
    """The hypothesis with one of its statements changed, and perhaps one more; or nothing."""
    place = draw.between(0, len(hypothesis) - 1)
    try:
        new = _PREMISES[label](hypothesis[place], draw) or hypothesis[place]
        changed_one = (*hypothesis[:place], new, *hypothesis[place + 1 :])
        more = _more(draw, changed_one) if draw.chance(0.15) else ()
    except DeadEndError:
        return ()
    is_other = new != hypothesis[place] or (more and label == "entails")
    return (*changed_one, *more) if is_other else ()


def _entailing(hypothesis: Statement, draw: Draw) -> Statement | None:
    against = opposite(hypothesis)
    if excludes_rivals(against) and (others := rivals(against, draw)) and draw.chance(_RIVAL):
        return draw.pick(others)
    stronger = changed(hypothesis, draw, 1)
    return changed(stronger, draw, 1) if draw.chance(0.5) else stronger


def _contradicting(hypothesis: Statement, draw: Draw) -> Statement | None:
    against = opposite(hypothesis)
    others = rivals(hypothesis, draw) if excludes_rivals(hypothesis) else []
    others += recounted(hypothesis, draw)
    if others and draw.chance(_RIVAL):
        against = draw.pick(others)
    for _ in range(draw.between(0, 2)):
        against = changed(against, draw, 1)
    return against


def _open(hypothesis: Statement, draw: Draw) -> Statement | None:
    """Neither: from the hypothesis or from its opposite, as chance has it."""
    denied = draw.chance(0.5)
    about = opposite(hypothesis) if denied else hypothesis
    if draw.chance(0.15):
        other = _of_another(about, draw)
        return other if other != about else None
    if allows_rivals(about) and (others := rivals(about, draw)) and draw.chance(0.5):
        return draw.pick(others)
    weaker = changed(about, draw, -1, known=not denied)
    if weaker == about:
        return None
    return changed(weaker, draw, -1, known=not denied) if draw.chance(0.5) else weaker


def _of_another(about: Statement, draw: Draw) -> Statement | None:
    """The same of somebody or something else, or done in another way."""
    slot = draw.pick(("actor", "patient", "company", "manner", "quality"))
    if slot == "quality" and about.quality and about.actor.noun:
        taken = [about.quality.rank, 4, *(quality.rank for quality in about.actor.qualities)]
        return about._replace(quality=adjective(draw, about.actor.noun, *taken))
    if slot == "manner":
        return about._replace(manner=manner(draw)) if about.manner else None
    if slot == "company":
        return about._replace(company=company(draw, about)) if about.company else None
    mention = {"actor": about.actor, "patient": about.patient}.get(slot)
    new = _another(mention, draw) if mention else None
    if new is None or new.word in [each.word for each in about.mentions]:
        return None
    return about._replace(**{slot: new})


def _another(mention: Participant, draw: Draw) -> Participant | None:
    if mention.name:
        people = mention.name in expressions("people")
        return Participant(name=draw.pick(expressions("people" if people else "countries")))
    noun = mention.noun
    if noun is None or noun.kind not in _NARROW_KINDS or noun.english in _BROAD:
        return None
    others = [n for n in nouns_of(noun.kind) if n.english not in _BROAD and n.mass == noun.mass]
    return mention._replace(noun=draw.pick(others))


_PREMISES: dict[str, Callable[[Statement, Draw], Statement | None]] = {
    "entails": _entailing,
    "contradicts": _contradicting,
    "neutral": _open,
}

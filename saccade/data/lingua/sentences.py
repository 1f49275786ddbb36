"""Sentences: clauses joined by and, but, because, although, while, when, if and that."""

from typing import NamedTuple

from saccade.data.lingua.adverbials import time
from saccade.data.lingua.clauses import FUTURE, PAST, PRESENT, Frame, clause, subject
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.impersonal import there_is, weather
from saccade.data.lingua.tokens import Mot, Phrase, Word, empty, fixed, mark, que
from saccade.data.lingua.verb_groups import Style, Tense, active
from saccade.data.lingua.words.lexicon import verbs

_FRAMES = (PAST, PAST, PAST, PRESENT, PRESENT, FUTURE)
_SIMPLE_PAST = Frame((Tense.PAST,), Tense.PAST)
_SIMPLE_PRESENT = Frame((Tense.PRESENT,), Tense.PRESENT)


class Joint(NamedTuple):
    """A subordinating conjunction and the frame of its clause for each frame of the main one."""

    english: str
    french: tuple[str, ...]
    inside: dict[Frame, Frame]


_ALTHOUGH_PAST = _SIMPLE_PAST._replace(subjunctive=True)
_ALTHOUGH_PRESENT = _SIMPLE_PRESENT._replace(subjunctive=True)
JOINTS: tuple[Joint, ...] = (
    Joint("because", ("parce", "que"), {PAST: PAST, PRESENT: PRESENT, FUTURE: PRESENT}),
    Joint(
        "although",
        ("bien", "que"),
        {PAST: _ALTHOUGH_PAST, PRESENT: _ALTHOUGH_PRESENT, FUTURE: _ALTHOUGH_PRESENT},
    ),
    Joint(
        "while",
        ("pendant", "que"),
        {PAST: Frame((Tense.IMPERFECT,), None), PRESENT: Frame((Tense.PROGRESSIVE,), None)},
    ),
    Joint("when", ("quand",), {PAST: _SIMPLE_PAST, PRESENT: _SIMPLE_PRESENT}),
    Joint("if", ("si",), {PRESENT: _SIMPLE_PRESENT, FUTURE: _SIMPLE_PRESENT}),
)
_LEAST = 5  # words worth giving to a clause after the first
_MOST = 18  # words one clause carries with grace


def sentence(draw: Draw, size: int) -> Phrase:
    """A whole sentence of about `size` words, without its full stop."""
    phrase, frame, dated = empty(), draw.pick(_FRAMES), None
    opening = draw.random()
    if size >= 7 and opening < 0.12:
        dated = _open_with_time(draw, phrase, frame)
    elif size >= 11 and opening < 0.27:
        joint = _joint(draw, frame)
        phrase.add(_subordinate(draw, joint, frame, draw.between(5, min(size - 6, _MOST))))
        phrase.add(mark(","))
    elif size >= 8 and opening < 0.42:
        _open_with_report(draw, phrase, frame)
    _add_clause(draw, phrase, dated or frame, size)
    subordinate = False
    while (left := size - len(phrase.english)) >= _LEAST:
        if subordinate or draw.chance(0.55):
            frame = draw.pick(_FRAMES)
            word = draw.pick(("and", "and", "but"))
            phrase.add(mark(","))
            phrase.add(fixed(word, "et" if word == "and" else "mais", "conjunction"))
            _add_clause(draw, phrase, frame, size)
            subordinate = False
        else:
            phrase.add(_subordinate(draw, _joint(draw, frame), frame, _share(draw, left)))
            subordinate = True
    return phrase


def _add_clause(draw: Draw, phrase: Phrase, frame: Frame, size: int) -> None:
    share, dice = _share(draw, size - len(phrase.english)), draw.random()
    if dice < 0.03 and share <= 7:
        phrase.add(weather(draw, frame, share))
    elif dice < 0.06 and share >= 6 and frame.state:
        phrase.add(there_is(draw, frame.state, share))
    else:
        phrase.add(clause(draw, frame, share))


def _share(draw: Draw, left: int) -> int:
    """How much of the words left the next clause takes: all, or enough to leave a clause more."""
    if left <= 10 or (left <= _MOST and draw.chance(0.5)):
        return max(left, 3)
    return draw.between(4, min(left - _LEAST - 1, _MOST))


def _joint(draw: Draw, frame: Frame) -> Joint:
    return draw.pick([joint for joint in JOINTS if frame in joint.inside])


def _subordinate(draw: Draw, joint: Joint, frame: Frame, size: int) -> Phrase:
    word = Word(joint.english, "conjunction")
    french = [que(word) if text == "que" else Mot(text, word) for text in joint.french]
    phrase = Phrase([word], french)
    phrase.add(clause(draw, joint.inside[frame], size - 1, 1))
    return phrase


def _open_with_time(draw: Draw, phrase: Phrase, frame: Frame) -> Frame | None:
    """In 1992, …; returns the frame of a clause that needs no other time."""
    when = time(draw, frame.active[0], draw.between(1, 4))
    if when is None:
        return None
    phrase.add(when)
    phrase.add(mark(","))
    return Frame(frame.active[:1], frame.state, dated=True)


def _open_with_report(draw: Draw, phrase: Phrase, frame: Frame) -> None:
    """She says that …"""
    verb = draw.pick(verbs("saying"))
    who = subject(draw, "person", draw.between(1, 3), 1)
    tense = Tense.PAST if frame == PAST else Tense.PRESENT
    word = Word("that", "conjunction")
    phrase.add(who.phrase)
    phrase.add(active(verb, who.agreement, Style(tense)))
    phrase.add(Phrase([word], [que(word)]))

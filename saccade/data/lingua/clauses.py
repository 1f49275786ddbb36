"""Clauses: a subject and what it does, grown to about a given number of words.

Two rules keep the translation a function of the source: a relative clause belongs to the noun
right before it, and the subjunctive after "although" reaches no further than its own clause.
"""

from collections.abc import Callable
from typing import NamedTuple

from saccade.data.lingua.adverbials import place, tail
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.noun_phrases import (
    NounPhrase,
    Use,
    about_names,
    coordinated,
    entity,
    predicative,
    pronoun,
    simple,
)
from saccade.data.lingua.tokens import Mot, Phrase, Word, de, fixed, que
from saccade.data.lingua.verb_groups import (
    Style,
    Tense,
    active,
    catenative,
    infinitive,
    modal,
    passive,
    to_be,
)
from saccade.data.lingua.words.lexicon import (
    Noun,
    Verb,
    done_to,
    expressions,
    nouns_of,
    verbs,
    verbs_of,
)
from saccade.data.lingua.words.morphology import IL, ILS, Agreement


class DeadEndError(Exception):
    """The choices so far lead to no sentence; start afresh. Never leaves the package."""


class Frame(NamedTuple):
    """The tenses open to a clause; `state` serves to be and the passive, None rules them out.

    A `dated` clause has told its time already.
    """

    active: tuple[Tense, ...]
    state: Tense | None
    subjunctive: bool = False
    dated: bool = False


PAST = Frame((Tense.PAST,) * 6 + (Tense.PERFECT, Tense.IMPERFECT, Tense.PLUPERFECT), Tense.PAST)
PRESENT = Frame((Tense.PRESENT, Tense.PRESENT, Tense.PROGRESSIVE), Tense.PRESENT)
FUTURE = Frame((Tense.FUTURE,), Tense.FUTURE)

_SUBJECT_KINDS = (
    *("person",) * 12,
    *("group",) * 4,
    *("animal", "animal", "text", "text", "thing", "idea", "event", "place", "height"),
)
_RELATIVE = (PAST._replace(dated=True), PRESENT._replace(dated=True))
_ALIVE = frozenset(("person", "animal", "group"))
_DEEPEST = 2
# English: French, its form before a vowel, whom a participle agrees with
_CLITICS = (
    ("him", "le", "l'", Agreement()),
    ("her", "la", "l'", Agreement(IL, True)),
    ("them", "les", "", Agreement(ILS)),
)


class Predication(NamedTuple):
    """What a verb phrase needs to know: who acts, in which tenses, in how many words."""

    draw: Draw
    subject: NounPhrase
    frame: Frame
    size: int
    depth: int

    def style(self, *, state: bool) -> Style:
        """A tense, and now and then a negation or an adverb, within the size."""
        draw, frame = self.draw, self.frame
        if state and frame.state is None:
            raise DeadEndError
        tense = frame.state if state and frame.state else draw.pick(frame.active)
        negation, adverb, adverbs = "", None, expressions("middle")
        dice = draw.random() if self.size >= 4 else 1.0
        lasting = tense in (Tense.PROGRESSIVE, Tense.IMPERFECT)
        if dice < 0.15:
            negation = "not"
            adverb = draw.pick(adverbs[:2]) if dice < 0.02 and not lasting else None
        elif dice < 0.18:
            negation = "never"
        elif dice < 0.30 and not lasting:
            adverb = draw.pick(adverbs)
        return Style(tense, negation, adverb, subjunctive=frame.subjunctive)

    def end(self, phrase: Phrase, tense: Tense) -> Phrase:
        """Fill what is left of the size with adverbials."""
        alive, left = self.subject.kind in _ALIVE, self.size - len(phrase.english)
        phrase.add(tail(self.draw, left, None if self.frame.dated else tense, alive=alive))
        return phrase


def subject(draw: Draw, kind: str, size: int, depth: int) -> NounPhrase:
    """A subject of this kind in about `size` words."""
    if size == 1 and kind == "person" and draw.chance(0.75):
        return pronoun(draw)
    if size == 1 or (kind == "group" and size <= 4 and draw.chance(0.25)):
        name = about_names(draw, kind)
        if name and len(name.phrase.english) <= max(size, 2):
            return name
    if size >= 5 and draw.chance(0.2):
        return _together(draw, nouns_of(kind), size, None)
    noun = draw.pick(nouns_of(kind))
    return modified(draw, noun, max(size, 2), depth, "plain")


def _together(draw: Draw, nouns: tuple[Noun, ...], size: int, verb: Verb | None) -> NounPhrase:
    """Two or three different things joined by and, the objects of `verb` if there is one."""
    count = 3 if size >= 8 and draw.chance(0.5) else 2
    share = (size - count + 1) // count - (count == 3)
    members: dict[str, NounPhrase] = {}
    for _ in range(count):
        noun = _object_noun(draw, verb, nouns) if verb else draw.pick(nouns)
        use: Use = "loved" if verb and verb.loves else "of"
        members[noun.english] = simple(draw, noun, min(max(share, 2), 4), use)
    if len(members) == 1:
        return next(iter(members.values()))
    return coordinated(list(members.values()))


def modified(draw: Draw, noun: Noun, size: int, depth: int, use: Use) -> NounPhrase:
    """A noun with adjectives, then a phrase or a relative clause if `size` leaves room."""
    if size <= 3:
        return simple(draw, noun, size, use)
    core = draw.between(2, 3 if size <= 6 else 4)
    left = size - core
    if left >= 3 and depth < _DEEPEST and draw.chance(0.65):
        head = simple(draw, noun, core, use)
        head.phrase.add(relative(draw, head, left, depth + 1))
        return head
    if left < 2 or noun.mass or noun.kind == "event" or use == "exists":
        return simple(draw, noun, min(size, 4), use)
    head = simple(draw, noun, core, "headed")
    topical = noun.kind == "text" and draw.chance(0.5)
    word = Word("on" if topical else "of", "preposition")
    head.phrase.english.append(word)
    head.phrase.french.append(Mot("sur", word) if topical else de(word))
    inner_use = "plain" if topical else "of"
    if topical and left == 4:
        inner = entity(draw.pick(expressions("entities")[:1]))
    elif left == 2:
        inner = about_names(draw, "person")
        assert inner is not None
    else:
        kind = draw.pick(("idea", "event") if topical else ("person", "person", "group"))
        inner = modified(draw, draw.pick(nouns_of(kind)), left - 1, depth + 1, inner_use)
    head.phrase.add(inner.phrase)
    return head


def relative(draw: Draw, head: NounPhrase, size: int, depth: int) -> Phrase:
    """A relative clause on `head`: who, that, whom, where → qui, que, où."""
    frame = draw.pick(_RELATIVE)
    dice = draw.random()
    person = head.kind == "person"
    if head.kind == "place" and dice < 0.3 and size >= 4:
        phrase = fixed("where", "où", "adverb")
        phrase.add(clause(draw, frame, size - 1, depth, kind="person"))
        return phrase
    if dice < 0.65 and size >= 3:
        noun = head.nouns[0]
        verb = draw.combine(done_to(noun.english), lambda v: [(v.name, noun.english)])
        if verb and (not verb.state or frame.state):
            word = Word("whom" if person else "that", "pronoun")
            phrase = Phrase([word], [que(word)])
            phrase.add(_with_gap(draw, verb, head, frame, size - 1, depth))
            return phrase
    phrase = fixed("who" if person else "that", "qui", "pronoun")
    phrase.add(predicate(Predication(draw, head, frame, size - 1, depth)))
    return phrase


def _with_gap(
    draw: Draw, verb: Verb, head: NounPhrase, frame: Frame, size: int, depth: int
) -> Phrase:
    """The rest of "the letter that she wrote": French participles agree with the letter."""
    kind = "person" if "person" in verb.subjects else "group"
    actor = subject(draw, kind, draw.between(1, min(3, size - 1)), _DEEPEST)
    about = Predication(draw, actor, frame, size - len(actor.phrase.english), depth)
    style = about.style(state=verb.state)._replace(preceding=head.agreement)
    actor.phrase.add(about.end(active(verb, actor.agreement, style), style.tense))
    return actor.phrase


def clause(draw: Draw, frame: Frame, size: int, depth: int = 0, kind: str = "") -> Phrase:
    """A clause of about `size` words, about a subject of this kind, or any."""
    kind = kind or (draw.pick(_SUBJECT_KINDS) if frame.state else "person")
    longest = size - 2 if size <= 5 else max(2, min(size // 2, 12))
    if size >= 4 and draw.chance(0.35):
        longest = 1
    who = subject(draw, kind, draw.between(1, longest), depth)
    left = size - len(who.phrase.english)
    who.phrase.add(predicate(Predication(draw, who, frame, max(left, 1), depth)))
    return who.phrase


def predicate(about: Predication) -> Phrase:
    """A verb phrase; kinds of verb phrase are tried in random order until one fits."""
    kind, size = about.subject.kind, about.size
    menu: list[tuple[float, Callable[[Predication], Phrase]]] = []
    for weight, smallest, kinds, build in _PREDICATES:
        if size >= smallest and (kinds is None or kind in kinds):
            menu.append((about.draw.random() * weight, build))
    menu.sort(key=lambda entry: -entry[0])
    met = about.draw.met_held_out
    for _, build in menu:
        try:
            return build(about)
        except DeadEndError:
            about.draw.met_held_out = met  # what was drawn is thrown away
    raise DeadEndError


def _intransitive(about: Predication) -> Phrase:
    able = verbs_of("intransitive", about.subject.kind)
    if not able:
        raise DeadEndError
    verb = about.draw.pick(able)
    style = about.style(state=verb.state)
    return about.end(active(verb, about.subject.agreement, style), style.tense)


def _copula(about: Predication) -> Phrase:
    style = about.style(state=True)
    phrase = to_be(about.subject.agreement, style)
    very = about.size - len(phrase.english) >= 2 and about.draw.chance(0.5)
    adjective = predicative(about.draw, about.subject, very=very)
    if adjective is None:
        raise DeadEndError
    phrase.add(adjective)
    left, tense = about.size - len(phrase.english), style.tense
    phrase.add(tail(about.draw, left, None if about.frame.dated else tense, alive=False))
    return phrase


def _passive(about: Predication) -> Phrase:
    draw, nouns = about.draw, about.subject.nouns
    if not nouns:
        raise DeadEndError
    able = [verb for verb in done_to(nouns[0].english) if not verb.state]
    verb = draw.combine(able, lambda v: [(v.name, noun.english) for noun in nouns])
    if verb is None:
        raise DeadEndError
    style = about.style(state=True)
    phrase = passive(verb, about.subject.agreement, style)
    left = about.size - len(phrase.english)
    if left >= 2 and draw.chance(0.6):
        phrase.add(fixed("by", "par", "preposition"))
        kind = "group" if "group" in verb.subjects and draw.chance(0.5) else "person"
        share = draw.between(1, left - 1)
        name = about_names(draw, kind) if share == 1 else None
        noun = draw.pick(nouns_of(kind))
        agent = name or modified(draw, noun, max(share, 2), about.depth, "of")
        phrase.add(agent.phrase)
    return about.end(phrase, style.tense)


def _transitive(about: Predication) -> Phrase:
    draw = about.draw
    verb = draw.pick(verbs_of("transitive", about.subject.kind))
    style = about.style(state=verb.state)
    whom = any(noun.kind == "person" for noun in verb.objects) and not verb.preposition
    if whom and not verb.particle and draw.chance(0.2):
        english, french, liaison, agreement = draw.pick(_CLITICS)
        word = Word(english, "pronoun")
        clitic = Mot(french, word, (), liaison)
        phrase = active(
            verb, about.subject.agreement, style._replace(clitic=clitic, preceding=agreement)
        )
        phrase.english.append(word)
        return about.end(phrase, style.tense)
    phrase = active(verb, about.subject.agreement, style)
    _add_object(about, verb, phrase, negated=bool(style.negation))
    return about.end(phrase, style.tense)


def _object_noun(draw: Draw, verb: Verb, nouns: tuple[Noun, ...]) -> Noun:
    noun = draw.combine(nouns, lambda n: [(verb.name, n.english)])
    if noun is None:
        raise DeadEndError
    return noun


def _add_object(about: Predication, verb: Verb, phrase: Phrase, *, negated: bool) -> None:
    """Append what the verb acts on, using some or all of the room that is left."""
    draw = about.draw
    head = phrase.english[-1]
    if verb.particle:
        head = Word(verb.particle, "preposition")
        phrase.english.append(head)
    if verb.preposition:
        phrase.french.append(de(head) if verb.preposition == "de" else Mot(verb.preposition, head))
    left = max(1, about.size - len(phrase.english))
    share = left if left <= 3 else draw.between(2, left)
    people = "person" in {noun.kind for noun in verb.objects}
    if share <= 2 and people and draw.chance(0.3):
        name = about_names(draw, "person")
        assert name is not None
        phrase.add(name.phrase)
        return
    use: Use = "loved" if verb.loves else "negated" if negated else "plain"
    if verb.preposition:
        use, share = "of", max(share, 2)
    elif use != "negated" and 5 <= share <= 12 and draw.chance(0.25):
        phrase.add(_together(draw, verb.objects, share, verb).phrase)
        return
    noun = _object_noun(draw, verb, verb.objects)
    phrase.add(modified(draw, noun, share, about.depth, use).phrase)


def _placed(about: Predication) -> Phrase:
    verb = about.draw.pick(verbs("placed"))
    style = about.style(state=verb.state)
    phrase = active(verb, about.subject.agreement, style)
    left = max(2, about.size - len(phrase.english))
    phrase.add(place(about.draw, about.draw.between(2, min(left, 5)), verb.particle))
    return about.end(phrase, style.tense)


def _leading(about: Predication) -> Phrase:
    """A modal or a verb like to try, then an infinitive with its own object."""
    draw, agreement = about.draw, about.subject.agreement
    present = about.frame.state is Tense.PRESENT and not about.frame.subjunctive
    if present and draw.chance(0.6):
        negated, tense = draw.chance(0.2), Tense.PRESENT
        phrase = modal(draw.pick(("can", "must")), agreement, negated=negated)
    else:
        leader = draw.pick(verbs_of("catenative", about.subject.kind))
        style = about.style(state=leader.state)
        negated, tense = bool(style.negation), style.tense
        phrase = catenative(leader, agreement, style)
    room = about.size - len(phrase.english)
    if room >= 3 and draw.chance(0.7):
        verb = draw.pick(verbs_of("transitive", about.subject.kind))
        if verb.state:
            raise DeadEndError
        phrase.add(infinitive(verb, agreement))
        _add_object(about, verb, phrase, negated=negated)
    else:
        verb = draw.pick(verbs_of("intransitive", about.subject.kind))
        phrase.add(infinitive(verb, agreement))
    return about.end(phrase, tense)


def _two_things(about: Predication) -> Phrase:
    """Eats and sleeps: two verb phrases of one subject, neither with a clause inside."""
    first = about.draw.between(1, about.size - 2)
    flat = about._replace(depth=_DEEPEST)
    phrase = predicate(flat._replace(size=min(first, 6)))
    phrase.add(fixed("and", "et", "conjunction"))
    left = max(1, about.size - len(phrase.english))
    phrase.add(predicate(flat._replace(size=min(left, 6))))
    return phrase


# weight, least size, kinds of subject (None: any), builder
_PREDICATES: tuple[
    tuple[float, int, frozenset[str] | None, Callable[[Predication], Phrase]], ...
] = (
    (0.5, 1, None, _intransitive),
    (1.0, 2, _ALIVE, _transitive),
    (0.45, 2, None, _copula),
    (0.5, 2, frozenset((*_SUBJECT_KINDS, "food", "drink")) - {"person"}, _passive),
    (0.5, 3, frozenset(("person", "animal")), _placed),
    (0.5, 3, _ALIVE, _leading),
    (0.35, 5, _ALIVE, _two_things),
)

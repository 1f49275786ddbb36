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
from saccade.data.lingua.tokens import Mot, Phrase, Word, de, que
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
from saccade.data.lingua.words.morphology import IL, ILS, Agreement
from saccade.data.lingua.words.names import ENTITIES, MIDDLE, MIDDLE_NEGATED
from saccade.data.lingua.words.nouns import BY_KIND, Noun
from saccade.data.lingua.words.verbs import (
    CATENATIVE_OF,
    DONE_TO,
    INTRANSITIVE_OF,
    PLACED,
    TRANSITIVE_OF,
    Verb,
)


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


class Scene(NamedTuple):
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
        negation, adverb = "", None
        dice = draw.random() if self.size >= 4 else 1.0
        lasting = tense in (Tense.PROGRESSIVE, Tense.IMPERFECT)
        if dice < 0.15:
            negation = "not"
            adverb = draw.pick(MIDDLE_NEGATED) if dice < 0.02 and not lasting else None
        elif dice < 0.18:
            negation = "never"
        elif dice < 0.30 and not lasting:
            adverb = draw.pick(MIDDLE)
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
        return _together(draw, BY_KIND[kind], size, None)
    noun = draw.pick(BY_KIND[kind])
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
    word = Word("on" if topical else "of")
    head.phrase.english.append(word)
    head.phrase.french.append(Mot("sur", word) if topical else de(word))
    inner_use = "plain" if topical else "of"
    if topical and left == 4:
        inner = entity(draw.pick(ENTITIES[:1]))
    elif left == 2:
        inner = about_names(draw, "person")
        assert inner is not None
    else:
        kind = draw.pick(("idea", "event") if topical else ("person", "person", "group"))
        inner = modified(draw, draw.pick(BY_KIND[kind]), left - 1, depth + 1, inner_use)
    head.phrase.add(inner.phrase)
    return head


def relative(draw: Draw, head: NounPhrase, size: int, depth: int) -> Phrase:
    """A relative clause on `head`: who, that, whom, where → qui, que, où."""
    frame = draw.pick(_RELATIVE)
    dice = draw.random()
    person = head.kind == "person"
    if head.kind == "place" and dice < 0.3 and size >= 4:
        word = Word("where")
        phrase = Phrase([word], [Mot("où", word)])
        phrase.add(clause(draw, frame, size - 1, depth, kind="person"))
        return phrase
    if dice < 0.65 and size >= 3:
        noun = head.nouns[0]
        verb = draw.combine(DONE_TO[noun.english], lambda v: [(v.name, noun.english)])
        if verb and (not verb.state or frame.state):
            word = Word("whom" if person else "that")
            phrase = Phrase([word], [que(word)])
            phrase.add(_with_gap(draw, verb, head, frame, size - 1, depth))
            return phrase
    word = Word("who" if person else "that")
    phrase = Phrase([word], [Mot("qui", word)])
    phrase.add(predicate(Scene(draw, head, frame, size - 1, depth)))
    return phrase


def _with_gap(
    draw: Draw, verb: Verb, head: NounPhrase, frame: Frame, size: int, depth: int
) -> Phrase:
    """The rest of "the letter that she wrote": French participles agree with the letter."""
    kind = "person" if "person" in verb.subjects else "group"
    actor = subject(draw, kind, draw.between(1, min(3, size - 1)), _DEEPEST)
    scene = Scene(draw, actor, frame, size - len(actor.phrase.english), depth)
    style = scene.style(state=verb.state)._replace(preceding=head.agreement)
    actor.phrase.add(scene.end(active(verb, actor.agreement, style), style.tense))
    return actor.phrase


def clause(draw: Draw, frame: Frame, size: int, depth: int = 0, kind: str = "") -> Phrase:
    """A clause of about `size` words, about a subject of this kind, or any."""
    kind = kind or (draw.pick(_SUBJECT_KINDS) if frame.state else "person")
    longest = size - 2 if size <= 5 else max(2, min(size // 2, 12))
    if size >= 4 and draw.chance(0.35):
        longest = 1
    who = subject(draw, kind, draw.between(1, longest), depth)
    left = size - len(who.phrase.english)
    who.phrase.add(predicate(Scene(draw, who, frame, max(left, 1), depth)))
    return who.phrase


def predicate(scene: Scene) -> Phrase:
    """A verb phrase; kinds of verb phrase are tried in random order until one fits."""
    kind, size = scene.subject.kind, scene.size
    menu: list[tuple[float, Callable[[Scene], Phrase]]] = []
    for weight, smallest, kinds, build in _PREDICATES:
        if size >= smallest and (kinds is None or kind in kinds):
            menu.append((scene.draw.random() * weight, build))
    menu.sort(key=lambda entry: -entry[0])
    met = scene.draw.met_held_out
    for _, build in menu:
        try:
            return build(scene)
        except DeadEndError:
            scene.draw.met_held_out = met  # what was drawn is thrown away
    raise DeadEndError


def _intransitive(scene: Scene) -> Phrase:
    verbs = INTRANSITIVE_OF[scene.subject.kind]
    if not verbs:
        raise DeadEndError
    verb = scene.draw.pick(verbs)
    style = scene.style(state=verb.state)
    return scene.end(active(verb, scene.subject.agreement, style), style.tense)


def _copula(scene: Scene) -> Phrase:
    style = scene.style(state=True)
    phrase = to_be(scene.subject.agreement, style)
    very = scene.size - len(phrase.english) >= 2 and scene.draw.chance(0.5)
    adjective = predicative(scene.draw, scene.subject, very=very)
    if adjective is None:
        raise DeadEndError
    phrase.add(adjective)
    left, tense = scene.size - len(phrase.english), style.tense
    phrase.add(tail(scene.draw, left, None if scene.frame.dated else tense, alive=False))
    return phrase


def _passive(scene: Scene) -> Phrase:
    draw, nouns = scene.draw, scene.subject.nouns
    if not nouns:
        raise DeadEndError
    verbs = [verb for verb in DONE_TO[nouns[0].english] if not verb.state]
    verb = draw.combine(verbs, lambda v: [(v.name, noun.english) for noun in nouns])
    if verb is None:
        raise DeadEndError
    style = scene.style(state=True)
    phrase = passive(verb, scene.subject.agreement, style)
    left = scene.size - len(phrase.english)
    if left >= 2 and draw.chance(0.6):
        by = Word("by")
        phrase.add(Phrase([by], [Mot("par", by)]))
        kind = "group" if "group" in verb.subjects and draw.chance(0.5) else "person"
        share = draw.between(1, left - 1)
        name = about_names(draw, kind) if share == 1 else None
        noun = draw.pick(BY_KIND[kind])
        agent = name or modified(draw, noun, max(share, 2), scene.depth, "of")
        phrase.add(agent.phrase)
    return scene.end(phrase, style.tense)


def _transitive(scene: Scene) -> Phrase:
    draw = scene.draw
    verb = draw.pick(TRANSITIVE_OF[scene.subject.kind])
    style = scene.style(state=verb.state)
    whom = any(noun.kind == "person" for noun in verb.objects) and not verb.preposition
    if whom and not verb.particle and draw.chance(0.2):
        english, french, liaison, agreement = draw.pick(_CLITICS)
        word = Word(english)
        clitic = Mot(french, word, (), liaison)
        phrase = active(
            verb, scene.subject.agreement, style._replace(clitic=clitic, preceding=agreement)
        )
        phrase.english.append(word)
        return scene.end(phrase, style.tense)
    phrase = active(verb, scene.subject.agreement, style)
    _add_object(scene, verb, phrase, negated=bool(style.negation))
    return scene.end(phrase, style.tense)


def _object_noun(draw: Draw, verb: Verb, nouns: tuple[Noun, ...]) -> Noun:
    noun = draw.combine(nouns, lambda n: [(verb.name, n.english)])
    if noun is None:
        raise DeadEndError
    return noun


def _add_object(scene: Scene, verb: Verb, phrase: Phrase, *, negated: bool) -> None:
    """Append what the verb acts on, using some or all of the room that is left."""
    draw = scene.draw
    head = phrase.english[-1]
    if verb.particle:
        head = Word(verb.particle)
        phrase.english.append(head)
    if verb.preposition:
        phrase.french.append(de(head) if verb.preposition == "de" else Mot(verb.preposition, head))
    left = max(1, scene.size - len(phrase.english))
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
    phrase.add(modified(draw, noun, share, scene.depth, use).phrase)


def _placed(scene: Scene) -> Phrase:
    verb = scene.draw.pick(PLACED)
    style = scene.style(state=verb.state)
    phrase = active(verb, scene.subject.agreement, style)
    left = max(2, scene.size - len(phrase.english))
    phrase.add(place(scene.draw, scene.draw.between(2, min(left, 5)), verb.particle))
    return scene.end(phrase, style.tense)


def _leading(scene: Scene) -> Phrase:
    """A modal or a verb like to try, then an infinitive with its own object."""
    draw, agreement = scene.draw, scene.subject.agreement
    present = scene.frame.state is Tense.PRESENT and not scene.frame.subjunctive
    if present and draw.chance(0.6):
        negated, tense = draw.chance(0.2), Tense.PRESENT
        phrase = modal(draw.pick(("can", "must")), agreement, negated=negated)
    else:
        leader = draw.pick(CATENATIVE_OF[scene.subject.kind])
        style = scene.style(state=leader.state)
        negated, tense = bool(style.negation), style.tense
        phrase = catenative(leader, agreement, style)
    room = scene.size - len(phrase.english)
    if room >= 3 and draw.chance(0.7):
        verb = draw.pick(TRANSITIVE_OF[scene.subject.kind])
        if verb.state:
            raise DeadEndError
        phrase.add(infinitive(verb, agreement))
        _add_object(scene, verb, phrase, negated=negated)
    else:
        verb = draw.pick(INTRANSITIVE_OF[scene.subject.kind])
        phrase.add(infinitive(verb, agreement))
    return scene.end(phrase, tense)


def _two_things(scene: Scene) -> Phrase:
    """Eats and sleeps: two verb phrases of one subject, neither with a clause inside."""
    first = scene.draw.between(1, scene.size - 2)
    flat = scene._replace(depth=_DEEPEST)
    phrase = predicate(flat._replace(size=min(first, 6)))
    word = Word("and")
    phrase.add(Phrase([word], [Mot("et", word)]))
    left = max(1, scene.size - len(phrase.english))
    phrase.add(predicate(flat._replace(size=min(left, 6))))
    return phrase


# weight, least size, kinds of subject (None: any), builder
_PREDICATES: tuple[tuple[float, int, frozenset[str] | None, Callable[[Scene], Phrase]], ...] = (
    (0.5, 1, None, _intransitive),
    (1.0, 2, _ALIVE, _transitive),
    (0.45, 2, None, _copula),
    (0.5, 2, frozenset(BY_KIND) - {"person"}, _passive),
    (0.5, 3, frozenset(("person", "animal")), _placed),
    (0.5, 3, _ALIVE, _leading),
    (0.35, 5, _ALIVE, _two_things),
)

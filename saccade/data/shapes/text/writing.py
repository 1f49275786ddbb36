"""Five captions for a scene, each true of it and each worded in another way.

    a red circle left of a big blue star that is above a green heart
    behind a white square there is a small black moon
    there is a red circle, a blue star and a green heart

Names never vary (no synonyms), so `parse` recovers exactly what was said. Objects are named from
left to right: all up to three, of more the first three, unless the scene asks for all. Only a
relation may turn its two around.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.scenes import NEUTRAL, OPPOSITE, Scene, relation
from saccade.data.shapes.text.claims import Claim, Content, Mention, mention

OPENINGS = ("", "there is ", "the picture shows ")
CAPTIONS = 5
_NAMED = 3


def captions(scene: Scene) -> tuple[str, ...]:
    """Five different sentences, the same ones for the same scene."""
    draw = Dice(scene.seed, 1)
    if scene.group is not None:
        return _of_figures(scene, draw)
    offers = _of_all(scene, draw) if scene.name_all else _of_some(scene, draw)
    found: dict[str, None] = {}
    for sentence in offers:
        found[sentence] = None
        if len(found) == CAPTIONS:
            break
    return tuple(found)


def noun_phrase(named: Mention) -> str:
    """A big red circle; an orange star; a knight."""
    words = [word for word in (named.size, named.colour, named.kind) if word]
    return " ".join(["an" if words[0][0] in "aeiou" else "a", *words])


def listed(phrases: Sequence[str]) -> str:
    """X; x and y; x, y and z."""
    *most, last = phrases
    return f"{', '.join(most)} and {last}" if most else last


def written(said: Content, form: int) -> str:
    """A sentence with just this content, in the form of that number (any whole number will do).

    Claims must run along the mentions: none, the first to the second, and the second to the third.
    """
    phrases = [noun_phrase(named) for named in said.objects]
    if not said.relations:
        return OPENINGS[form % len(OPENINGS)] + listed(phrases)
    a, b, *others = phrases
    stands = said.relations[0].relation
    if len(said.relations) > 1:
        tail = f" that is {said.relations[1].relation} {others[0]}"
    else:
        tail = f", and {listed(others)}" if others else ""
    chained = len(said.relations) > 1
    head = (
        *(f"{opening}{a} {stands} {b}" for opening in OPENINGS),
        f"{a} is {stands} {b}",
        *(() if chained else (f"{stands} {b} there is {a}",)),
    )
    return head[form % len(head)] + tail


def _of_all(scene: Scene, draw: Dice) -> Iterator[str]:
    """Every object by colour and kind, from left to right."""
    things = [scene.objects[index] for index in _from_left(scene)]
    forms = [(form, sized) for form in range(len(OPENINGS)) for sized in (False, True)]
    for form, sized in draw.shuffled(forms):
        yield written(Content(tuple(mention(thing, sized=sized) for thing in things)), form)


def _of_some(scene: Scene, draw: Dice) -> Iterator[str]:
    """Relations where there are any, and lists; without end unless there is a single object."""
    count = len(scene.objects)
    if count == 1:
        forms = [(form, sized) for form in range(len(OPENINGS)) for sized in (False, True)]
        for form, sized in draw.shuffled(forms):
            yield written(Content((mention(scene.objects[0], sized=sized),)), form)
        return
    order = _from_left(scene)[:_NAMED]
    while True:
        told, claims, sized = order, (), draw.chance(0.4)
        if draw.chance(0.8):
            told = _related(scene, order, turned=draw.chance(0.5))
            claims = _claims(scene, told, chained=draw.chance(0.6))
        named = tuple(mention(scene.objects[index], sized=sized) for index in told)
        yield written(Content(named, claims), draw.below(60))


def _from_left(scene: Scene) -> list[int]:
    return sorted(range(len(scene.objects)), key=lambda index: scene.objects[index].box.cx)


def _related(scene: Scene, order: list[int], *, turned: bool) -> list[int]:
    """The same objects, led by the first two that stand in a clear relation, if there are any."""
    for first, second in combinations(order, 2):
        if relation(scene, first, second):
            rest = [index for index in order if index not in (first, second)]
            return [second, first, *rest] if turned else [first, second, *rest]
    return order


def _claims(scene: Scene, order: list[int], *, chained: bool) -> tuple[Claim, ...]:
    first = relation(scene, order[0], order[1])
    if first is None:
        return ()
    claims = [Claim(0, first, 1)]
    if chained and len(order) == _NAMED:
        second = relation(scene, order[1], order[2])
        claims += [Claim(1, second, 2)] if second else []
    return tuple(claims)


def _of_figures(scene: Scene, draw: Dice) -> tuple[str, ...]:
    """A figure and what it stands beside; one of the five says "figure" and not which group."""
    context = scene.context
    assert context is not None
    figure, neutral = mention(scene.main, sized=False), draw.below(CAPTIONS)
    place, beside = scene.objects.index(scene.main), scene.objects.index(context)
    stands = relation(scene, place, beside)
    ways = [(form, "beside", False) for form in range(5)]
    if stands:
        ways += [(form, stands, turned) for form in range(5) for turned in (False, True)]
    found: list[str] = []
    for number, (form, word, turned) in enumerate(draw.shuffled(ways)[:CAPTIONS]):
        named = [Mention(NEUTRAL) if number == neutral else figure, mention(context, sized=False)]
        if turned:
            named, word = named[::-1], OPPOSITE[word]
        found.append(written(Content(tuple(named), (Claim(0, word, 1),)), form))
    return tuple(found)

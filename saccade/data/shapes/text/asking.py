"""Questions about a scene that have one answer, and that answer.

Answers are single words. Of questions for yes or no, as many have the one as the other.
"""

from collections.abc import Iterator
from typing import NamedTuple

from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.scenes import (
    COLOURS,
    KINDS,
    OPPOSITE,
    SIDES,
    SIZES,
    Scene,
    Thing,
    clear_relations,
    leans,
    relation,
)
from saccade.data.shapes.text.claims import Mention
from saccade.data.shapes.text.writing import noun_phrase
from saccade.errors import ConfigError

NUMBERS = ("zero", "one", "two", "three", "four", "five")
ANSWERS = ("yes", "no", *NUMBERS, *COLOURS, *KINDS, *SIZES)


class Question(NamedTuple):
    """A question, its answer, and what it takes: look, count, find, or relate."""

    text: str
    answer: str
    takes: str


def questions(scene: Scene) -> tuple[Question, ...]:
    """All kinds of questions that the scene settles, in any order, the same for the same scene."""
    if scene.group is not None:
        raise ConfigError("questions are about shapes; take a scene without figures")
    draw = Dice(scene.seed, 2)
    asked = [
        *_looking(scene, draw),
        *_counting(scene, draw),
        *_finding(scene, draw),
        *_relating(scene, draw),
        *_across(scene),
    ]
    return tuple(draw.shuffled(asked))


def _the(thing: Thing) -> str:
    return f"the {thing.colour} {thing.kind}"


def _looking(scene: Scene, draw: Dice) -> Iterator[Question]:
    """What one object looks like, named by what it shares with no other."""
    for thing in scene.objects:
        if sum(other.kind == thing.kind for other in scene.objects) == 1:
            yield Question(f"what colour is the {thing.kind}?", thing.colour, "look")
        if sum(other.colour == thing.colour for other in scene.objects) == 1:
            yield Question(f"what shape is the {thing.colour} thing?", thing.kind, "look")
    chosen = draw.pick(scene.objects)
    yield Question(f"is {_the(chosen)} big or small?", chosen.size, "look")


def _counting(scene: Scene, draw: Dice) -> Iterator[Question]:
    """How many there are: of all, of a kind and a colour that are there, and of any."""
    yield Question("how many things are there?", NUMBERS[len(scene.objects)], "count")
    shown = draw.pick(scene.objects)
    for kind in dict.fromkeys((shown.kind, draw.pick(KINDS))):
        count = sum(thing.kind == kind for thing in scene.objects)
        yield Question(f"how many {_plural(kind)} are there?", NUMBERS[count], "count")
    for colour in dict.fromkeys((shown.colour, draw.pick(COLOURS))):
        count = sum(thing.colour == colour for thing in scene.objects)
        yield Question(f"how many {colour} things are there?", NUMBERS[count], "count")


def _plural(kind: str) -> str:
    return f"{kind}es" if kind == "cross" else f"{kind}s"


def _finding(scene: Scene, draw: Dice) -> Iterator[Question]:
    """Whether something is there; what is not shares its kind or its colour with what is."""
    pairs = {(thing.colour, thing.kind) for thing in scene.objects}
    there = draw.pick(scene.objects)
    near = [(colour, there.kind) for colour in COLOURS if (colour, there.kind) not in pairs]
    near += [(there.colour, kind) for kind in KINDS if (there.colour, kind) not in pairs]
    absent = draw.pick(near)
    for (colour, kind), answer in (((there.colour, there.kind), "yes"), (absent, "no")):
        named = noun_phrase(Mention(kind, colour))
        yield Question(f"is there {named}?", answer, "find")


def _relating(scene: Scene, draw: Dice) -> Iterator[Question]:
    """Whether one stands so to another: a pair's true relation, and the opposite of another's."""
    things, clear = scene.objects, clear_relations(scene)
    for answer in ("yes", "no") if clear else ():
        first, stands, second = draw.pick(clear)
        said = stands if answer == "yes" else OPPOSITE[stands]
        text = f"is {_the(things[first])} {said} {_the(things[second])}?"
        yield Question(text, answer, "relate")


def _across(scene: Scene) -> Iterator[Question]:
    """What stands on one side of an object, where only one other does, and clearly so."""
    for seen, anchor in enumerate(scene.objects):
        for side in SIDES:
            leaning = [
                index
                for index, thing in enumerate(scene.objects)
                if index != seen and leans(thing, side, anchor)
            ]
            if len(leaning) == 1 and relation(scene, leaning[0], seen) == side:
                thing = scene.objects[leaning[0]]
                where = f"{side} {_the(anchor)}"
                yield Question(f"what shape is {where}?", thing.kind, "relate")
                yield Question(f"what colour is the thing {where}?", thing.colour, "relate")

"""Phrases that fit just one object of a scene: the other way round of a caption's "a red circle".

    the star                            where there is one star
    the small blue thing                where "the blue thing" would fit two
    the circle above the moon           where no other circle reaches higher than the moon's middle

A size is said only where it decides, and beside a colour or a kind. A relation is said where a
caption may say it, and only if no other object that the words fit so much as leans to that side.
"""

from collections.abc import Iterator
from typing import NamedTuple

from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.scenes import SIDES, Scene, Thing, clear_relations, leans, standing
from saccade.errors import ConfigError

_ANY = "thing"


class ReferringPhrase(NamedTuple):
    """A phrase, and the place of its object in `Scene.objects`."""

    text: str
    thing: int


class _Name(NamedTuple):
    """What a phrase says of an object itself; None where it says nothing."""

    size: str | None
    colour: str | None
    kind: str | None

    def __str__(self) -> str:
        return " ".join(word for word in (self.size, self.colour, self.kind or _ANY) if word)

    def fits(self, thing: Thing) -> bool:
        held = (thing.size, thing.colour, thing.kind)
        return all(said in (None, word) for said, word in zip(self, held))


def referring(scene: Scene) -> tuple[ReferringPhrase, ...]:
    """Phrases for each object, the objects in their order; the same for the same scene.

    The first for an object names its colour and kind, which no other has both of.
    """
    if scene.group is not None:
        raise ConfigError("phrases refer to shapes; take a scene without figures")
    draw = Dice(scene.seed, 3)
    return tuple(
        ReferringPhrase(text, index)
        for index in range(len(scene.objects))
        for text in (*_by_looks(scene, index), *_by_relation(scene, index, draw))
    )


def _by_looks(scene: Scene, index: int) -> Iterator[str]:
    """By colour and kind; by one of them alone, with the size if it takes that."""
    thing = scene.objects[index]
    yield f"the {_Name(None, thing.colour, thing.kind)}"
    for plain in (_Name(None, None, thing.kind), _Name(None, thing.colour, None)):
        sized = plain._replace(size=thing.size)
        found = next((name for name in (plain, sized) if _fitting(scene, name) == [index]), None)
        if found is not None:
            yield f"the {found}"


def _by_relation(scene: Scene, index: int, draw: Dice) -> Iterator[str]:
    """By how it stands to each other object, if that and what it is called leave no doubt."""
    thing = scene.objects[index]
    names = (
        _Name(None, None, None),
        _Name(None, None, thing.kind),
        _Name(None, thing.colour, None),
    )
    for first, stands, second in clear_relations(scene):
        if first != index:
            continue
        clear = [name for name in names if _standing_so(scene, name, stands, second) == [index]]
        telling = [name for name in clear if len(_fitting(scene, name)) > 1]  # it takes the rest
        if clear:
            called = draw.pick(telling or clear)
            yield f"the {called} {stands} the {draw.pick(_anchors(scene, second))}"


def _anchors(scene: Scene, index: int) -> list[_Name]:
    """What the other object may be called: by colour and kind, by its kind if no other has it."""
    thing = scene.objects[index]
    whole, kind = _Name(None, thing.colour, thing.kind), _Name(None, None, thing.kind)
    return [whole, kind] if _fitting(scene, kind) == [index] else [whole]


def _fitting(scene: Scene, name: _Name) -> list[int]:
    return [index for index, thing in enumerate(scene.objects) if name.fits(thing)]


def _standing_so(scene: Scene, name: _Name, stands: str, anchor: int) -> list[int]:
    """All objects of a name that might be said to stand so to another."""
    others = [index for index in _fitting(scene, name) if index != anchor]
    if stands not in SIDES:
        return [index for index in others if standing(scene, index, anchor) == stands]
    middle = scene.objects[anchor]
    return [index for index in others if leans(scene.objects[index], stands, middle)]

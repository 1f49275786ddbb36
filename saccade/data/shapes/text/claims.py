"""What a sentence about a scene claims, whether that is so, and how much of the scene it names."""

from dataclasses import dataclass

from saccade.data.shapes.scenes import (
    CONTEXTS,
    GROUPS,
    NEUTRAL,
    Scene,
    Thing,
    clear_relations,
    is_beside,
    standing,
)


@dataclass(frozen=True)
class Mention:
    """A thing as named; None where nothing was said. A figure is named without a colour."""

    kind: str
    colour: str | None = None
    size: str | None = None

    def fits(self, thing: Thing) -> bool:
        """Whether the words are true of a thing; "figure" is true of every group."""
        return (
            (self.kind == thing.kind or (self.kind == NEUTRAL and thing.kind in GROUPS))
            and self.colour in (None, thing.colour)
            and self.size in (None, thing.size)
        )


@dataclass(frozen=True)
class Claim:
    """The first mention stands so to the second; both are places in `Content.objects`."""

    first: int
    relation: str
    second: int


@dataclass(frozen=True)
class Content:
    """The things a sentence names, in its order, and how it says they stand."""

    objects: tuple[Mention, ...]
    relations: tuple[Claim, ...] = ()


def mention(thing: Thing, *, sized: bool) -> Mention:
    """A thing's name: its kind and colour, with its size if asked for; of a figure the kind."""
    if thing.kind in GROUPS:
        return Mention(thing.kind)
    return Mention(thing.kind, thing.colour, thing.size if sized else None)


def content(scene: Scene) -> Content:
    """All that can be said: every object with its size, and every clear relation."""
    named = (mention(thing, sized=thing.kind not in CONTEXTS) for thing in scene.objects)
    return Content(tuple(named), tuple(Claim(*one) for one in clear_relations(scene)))


def true_of(said: Content, scene: Scene) -> bool:
    """Whether each mention fits an object of its own and every claim about them holds.

    Colour and kind pick one object at most, so there is no choice of who is meant. A claim need
    not be one that `captions` would dare to make, only the one that is true of the pair.
    """
    things = [meant(named, scene) for named in said.objects]
    if None in things or len(set(things)) < len(things) or not things:
        return False
    return all(
        _holds(scene, things[claim.first], claim.relation, things[claim.second])
        for claim in said.relations
    )


def complete(said: Content, scene: Scene) -> bool:
    """Whether it is true and leaves out no object."""
    return len(said.objects) == len(scene.objects) and true_of(said, scene)


def meant(named: Mention, scene: Scene) -> int | None:
    """The one object a mention fits; None for none, or for several where no colour was said."""
    fitting = [index for index, thing in enumerate(scene.objects) if named.fits(thing)]
    return fitting[0] if len(fitting) == 1 else None


def _holds(scene: Scene, first: int | None, claimed: str, second: int | None) -> bool:
    assert first is not None
    assert second is not None
    if claimed == "beside":
        return is_beside(scene.objects[first].box, scene.objects[second].box)
    return standing(scene, first, second) == claimed

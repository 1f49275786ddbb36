"""Four sentences about a scene of which one is true, and nothing but the image says which.

    a red circle left of a blue star         a green circle left of a blue star
    a red circle right of a blue star        a green circle right of a blue star

A caption, and the same with one of two changes, or with both: two colours or two kinds exchanged
wherever they are named, or a relation turned round. A change undoes itself, so each of the four is
as good a caption as the others: none is longer, rarer or more in the middle. Sizes stay, for more
things are big than small; so do relations where there are two, for the second follows the first.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from saccade.data.shapes.compose import is_held_out
from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.scenes import COLOURS, KINDS, OPPOSITE, Scene, relation
from saccade.data.shapes.text.claims import Claim, Content, Mention, meant
from saccade.data.shapes.text.reading import parse
from saccade.data.shapes.text.writing import captions, written
from saccade.errors import ConfigError

Change = Callable[[Content], Content]


class ShapeChoice(NamedTuple):
    """Sentences, and the number of the one that is true, from 0."""

    sentences: tuple[str, ...]
    right: int


def choices(scene: Scene) -> tuple[ShapeChoice, ...]:
    """One for each caption of a scene, the same for the same scene."""
    if scene.group is not None:
        raise ConfigError("choices are about shapes; take a scene without figures")
    draw = Dice(scene.seed, 4)
    return tuple(_choice(caption, scene, draw) for caption in captions(scene))


def _choice(caption: str, scene: Scene, draw: Dice) -> ShapeChoice:
    said = parse(caption)
    assert said is not None
    form = next(number for number in range(len(caption)) if written(said, number) == caption)
    while True:
        one, other = draw.shuffled(_changes(said, draw))[:2]
        wrong = [one(said), other(said), one(other(said))]
        if all(_clearly_false(some, scene) and not _unheard(some, said) for some in wrong):
            order = draw.shuffled([said, *wrong])
            return ShapeChoice(tuple(written(some, form) for some in order), order.index(said))


def _changes(said: Content, draw: Dice) -> list[Change]:
    """Each is of another sort, so that it does not matter which comes first."""
    colours = tuple(one.colour for one in said.objects if one.colour is not None)
    found = [
        _exchanged("colour", draw.pick(colours), draw.pick(COLOURS)),
        _exchanged("kind", draw.pick([one.kind for one in said.objects]), draw.pick(KINDS)),
    ]
    return [*found, _turned] if len(said.relations) == 1 else found


def _exchanged(what: str, a: str, b: str) -> Change:
    """Wherever the one is named, the other is, and the other way."""
    other = {a: b, b: a}

    def changed(one: Mention) -> Mention:
        word: str = vars(one)[what]
        return replace(one, **{what: other.get(word, word)})

    return lambda said: replace(said, objects=tuple(changed(one) for one in said.objects))


def _turned(said: Content) -> Content:
    (claim,) = said.relations
    return replace(said, relations=(replace(claim, relation=OPPOSITE[claim.relation]),))


def _clearly_false(said: Content, scene: Scene) -> bool:
    """Whether it names what is not there, or says of a pair what no eye could take for true."""
    things = [meant(one, scene) for one in said.objects]
    if None in things:
        return True
    return any(_contradicts(scene, things, claim) for claim in said.relations)


def _contradicts(scene: Scene, things: Sequence[int | None], claim: Claim) -> bool:
    first, second = things[claim.first], things[claim.second]
    assert first is not None
    assert second is not None
    return relation(scene, first, second) not in (None, claim.relation)


def _unheard(said: Content, caption: Content) -> bool:
    """Whether it has a pair of colour and kind that is never seen in training, and the caption has
    not: who has read many would know it for wrong.
    """
    return bool(_held_out(said) - _held_out(caption))


def _held_out(said: Content) -> set[tuple[str, str]]:
    pairs = [(one.colour, one.kind) for one in said.objects if one.colour is not None]
    return {(colour, kind) for colour, kind in pairs if is_held_out(colour, kind)}

"""Whether an image shows what a prompt says: the judge of generated images.

A prompt is a sentence of the captions' grammar. The image is read without knowing it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from saccade.data.shapes.scenes import CONTEXTS, GROUPS, KINDS, NEUTRAL, Scene
from saccade.data.shapes.seeing.objects import see
from saccade.data.shapes.text.claims import Claim, Content, Mention, true_of
from saccade.data.shapes.text.reading import parse
from saccade.errors import DataError

_UNKNOWN = frozenset((*GROUPS, *CONTEXTS, NEUTRAL))


class PromptAgreement(NamedTuple):
    """How much of a prompt an image shows.

    `objects` counts kind and colour, `relations` the claims whose two objects are there and stand
    so; sizes count for `fits` alone, which is that all of the prompt is true.
    """

    fits: bool
    objects: int
    named: int
    relations: int
    claimed: int

    @property
    def object_share(self) -> float:
        """The share of the named objects that are there."""
        return self.objects / self.named

    @property
    def relation_share(self) -> float:
        """The share of the claimed relations that hold; 1 where none is claimed."""
        return self.relations / self.claimed if self.claimed else 1.0


def fits(prompt: str, image: UInt8[np.ndarray, "3 H W"]) -> bool:
    """Whether all that a prompt says is true of an image: objects, colours, sizes, relations.

    What the prompt does not name may be there too, but nothing that it names may be there twice.
    """
    return true_of(_content(prompt), see(image))


def agreement(prompt: str, image: UInt8[np.ndarray, "3 H W"]) -> PromptAgreement:
    """How much of a prompt an image shows."""
    return compare(_content(prompt), see(image))


def compare(said: Content, scene: Scene) -> PromptAgreement:
    """How much of what is said is true of a scene."""
    bare = [Mention(named.kind, named.colour) for named in said.objects]
    pairs = [
        Content((bare[claim.first], bare[claim.second]), (Claim(0, claim.relation, 1),))
        for claim in said.relations
    ]
    return PromptAgreement(
        fits=true_of(said, scene),
        objects=sum(true_of(Content((named,)), scene) for named in bare),
        named=len(bare),
        relations=sum(true_of(pair, scene) for pair in pairs),
        claimed=len(pairs),
    )


def _content(prompt: str) -> Content:
    said = parse(prompt)
    if said is None:
        raise DataError(
            f"prompt {prompt!r} is no sentence about shapes; "
            "write one such as 'a red circle left of a big blue star'"
        )
    for named in said.objects:
        if named.kind in _UNKNOWN:
            raise DataError(
                f"prompt {prompt!r} names a {named.kind}, which cannot be told in an image; "
                f"name any of: {', '.join(KINDS)}"
            )
    return said

"""Shapes: rendered scenes of coloured objects, with all that is true of them.

A scene is a function of (seed, split, index); its image, masks, captions, questions, referring
phrases and choices are functions of the scene. Nothing is stored or downloaded, so there are as
many as one likes.
"""

from saccade.data.shapes.bias import outcome, swapped
from saccade.data.shapes.compose import is_held_out, scene
from saccade.data.shapes.drawing.render import boxes, hidden, mask, masks, render, visible_boxes
from saccade.data.shapes.scenes import (
    COLOURS,
    CONTEXTS,
    GROUPS,
    KINDS,
    NEUTRAL,
    RELATIONS,
    SIZES,
    Box,
    Scene,
    Thing,
    relation,
)
from saccade.data.shapes.settings import SPLITS, ShapesSettings
from saccade.data.shapes.text.asking import ANSWERS, Question, questions
from saccade.data.shapes.text.choosing import ShapeChoice, choices
from saccade.data.shapes.text.claims import (
    Claim,
    Content,
    Mention,
    complete,
    content,
    true_of,
)
from saccade.data.shapes.text.reading import is_right, parse
from saccade.data.shapes.text.referring import ReferringPhrase, referring
from saccade.data.shapes.text.writing import captions

__all__ = [
    "ANSWERS",
    "COLOURS",
    "CONTEXTS",
    "GROUPS",
    "KINDS",
    "NEUTRAL",
    "RELATIONS",
    "SIZES",
    "SPLITS",
    "Box",
    "Claim",
    "Content",
    "Mention",
    "Question",
    "ReferringPhrase",
    "Scene",
    "ShapeChoice",
    "ShapesSettings",
    "Thing",
    "boxes",
    "captions",
    "choices",
    "complete",
    "content",
    "hidden",
    "is_held_out",
    "is_right",
    "mask",
    "masks",
    "outcome",
    "parse",
    "questions",
    "referring",
    "relation",
    "render",
    "scene",
    "swapped",
    "true_of",
    "visible_boxes",
]

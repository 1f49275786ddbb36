"""Look documents of images drawn for a text: a model with loud fresh weights."""

import json
from functools import cache
from typing import Any, NamedTuple

from saccade.app.look.document import to_json
from saccade.app.look.settings import LookSettings
from saccade.app.look.text_to_image import DrawnSubject, drawn_document
from saccade.tasks.text_to_image.drawer import Drawing, ImageDrawer
from tests.tasks.text_to_image.drawers import PROMPT, tiny_drawer


class NamedDrawer(NamedTuple):
    name: str
    tool: ImageDrawer


@cache
def _painted_json(prompt: str) -> str:
    model = NamedDrawer("dalle", tiny_drawer())
    drawn = model.tool.draw([prompt], Drawing(seed=1))
    (pixels,) = model.tool.images(drawn)
    subject = DrawnSubject(prompt, pixels, *drawn[0])
    return to_json(drawn_document(model, subject, LookSettings()))


def painted(prompt: str = PROMPT) -> dict[str, Any]:
    """A document as the page is given it."""
    made: dict[str, Any] = json.loads(_painted_json(prompt))
    return made

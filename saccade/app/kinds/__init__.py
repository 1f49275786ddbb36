"""Every kind of work as the app uses it: a file for each, and its line in this dict."""

from importlib import import_module

from saccade.app.kinds.base import Kind
from saccade.tasks import kind_of
from saccade.tasks.base import TaskSettings

HOMES: dict[str, str] = {  # where each has its KIND; imported when a run of that kind is met
    "translation": "saccade.app.kinds.translation",
    "language": "saccade.app.kinds.language",
    "captioning": "saccade.app.kinds.captioning",
    "classification": "saccade.app.kinds.classification",
    "detection": "saccade.app.kinds.detection",
    "masked": "saccade.app.kinds.masked",
    "understanding": "saccade.app.kinds.understanding",
    "answering": "saccade.app.kinds.answering",
    "fitting": "saccade.app.kinds.fitting",
    "referring": "saccade.app.kinds.referring",
    "choosing": "saccade.app.kinds.choosing",
    "joint": "saccade.app.kinds.joint",
    "reconstruction": "saccade.app.kinds.reconstruction",
    "matching": "saccade.app.kinds.matching",
    "text-to-image": "saccade.app.kinds.text_to_image",
}


def kind_named(name: str) -> Kind:
    """A kind of work by its name."""
    found: Kind = import_module(HOMES[name]).KIND
    return found


def kind_for(settings: TaskSettings) -> Kind:
    """The kind of work that a run was trained for."""
    return kind_named(kind_of(settings))

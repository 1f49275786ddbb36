"""Every kind of work as the app uses it: a folder for each, and its line in this dict."""

from importlib import import_module

from saccade.app.kinds.base import Kind
from saccade.tasks import kind_of
from saccade.tasks.base import TaskSettings

HOMES: dict[str, str] = {  # where each has its KIND; imported when a run of that kind is met
    "translation": "saccade.app.kinds.translation.kind",
    "language": "saccade.app.kinds.language.kind",
    "captioning": "saccade.app.kinds.captioning.kind",
    "classification": "saccade.app.kinds.classification.kind",
    "detection": "saccade.app.kinds.detection.kind",
    "masked": "saccade.app.kinds.masked.kind",
    "understanding": "saccade.app.kinds.understanding.kind",
    "answering": "saccade.app.kinds.joint.answering",
    "fitting": "saccade.app.kinds.joint.fitting",
    "referring": "saccade.app.kinds.joint.referring",
    "choosing": "saccade.app.kinds.joint.choosing",
    "joint": "saccade.app.kinds.joint.pretraining",
    "reconstruction": "saccade.app.kinds.reconstruction.kind",
    "matching": "saccade.app.kinds.matching.kind",
    "text-to-image": "saccade.app.kinds.text_to_image.kind",
}


def kind_named(name: str) -> Kind:
    """A kind of work by its name."""
    found: Kind = import_module(HOMES[name]).KIND
    return found


def kind_for(settings: TaskSettings) -> Kind:
    """The kind of work that a run was trained for."""
    return kind_named(kind_of(settings))

"""Every kind of work, by the name under which a run folder stores it."""

from saccade.tasks.base import TaskSettings
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.joint.answering import AnsweringSettings
from saccade.tasks.joint.choosing import ChoosingSettings
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.tasks.joint.referring import ReferringSettings
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.understanding.data import UnderstandingSettings

KINDS: dict[str, type[TaskSettings]] = {
    "translation": TranslationSettings,
    "language": LanguageSettings,
    "captioning": CaptioningSettings,
    "classification": ClassificationSettings,
    "detection": DetectionSettings,
    "masked": MaskedSettings,
    "understanding": UnderstandingSettings,
    "answering": AnsweringSettings,
    "fitting": FittingSettings,
    "referring": ReferringSettings,
    "choosing": ChoosingSettings,
    "joint": JointPretrainingSettings,
    "text-to-image": TextToImageSettings,
    "reconstruction": ReconstructionSettings,
    "matching": MatchingSettings,
}


def kind_of(settings: TaskSettings) -> str:
    """The name of a task's kind."""
    return next(name for name, kind in KINDS.items() if type(settings) is kind)

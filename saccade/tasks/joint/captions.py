"""Captions of images, for pre-training and for finding the one by the other."""

from operator import attrgetter

from saccade.data import shapes
from saccade.data.batching.packed_rows import RowParts
from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ImageRow
from saccade.tasks.base import Progress
from saccade.tasks.captioning.data import (
    Captioned,
    CaptioningSettings,
    read_both,
    read_captioned,
)
from saccade.tasks.joint.data import JointSettings, Sighted, drawn_scenes
from saccade.tasks.joint.task import TextsOfImages

SAME = ("data", "image", "fit", "skip_bad")  # as a captioner reads them


def read_captions(settings: JointSettings, split: str | None, progress: Progress) -> TextsOfImages:
    """The user's captions, or those of shapes; None is all of a single file."""
    if not settings.data:
        sighted = drawn_scenes(settings, split or "test", progress)
        texts = [shapes.captions(scene) for scene in sighted.scenes]
        return TextsOfImages(sighted, texts, [None for some in texts for _ in some])
    return _about(read_captioned(_as_captioner(settings), split, progress))


def read_both_captions(
    settings: JointSettings, progress: Progress
) -> tuple[TextsOfImages, TextsOfImages]:
    """What is learnt from and what is validated on; one split that has both is read once."""
    if settings.data:
        train, valid = map(_about, read_both(_as_captioner(settings), progress))
        return train, valid
    return read_captions(settings, "train", progress), read_captions(settings, "valid", progress)


def _as_captioner(settings: JointSettings) -> CaptioningSettings:
    return CaptioningSettings(**{name: vars(settings)[name] for name in SAME})


def _about(read: Captioned) -> TextsOfImages:
    files = RowParts[ImageRow, Member](read.rows, attrgetter("image"))
    sighted = Sighted.without_boxes(read.images, files, read.report)
    return TextsOfImages(sighted, read.captions, [None] * sum(map(len, read.captions)))

"""Captions of images, for pre-training and for finding the one by the other."""

from saccade.data import shapes
from saccade.tasks.base import Progress
from saccade.tasks.captioning.data import CaptioningSettings, read_captioned
from saccade.tasks.joint.data import JointSettings, Sighted, drawn_scenes
from saccade.tasks.joint.task import TextsOfImages

SAME = ("data", "image", "fit", "skip_bad")  # as a captioner reads them


def read_captions(settings: JointSettings, split: str | None, progress: Progress) -> TextsOfImages:
    """The user's captions, or those of shapes; None is all of a single file."""
    if not settings.data:
        sighted = drawn_scenes(settings, split or "test", progress)
        texts = [shapes.captions(scene) for scene in sighted.scenes]
        return TextsOfImages(sighted, texts, [None for some in texts for _ in some])
    read = read_captioned(
        CaptioningSettings(**{name: vars(settings)[name] for name in SAME}), split, progress
    )
    files = [row.image for row in read.rows]
    sighted = Sighted.without_boxes(read.images, files, read.report)
    return TextsOfImages(sighted, read.captions, [None for some in read.captions for _ in some])

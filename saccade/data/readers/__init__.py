"""Read a user's text and images: a bad row is named by file and line, and no line ever shifts."""

from saccade.data.readers.images.annotated import (
    box_class_ids,
    box_class_names,
    box_splits,
    read_boxes,
)
from saccade.data.readers.images.asked.forms import CHOICES, QUESTIONS, REFERRING, AskedForm
from saccade.data.readers.images.asked.items import AskedItem, Choice, ImageQuestion, Referred
from saccade.data.readers.images.asked.read import AskedRead, asked_splits, read_asked
from saccade.data.readers.images.labels import (
    LabelColumns,
    class_names,
    label_splits,
    read_labelled,
)
from saccade.data.readers.images.read import image_splits, read_images
from saccade.data.readers.images.rows import ImageRow, ImagesRead
from saccade.data.readers.labelled_texts.read import (
    held_out_part,
    labelled_text_splits,
    read_labelled_texts,
)
from saccade.data.readers.labelled_texts.rows import (
    LabelKind,
    LabelledText,
    LabelledTextsRead,
    TextColumns,
)
from saccade.data.readers.report import PairsRead, Problem, TextsRead
from saccade.data.readers.text.find import splits
from saccade.data.readers.text.read import (
    TextStream,
    read_pairs,
    read_texts,
    stream_pairs,
    stream_texts,
)

__all__ = [
    "CHOICES",
    "QUESTIONS",
    "REFERRING",
    "AskedForm",
    "AskedItem",
    "AskedRead",
    "Choice",
    "ImageQuestion",
    "ImageRow",
    "ImagesRead",
    "LabelColumns",
    "LabelKind",
    "LabelledText",
    "LabelledTextsRead",
    "PairsRead",
    "Problem",
    "Referred",
    "TextColumns",
    "TextStream",
    "TextsRead",
    "asked_splits",
    "box_class_ids",
    "box_class_names",
    "box_splits",
    "class_names",
    "held_out_part",
    "image_splits",
    "label_splits",
    "labelled_text_splits",
    "read_asked",
    "read_boxes",
    "read_images",
    "read_labelled",
    "read_labelled_texts",
    "read_pairs",
    "read_texts",
    "splits",
    "stream_pairs",
    "stream_texts",
]

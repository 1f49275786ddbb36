"""Read a user's text and images: a bad row is named by file and line, and no line ever shifts."""

from saccade.data.readers.images.read import image_splits, read_classes, read_images
from saccade.data.readers.images.rows import ImageRow, ImagesRead
from saccade.data.readers.report import PairsRead, Problem, TextsRead
from saccade.data.readers.text.find import splits
from saccade.data.readers.text.read import read_pairs, read_texts

__all__ = [
    "ImageRow",
    "ImagesRead",
    "PairsRead",
    "Problem",
    "TextsRead",
    "image_splits",
    "read_classes",
    "read_images",
    "read_pairs",
    "read_texts",
    "splits",
]

"""Read a user's text and images: a bad row is named by file and line, and no line ever shifts."""

from saccade.data.readers.find import splits
from saccade.data.readers.images import image_splits, read_classes, read_images
from saccade.data.readers.images_rows import ImageRow, ImagesRead
from saccade.data.readers.read import read_pairs, read_texts
from saccade.data.readers.report import PairsRead, Problem, TextsRead

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

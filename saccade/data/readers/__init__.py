"""Read a user's text: every bad row is named by file and line, and no line ever shifts."""

from saccade.data.readers.find import splits
from saccade.data.readers.read import read_pairs, read_texts
from saccade.data.readers.report import PairsRead, Problem, TextsRead

__all__ = ["PairsRead", "Problem", "TextsRead", "read_pairs", "read_texts", "splits"]

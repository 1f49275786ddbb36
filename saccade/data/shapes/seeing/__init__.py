"""Images of shapes read back into scenes, and checked against prompts."""

from saccade.data.shapes.seeing.judging import Agreement, agreement, compare, fits
from saccade.data.shapes.seeing.objects import see

__all__ = ["Agreement", "agreement", "compare", "fits", "see"]

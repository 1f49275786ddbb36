"""Images of shapes read back into scenes, and checked against prompts."""

from saccade.data.shapes.seeing.judging import PromptAgreement, agreement, compare, fits
from saccade.data.shapes.seeing.objects import see

__all__ = ["PromptAgreement", "agreement", "compare", "fits", "see"]

"""A small CLIP, and tasks on a few scenes of shapes."""

from dataclasses import replace
from typing import Any

import torch

from saccade.data.shapes import ShapesSettings
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.joint.clip import Clip, ClipConfig
from saccade.tasks.base import Preparation
from saccade.tasks.joint.data import said_of_shapes
from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.matching.task import Matching
from saccade.tasks.matching.tool import MatchingTool
from tests.models import zoo

TINY = ClipConfig(width=12, depth=2, heads=2, longest=64, joint=8, encoder="resnet-nano")
SMALL: dict[str, Any] = {"image": 32, "scenes": 23, "shapes": ShapesSettings(fewest=2)}


def prepared(*, budget: int = 10, seed: int = 0, **settings: Any) -> Matching:
    given = settings if "data" in settings else {**SMALL, **settings}
    return Matching(MatchingSettings(**given), Preparation(budget=budget, seed=seed))


def model_for(
    task: Matching, config: ClipConfig = TINY, dtype: torch.dtype = torch.float32
) -> Clip:
    model = zoo.build(task.fit(config), dtype)
    assert isinstance(model, Clip)
    return model


def vocabulary() -> Vocabulary:
    """Of all that is said of shapes, as a task has it."""
    return Vocabulary.train(said_of_shapes(SMALL["shapes"]), level="words", size=500)


def tool(config: ClipConfig = TINY, **settings: Any) -> MatchingTool:
    known = vocabulary()
    model = zoo.build(replace(config, vocabulary=len(known)), torch.float32)
    return MatchingTool(model, known, MatchingSettings(**{**SMALL, **settings}))

"""Small joint models of each kind with fresh weights, loud enough to tell things apart."""

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from saccade.data import shapes
from saccade.data.answers import AnswerSet
from saccade.data.boxes import to_corners
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.joint.config import JointHead, RegionKind, VilbertConfig
from saccade.tasks import KINDS
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.pairs import PairImage, PairTool
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.joint.tools import (
    AnswerTool,
    ChoosingTool,
    FillingTool,
    FittingTool,
    ReferringTool,
)

SIDE = 32
SEVERAL = next(n for n in range(99) if len(shapes.scene("test", n).objects) > 3)  # objects
ANSWERS = AnswerSet(("yes", "no", "1", "2", "red", "blue", "ring", "cross"))
TINY_VILBERT = VilbertConfig(
    width=16,
    depth=3,
    heads=2,
    hidden=16,
    longest=40,
    region_width=16,
    region_depth=2,
    region_heads=2,
    region_hidden=16,
    joins=2,
    join_width=16,
    join_heads=2,
    dropout=0.0,
    encoder="resnet-mini",
    stage=3,
    regions="boxes",
)
HEADS: dict[str, JointHead] = {
    "answering": "answers",
    "referring": "regions",
    "fitting": "fit",
    "choosing": "fit",
    "joint": "pretraining",
}


@cache
def vocabulary() -> Vocabulary:
    """Of all that is said about some scenes."""
    scenes = [shapes.scene("train", index) for index in range(60)]
    said = [text for scene in scenes for text in shapes.captions(scene)]
    said += [one.text for scene in scenes for one in shapes.questions(scene)]
    said += [one.text for scene in scenes for one in shapes.referring(scene)]
    return Vocabulary.train(said, level="words", size=400, masks=True)


def joint_config(kind: str, regions: RegionKind = "boxes") -> VilbertConfig:
    return replace(
        TINY_VILBERT,
        vocabulary=len(vocabulary()),
        regions=regions,
        head=HEADS[kind],
        labels=len(ANSWERS),
        contrast=kind in ("fitting", "joint"),
    )


def loud(model: nn.Module, seed: int) -> nn.Module:
    """Fresh weights look everywhere alike and say the same of everything; larger ones do not."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not name.startswith("image_encoder"):
                # The bias of a kind's own head, too: it decides.
                size = 0.5 if weight.dim() > 1 else 0.2
                weight.add_(size * torch.randn(weight.shape, generator=draws))
    return model


def joint_settings(kind: str, **more: Any) -> JointSettings:
    settings = KINDS[kind](**{"image": SIDE, "scenes": 24, **more})
    assert isinstance(settings, JointSettings)
    return settings


def pair_tool(kind: str, regions: RegionKind = "boxes", *, seed: int = 0, **more: Any) -> PairTool:
    torch.manual_seed(seed)
    model = loud(joint_config(kind, regions).build(), seed)
    joint = JointTool(model, vocabulary(), joint_settings(kind, **more))
    if kind == "answering":
        return AnswerTool(joint, ANSWERS)
    kinds = {
        "referring": ReferringTool,
        "fitting": FittingTool,
        "choosing": ChoosingTool,
        "joint": FillingTool,
    }
    return kinds[kind](joint)


def worded(kind: str, text: str) -> str:
    """What a kind may be asked: where one of several sentences is chosen, there are others."""
    return f"{text}\ta small blue star\tthe picture shows a ring" if kind == "choosing" else text


def scene_image(index: int, side: int = SIDE) -> PairImage:
    """A scene of shapes with the boxes of its objects."""
    scene = shapes.scene("test", index)
    pixels = torch.from_numpy(shapes.render(scene, side)).permute(2, 0, 1).contiguous()
    boxes: Tensor = to_corners(torch.from_numpy(shapes.visible_boxes(scene, side)).float())
    labels = tuple(f"{one.colour} {one.kind}" for one in scene.objects)
    return PairImage.square(f"test {index}", pixels, boxes, labels)

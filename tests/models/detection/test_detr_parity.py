"""A plain DETR computes what Hugging Face's does: scores, boxes, losses and all gradients.

Our positions are computed in float32: that is how closely both agree.
"""

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

from saccade.models.detection.detr import PRESETS, Detections, DetrConfig
from saccade.models.names.detr import LIBRARIES
from saccade.models.names.table import to_ours
from saccade.tasks.detection.losses import set_losses
from saccade.tasks.detection.matching import TrueObjects, Weights, match
from tests.models.detection.twins import CLASSES, HF, SMALL, DetrTwins, images, their_config

close = partial(torch.testing.assert_close, atol=1e-6, rtol=1e-6)
ENCODERS = ["resnet-mini", "resnet-nano", "resnet-50"]  # blocks of either kind


def partly(batch: int, height: int, width: int) -> Tensor:
    """Which pixels are image: other parts of each."""
    inside = torch.zeros(batch, height, width, dtype=torch.bool)
    inside[0, : height // 2 - 2] = True
    inside[1:, :, : width // 3 + 1] = True
    return inside


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_gives_the_scores_and_boxes_of_hugging_face(encoder: str) -> None:
    twins, x = DetrTwins.built(replace(SMALL, encoder=encoder)), images(2, 3, 64, 96)
    theirs, ours = twins.theirs(x), twins.ours(x)
    close(ours.scores[-1], theirs.logits)
    close(ours.boxes[-1], theirs.pred_boxes)
    assert theirs.logits.std() > 0.01


@torch.no_grad()
def test_gives_them_where_images_are_filled_up() -> None:
    twins, inside = DetrTwins.built(), partly(2, 128, 96)
    x = images(2, 3, 128, 96) * inside[:, None]
    theirs, ours = twins.theirs(x, pixel_mask=inside.long()), twins.ours(x, inside)
    close(ours.scores[-1], theirs.logits)
    close(ours.boxes[-1], theirs.pred_boxes)
    assert (theirs.logits - twins.theirs(x).logits).abs().max() > 0.01


def truth() -> tuple[list[dict[str, Tensor]], TrueObjects]:
    """The same objects as both want them; the third image has none, the second has most."""
    counts, draws = (2, 4, 0), torch.Generator().manual_seed(8)
    boxes = 0.2 + 0.3 * torch.rand(3, 4, 4, generator=draws, dtype=torch.float64)
    labels = torch.randint(0, CLASSES, (3, 4), generator=draws)
    there = torch.arange(4) < torch.tensor(counts)[:, None]
    listed = [
        {"boxes": boxes[row, :count], "class_labels": labels[row, :count]}
        for row, count in enumerate(counts)
    ]
    return listed, TrueObjects(boxes, labels, there)


def their_loss(model: Any, x: Tensor, inside: Tensor | None, labels: Any) -> Tensor:
    """With losses after every layer, as published: the states themselves go on to the next layer.

    (Its own `auxiliary_loss` hands on what the last norm made of them.)
    """
    states: list[Tensor] = []

    def keep(module: nn.Module, given: Any, output: Tensor) -> None:
        states.append(output)

    hooks = [layer.register_forward_hook(keep) for layer in model.model.decoder.layers]
    model(x, pixel_mask=None if inside is None else inside.long())
    for hook in hooks:
        hook.remove()
    read = model.model.decoder.layernorm(torch.stack(states))
    scores, boxes = model.class_labels_classifier(read), model.bbox_predictor(read).sigmoid()
    config = deepcopy(model.config)
    config.auxiliary_loss = True
    loss: Any = ForObjectDetectionLoss
    double: Any = x.dtype  # in the place of a device: where, or as what, weights of classes are
    return loss(scores[-1], labels, double, boxes[-1], config, scores, boxes)[0]


def our_loss(found: Detections, true: TrueObjects) -> Tensor:
    matched = match(found, true, Weights(), no_object=True)
    losses = set_losses(found, true, matched, Weights(), no_object=True, aligned=False)
    return torch.stack([*losses.values()]).sum() / true.there.sum()


@pytest.mark.parametrize("filled_up", [False, True])
def test_learns_the_same_from_a_batch(filled_up: bool) -> None:
    twins, x = DetrTwins.built(), images(3, 3, 96, 96)
    inside = partly(3, 96, 96) if filled_up else None
    if inside is not None:
        x = x * inside[:, None]
    listed, true = truth()
    for parameter in twins.theirs.parameters():
        parameter.requires_grad_(True)
    theirs = their_loss(twins.theirs, x, inside, listed)
    ours = our_loss(twins.ours.train()(x, inside), true)
    close(ours, theirs)
    theirs.backward()
    ours.backward()
    gradients = {name: p.grad for name, p in twins.theirs.named_parameters() if p.grad is not None}
    own = {name: p.grad for name, p in twins.ours.named_parameters() if p.grad is not None}
    expected = to_ours(LIBRARIES["huggingface-5"], gradients, own)
    assert expected.keys() == own.keys()
    learnt = [name for name, p in twins.ours.named_parameters() if p.requires_grad]
    assert sorted(learnt) == sorted(own)
    assert any(name.startswith("image_encoder.encoder.conv1") for name in own)
    for name, gradient in own.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-5, msg=name)


def counted(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detr-r50", "detr-r101"])
def test_has_as_many_parameters_as_published(name: str) -> None:
    """Theirs does not count what BatchNorm multiplies by and adds, for it is frozen."""
    config, dilated = PRESETS[name], PRESETS[f"{name}-dc5"]
    assert isinstance(config, DetrConfig)
    with torch.device("meta"):
        ours, theirs = config.build(), HF.DetrForObjectDetection(their_config(config))
        assert counted(dilated.build()) == counted(ours)
    norms = sum(counted(part) for part in ours.modules() if isinstance(part, nn.BatchNorm2d))
    assert counted(ours) - norms == counted(theirs)
    published = {"detr-r50": (41_524_768, 53_120), "detr-r101": (60_464_672, 105_344)}
    assert (counted(theirs), norms) == published[name]

"""What any DETR must do: see no more than it may, and find the same whatever lies beside it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.models.detection.config import DetrConfig
from saccade.models.detection.detr import Detections, Detr
from tests.marks import one_fast
from tests.models.detection.twins import SMALL, images, shaken

BOXED = replace(SMALL, anchored=True, box_bias=True, no_object=False)
KINDS: dict[str, DetrConfig] = {
    "plain": SMALL,
    "anchored": replace(SMALL, anchored=True),
    "proposed": replace(BOXED, proposed=True),
    "two stages": replace(BOXED, proposed=True, stage=5, finer=4, frozen_norms=False),
}
SIDE = 128  # four cells by four, or eight by eight


def built(config: DetrConfig) -> Detr:
    torch.manual_seed(1)
    return shaken(config.build(), 1).double().eval()


def close(found: Detections, expected: Detections) -> None:
    torch.testing.assert_close(found.scores, expected.scores)
    torch.testing.assert_close(found.boxes, expected.boxes)
    assert found.weights == expected.weights


def partly(*sizes: tuple[int, int]) -> Tensor:
    inside = torch.zeros(len(sizes), SIDE, SIDE, dtype=torch.bool)
    for row, (height, width) in zip(inside, sizes):
        row[:height, :width] = True
    return inside


@pytest.mark.parametrize("kind", one_fast(KINDS))
@torch.no_grad()
def test_what_lies_beside_an_image_is_not_seen(kind: str) -> None:
    model, x = built(KINDS[kind]), images(2, 3, SIDE, SIDE)
    inside = partly((60, SIDE), (SIDE, 70))
    other = torch.where(inside[:, None], x, images(2, 3, SIDE, SIDE, seed=9))
    assert not torch.equal(x, other)
    close(model(other, inside), model(x, inside))
    assert not torch.allclose(model(x).scores, model(x, inside).scores)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_a_mask_that_leaves_all_there_changes_nothing(kind: str) -> None:
    model, x = built(KINDS[kind]), images(2, 3, SIDE, SIDE)
    close(model(x, partly((SIDE, SIDE), (SIDE, SIDE))), model(x))


@pytest.mark.parametrize("masked", one_fast([False, True]))
@pytest.mark.parametrize("kind", one_fast(KINDS))
@torch.no_grad()
def test_a_batch_is_found_as_one_at_a_time(kind: str, masked: bool) -> None:
    model, x = built(KINDS[kind]), images(3, 3, SIDE, SIDE)
    inside = partly((60, SIDE), (SIDE, 70), (SIDE, SIDE)) if masked else None
    together = model(x, inside)
    for row in range(3):
        alone = model(x[row, None], None if inside is None else inside[row, None])
        torch.testing.assert_close(alone.scores[:, 0], together.scores[:, row])
        torch.testing.assert_close(alone.boxes[:, 0], together.boxes[:, row])


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_groups_of_queries_do_not_see_one_another(kind: str) -> None:
    config = replace(KINDS[kind], groups=3, frozen_norms=True)
    model, x = built(config).train(), images(1, 3, SIDE, SIDE)
    before, one = model(x), config.queries
    model.queries.weight[one : 2 * one] += 1.0
    after = model(x)
    passes = len(before.scores) - config.proposed
    assert passes == 3 * config.depth
    for number in range(passes):
        place = number + config.proposed
        same = torch.equal(after.scores[place], before.scores[place])
        assert same == (number % 3 != 1), place


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_what_is_found_in_use_is_what_the_first_group_finds(kind: str) -> None:
    config = replace(KINDS[kind], groups=3, frozen_norms=True)
    model, x = built(config), images(2, 3, SIDE, SIDE)
    used, learning = model(x), model.train()(x)
    torch.testing.assert_close(learning.scores[-3], used.scores[-1])
    torch.testing.assert_close(learning.boxes[-3], used.boxes[-1])
    assert used.weights == (1.0,)
    assert sum(learning.weights) == pytest.approx(config.depth + config.proposed)


@torch.no_grad()
def test_queries_in_another_order_find_the_same_in_that_order() -> None:
    model, x = built(SMALL), images(2, 3, SIDE, SIDE)
    before, order = model(x), torch.tensor([3, 0, 4, 1, 2])
    model.queries.weight.copy_(model.queries.weight[order])
    after = model(x)
    torch.testing.assert_close(after.scores, before.scores[:, :, order])
    torch.testing.assert_close(after.boxes, before.boxes[:, :, order])


@torch.no_grad()
def test_boxes_begin_as_those_before_them() -> None:
    torch.manual_seed(2)
    model = BOXED.build().double().eval()
    assert isinstance(model, Detr)
    assert model.anchors is not None
    boxes = model(images(2, 3, SIDE, SIDE)).boxes
    torch.testing.assert_close(boxes[0], model.anchors.sigmoid().expand(2, -1, -1))


@pytest.mark.parametrize("side", [32, 64])
def test_fewer_cells_than_queries_are_proposed_in_turns(side: int) -> None:
    model = built(replace(BOXED, proposed=True, groups=2)).train()
    found = model(images(2, 3, side, side))
    assert found.boxes.shape == (1 + 2 * SMALL.depth, 2, SMALL.queries, 4)
    cells = (side // 32) ** 2
    torch.testing.assert_close(found.boxes[0, :, 0], found.boxes[0, :, cells])


def test_frozen_stages_get_no_gradient_and_their_norms_do_not_move() -> None:
    model = built(replace(SMALL, frozen=3, frozen_norms=False)).train()
    before = {name: x.clone() for name, x in model.state_dict().items() if "running" in name}
    model(images(4, 3, 64, 64)).boxes.sum().backward()
    frozen = (
        "image_encoder.encoder.conv1",
        "image_encoder.encoder.bn1",
        "image_encoder.encoder.layer1",
        "image_encoder.encoder.layer2",
    )
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad != name.startswith(frozen), name
        assert (parameter.grad is None) == (name.startswith(frozen) or "to_scores" in name), name
    after = model.state_dict()
    for name, old in before.items():
        assert torch.equal(after[name], old) == name.startswith(frozen), name


def test_frozen_norms_do_not_move_anywhere() -> None:
    model = built(replace(SMALL, frozen=0, frozen_norms=True)).train()
    before = {name: x.clone() for name, x in model.state_dict().items() if "running" in name}
    model(images(4, 3, 64, 64)).boxes.sum().backward()
    after = model.state_dict()
    assert all(torch.equal(after[name], old) for name, old in before.items())
    learnt = {
        name for name, p in model.image_encoder.encoder.named_parameters() if p.grad is not None
    }
    assert "conv1.weight" in learnt
    assert not any("bn" in name or "downsample.1" in name for name in learnt)


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "heads": ({"heads": 3}, "width=16 must divide into heads=3, and into 4 for positions"),
    "proposed": ({"proposed": True}, "proposed needs queries that are boxes; add --model.anchored"),
    "bias": ({"box_bias": True}, "box_bias needs queries that are boxes; add --model.anchored"),
    "finer": (
        {"stage": 3, "finer": 4},
        "finer=4 must be below stage=3, or 0 for that stage alone",
    ),
    "stage": ({"stage": -1}, "stage=-1 must be 0 or more"),
}


@pytest.mark.parametrize("case", WRONG)
def test_settings_that_cannot_be_are_refused(case: str) -> None:
    given, says = WRONG[case]
    with pytest.raises(ConfigError) as error:
        replace(SMALL, **given)  # type: ignore[arg-type]
    assert str(error.value) == says

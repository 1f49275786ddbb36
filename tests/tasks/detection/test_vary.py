"""Boxes go where the pixels go."""

import pytest
import torch

from saccade.data.boxes import area
from saccade.errors import ConfigError
from saccade.tasks.detection.vary import VISIBLE, BoxVariation, VaryBoxes

SIDE = 64
ROWS = torch.arange(200)


def squares() -> tuple[torch.Tensor, torch.Tensor]:
    """A white square on black in each image, and its box."""
    rng = torch.Generator().manual_seed(0)
    images = torch.zeros(len(ROWS), 3, SIDE, SIDE, dtype=torch.uint8)
    boxes = torch.zeros(len(ROWS), 1, 4)
    for row in range(len(ROWS)):
        left, top = torch.randint(0, 40, (2,), generator=rng).tolist()
        wide, high = torch.randint(8, 24, (2,), generator=rng).tolist()
        images[row, :, top : top + high, left : left + wide] = 255
        boxes[row, 0] = torch.tensor([left, top, left + wide, top + high]) / SIDE
    return images, boxes


def bright(image: torch.Tensor) -> torch.Tensor:
    """The box around what is bright, as shares."""
    seen = image.mean(dim=0) > 0
    rows, columns = seen.any(dim=1).nonzero()[:, 0], seen.any(dim=0).nonzero()[:, 0]
    return torch.stack([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]) / image.shape[1]


@pytest.mark.parametrize("how", [VaryBoxes(flip=False, cut=0.0), VaryBoxes(), VaryBoxes(cut=1.0)])
@pytest.mark.parametrize("size", [64, 96])
def test_a_box_stays_around_its_object(how: VaryBoxes, size: int) -> None:
    images, boxes = squares()
    vary = BoxVariation(how, image=size)
    varied = vary.settle(ROWS, boxes, torch.ones(len(ROWS), 1, dtype=torch.bool), seed=1, epoch=2)
    drawn = vary.draw(ROWS, seed=1, epoch=2)
    shown = vary.shown(images, varied.cuts, drawn, size)
    assert shown.shape == (len(ROWS), 3, size, size)
    there = varied.there[:, 0]
    assert 0.5 < there.float().mean() <= 1
    for image, box in zip(shown[there], varied.boxes[there, 0]):
        assert (bright(image) - box).abs().max() < 2.1 / size


def test_what_is_cut_away_is_gone() -> None:
    _, boxes = squares()
    all_there = torch.ones(len(ROWS), 1, dtype=torch.bool)
    vary = BoxVariation(VaryBoxes(flip=False, cut=1.0, smallest=0.3), image=SIDE)
    varied = vary.settle(ROWS, boxes, all_there, seed=0, epoch=0)
    top, left, tall, wide = varied.cuts.T[:, :, None]
    scale = torch.stack([wide, tall, wide, tall], dim=2)
    moved = (boxes - torch.stack([left, top, left, top], dim=2)) / scale
    visible = area(moved.clamp(0, 1)) / area(moved)
    assert torch.equal(varied.there, visible >= VISIBLE)
    assert 0.1 < varied.there.float().mean() < 0.9
    assert not vary.settle(ROWS, boxes, ~all_there, seed=0, epoch=0).there.any()


def test_an_image_varies_alike_in_any_batch_and_otherwise_in_another_epoch() -> None:
    _, boxes = squares()
    there = torch.ones(len(ROWS), 1, dtype=torch.bool)
    vary = BoxVariation(VaryBoxes(scale=0.5, jitter=0.2), image=128)
    whole = vary.settle(ROWS, boxes, there, seed=3, epoch=5)
    some = ROWS[50:60]
    part = vary.settle(some, boxes[50:60], there[50:60], seed=3, epoch=5)
    assert torch.equal(whole.boxes[50:60], part.boxes)
    again = vary.settle(ROWS, boxes, there, seed=3, epoch=6)
    assert not torch.equal(whole.boxes, again.boxes)
    sizes = {vary.size(position, seed=3) for position in range(50)}
    assert sizes == {64, 96, 128}
    assert vary.size(7, seed=3) == vary.size(7, seed=3)


def test_half_are_mirrored() -> None:
    _, boxes = squares()
    there = torch.ones(len(ROWS), 1, dtype=torch.bool)
    for flip, share in ((True, 0.5), (False, 0.0)):
        cuts = (
            BoxVariation(VaryBoxes(flip=flip), image=SIDE)
            .settle(ROWS, boxes, there, seed=0, epoch=0)
            .cuts
        )
        assert (cuts[:, 3] < 0).float().mean().item() == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"cut": 1.5}, "cut=1.5 must be from 0 to 1"),
        ({"smallest": 0.0}, "smallest=0.0 and scale=1.0 must be above 0"),
        ({"jitter": -0.1}, "jitter=-0.1 must be from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        VaryBoxes(**settings)  # type: ignore[arg-type]

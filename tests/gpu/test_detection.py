"""Detection on a GPU: matching by its kernel, and the form for inference."""

from typing import Any

import pytest
import torch

from saccade.models.detection.detr import PRESETS, Detr
from saccade.models.inference.detector import DetectorForInference
from saccade.models.inference.scores import KeptForm
from saccade.tasks.detection.matching import assigned
from tests.gpu.precision import DEVICE

REASON = "objects are matched by it where there is no kernel"
optimize: Any = pytest.importorskip("scipy.optimize", reason=REASON)


@pytest.mark.parametrize(
    ("objects", "queries", "whole"),
    [(1, 1, False), (5, 5, False), (32, 100, False), (16, 16, True), (60, 300, False)],
)
def test_no_assignment_costs_less(objects: int, queries: int, whole: bool) -> None:
    rng = torch.Generator().manual_seed(objects)
    cost = 3 * torch.randn(7, 9, objects, queries, generator=rng)
    cost = cost.round() if whole else cost
    there = torch.rand(7, 9, objects, generator=rng) < 0.8
    found = assigned(cost.to(DEVICE), there.to(DEVICE)).cpu()
    for one, real, chosen in zip(cost.flatten(0, 1), there.flatten(0, 1), found.flatten(0, 1)):
        assert chosen[~real].eq(-1).all()
        assert len(chosen[real].unique()) == real.sum()
        rows, columns = optimize.linear_sum_assignment(one[real])
        least = one[real][rows, columns].sum()
        torch.testing.assert_close(one[real, chosen[real]].sum(), least, rtol=0, atol=1e-3)


def test_costs_that_are_no_numbers_end() -> None:
    cost = torch.full((1, 3, 4), torch.nan, device=DEVICE)
    found = assigned(cost, torch.ones(1, 3, dtype=torch.bool, device=DEVICE))
    assert len(found.unique()) == 3


@pytest.mark.parametrize("name", ["detr-nano", "detr-mobilenet"])
def test_the_form_for_inference_finds_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In full float32: else cells that are as likely are proposed in another order."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.manual_seed(0)
    model = PRESETS[name].build().eval().to(DEVICE)
    assert isinstance(model, Detr)
    kept, images = KeptForm(model, DetectorForInference), torch.randn(3, 3, 96, 128, device=DEVICE)
    with torch.no_grad():
        expected = model(images)
    for _ in range(2):  # the second is a replay
        found = kept(images, "float32")
        torch.testing.assert_close(found.scores, expected.scores, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(found.boxes, expected.boxes, rtol=1e-2, atol=1e-2)
    assert kept(images).boxes.isfinite().all()

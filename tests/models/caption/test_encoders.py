"""Any image encoder may be a captioner's: its cells are looked at where they lie."""

import pytest
import torch

from saccade.attention.look.looking import looking
from saccade.data.batching.rows import Rows
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.models.vision.encoders import ENCODERS

NANO = [name for name in ENCODERS if name.endswith(("-nano", "-mini"))]


@pytest.mark.parametrize("name", NANO)
def test_every_small_encoder_is_read_and_learns(name: str) -> None:
    torch.manual_seed(0)
    model = ShowAttendTellConfig(encoder=name, stage=0, width=16, vocabulary=20).build()
    images = torch.randint(256, (2, 3, 64, 64), dtype=torch.uint8)
    captions = Rows.of(torch.tensor([1, 5, 6, 1, 7]), torch.tensor([3, 2]))
    with looking(model, only="cross") as trace:
        told = model(images, captions, torch.arange(2))
    told.hidden.square().sum().backward()
    learnt = [p for p in model.image_encoder.parameters() if p.grad is not None and p.grad.any()]
    assert len(learnt) > 3
    (site,) = trace
    _, cells = trace.axes[site]
    assert cells.height * cells.width == trace[site].keys
    assert 0 < cells.lattice.middle(0)[0] < cells.lattice.middle(cells.width)[0] < 1

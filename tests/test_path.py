"""From the command to the softmax a reader passes few files."""

import sys
from pathlib import Path
from types import FrameType

import pytest
import torch.nn.functional as F

from saccade.app.cli.train import train_command

ROOT = Path(__file__).parent.parent / "saccade"
MOST = 12


class ReachedError(Exception):
    """The softmax is reached; nothing more is needed."""


@pytest.mark.slow
def test_a_dozen_files_lead_from_the_command_to_the_softmax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def attention(*args: object, **kwargs: object) -> object:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if ROOT in path.parents:
                seen.append(str(path.relative_to(ROOT)))
            frame = frame.f_back
        raise ReachedError

    monkeypatch.setattr(F, "scaled_dot_product_attention", attention)
    arguments = ["transformer", "--pairs", "40", "--train.device", "cpu", "--train.steps", "1"]
    with pytest.raises(ReachedError):
        train_command([*arguments, "--out", str(tmp_path / "run")])
    assert "attention/attend.py" in seen  # the formula's file lies on the path that runs
    assert len(set(seen)) <= MOST, list(dict.fromkeys(reversed(seen)))

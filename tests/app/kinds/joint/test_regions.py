"""Who says where regions are, where a model is scored on other data than its own."""

import json
from pathlib import Path

import pytest

from tests.app.joint_runs import write_images
from tests.app.test_classification import run
from tests.app.test_cli import Capture


@pytest.mark.slow
def test_other_data_are_scored_with_boxes_of_their_own(
    joint: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    """And what is too long is told of."""
    images = write_images(tmp_path / "images")
    asked = ["what colour is the ring?", "is it red? " * 400]
    rows = [{"image": "0.png", "question": text, "answers": ["red"]} for text in asked]
    data = images / "asked.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = run(capsys, "eval", joint["answering"], "--data", data)
    assert (code, "nobody says where they are" in err or "boxes" in err) == (2, True)
    code, out, _ = run(
        capsys, "eval", joint["answering"], "--data", data, "--boxes", images / "boxes.jsonl"
    )
    assert (code, "1 texts are too long for the model" in out) == (0, True)

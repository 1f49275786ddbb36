"""The card can be written whatever the figures are."""

import math
from pathlib import Path

import pytest

from saccade.tasks.base import Deciding
from saccade.train.storage.card import write_card
from saccade.train.storage.folder import RunFolder
from tests.train.small import small_recipe


@pytest.mark.parametrize("loss", [0.5, 709.9, 1e30])
@pytest.mark.parametrize("beside", [1.0, math.inf, math.nan])
def test_no_figure_is_too_large_for_the_card(loss: float, beside: float, tmp_path: Path) -> None:
    best = {"loss": loss, "perplexity": beside}
    write_card(RunFolder(tmp_path), small_recipe("x"), Deciding("loss", "loss"), best, 5)
    text = (tmp_path / "README.md").read_text()
    assert f"{loss:.4f}" in text
    assert ("perplexity" in text) == math.isfinite(beside)

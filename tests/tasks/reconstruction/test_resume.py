"""A run that was stopped goes on to the same bits: draws, temperature and weights."""

from dataclasses import replace
from pathlib import Path

import pytest

from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.tasks.reconstruction import data as reconstruction
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import HaltError, halt_at, hashes, ignore


@pytest.mark.slow
@pytest.mark.parametrize("augment", ["none", "crop"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    augment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconstruction, "HELD_BACK", 3)
    settings = ReconstructionSettings(image=32, scenes=10, beta_batches=3, cool_batches=9)
    recipe = replace(
        RECIPES["dvae"],
        model=DvaeConfig(image=32, codes=8, width=8, groups=2, patch=4, blocks=1, code_width=4),
        task=replace(settings, augment=augment),
        train=TrainSettings(
            steps=4,
            batch_tokens=4,
            accumulate=2,
            ema=0.9,
            validate_every=2,
            save_every=1,
            log_every=1,
            device="cpu",
        ),
    )
    train(recipe, tmp_path / "whole", ignore)
    with pytest.raises(HaltError):
        train(recipe, tmp_path / "broken", halt_at(3))
    train(recipe, tmp_path / "broken", ignore)
    assert hashes(tmp_path / "broken") == hashes(tmp_path / "whole")
    told = (tmp_path / "whole" / "metrics.jsonl").read_text()
    assert '"loss_laplace"' in told
    assert '"loss_kl"' in told

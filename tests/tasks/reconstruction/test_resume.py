"""A run that was stopped goes on to the same bits: draws, temperature and weights."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.tasks.reconstruction import data as reconstruction
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import HaltError, halt_at, ignore


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
    ours, theirs = (load_file(tmp_path / run / "model.safetensors") for run in ("whole", "broken"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    lines = [(tmp_path / run / "metrics.jsonl").read_text() for run in ("whole", "broken")]
    assert '"laplace"' in lines[0]
    assert '"kl"' in lines[0]

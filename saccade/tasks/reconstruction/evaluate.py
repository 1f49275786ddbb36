"""Scoring a discrete VAE on images that it was not trained on."""

import time
from typing import Any

import torch

from saccade.tasks.base import Progress, silent
from saccade.tasks.reconstruction.data import ReconstructionSettings, read_plain
from saccade.tasks.reconstruction.reconstructor import Reconstructor
from saccade.tasks.reconstruction.task import reconstruction_figures


def evaluate_reconstruction(
    tool: Reconstructor,
    *,
    split: str | None,
    settings: ReconstructionSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Figures of a split, as plain values."""
    read = read_plain(settings, split, reading)
    begun = time.perf_counter()
    with torch.inference_mode():
        found = reconstruction_figures(tool.model, read, tool.device, progress)
    config = tool.model.config
    return {
        "split": split or "all",
        "images": len(read),
        "codes": config.codes,
        "cells": config.grid**2,
        "seconds": time.perf_counter() - begun,
        **found,
        "dead": int(found["dead"]),
    }

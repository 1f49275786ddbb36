"""What an image encoder that stays as it is sees in all regions of a split, computed once and kept.

Kept as float32, whatever precision it was computed in: that of training.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.batching.kept_rows import KeptRows, Rows, kept_rows
from saccade.models.joint.vilbert import Vilbert
from saccade.models.weights_digest import weights_digest
from saccade.tasks.base import Progress
from saccade.tasks.images import cache_folder, digest
from saccade.tasks.joint.data import Sighted

VERSION = 1  # of what is kept
SEEN = 64  # images at a time


class SeenOnce(NamedTuple):
    """The features of regions end to end, how many each image has, the whole one counted, and
    where cells lie, if regions are cells.
    """

    rows: KeptRows
    counts: Int[Tensor, " I"]
    cells: Float[Tensor, "cells 4"] | None

    def features(self, images: Int[Tensor, " B"]) -> Float[Tensor, "B n F"]:
        """Of every region that images may have; zero where one has fewer."""
        counts, most = self.counts[images], torch.arange(int(self.counts.max()))
        first = (self.counts.cumsum(0) - self.counts)[images]
        there = most < counts[:, None]
        found = self.rows.take("features", (first[:, None] + most)[there])
        made = found.new_zeros(*there.shape, found.shape[1])
        made[there] = found
        return made


@torch.no_grad()
def see_once(
    model: Vilbert, sighted: Sighted, device: torch.device, progress: Progress
) -> SeenOnce:
    """What a model sees of all images, as it is now and in the precision that is set now."""
    cells = model.config.regions == "cells"

    def compute() -> Iterator[Rows]:
        for images in torch.arange(len(sighted)).split(SEEN):
            boxes = None if cells else sighted.boxes[images].to(device)
            seen = model.see(sighted.images[images].to(device), boxes)
            n = seen.features.shape[1]
            counts = torch.full_like(images, n) if cells else sighted.counts[images] + 1
            there = (torch.arange(n) < counts[:, None]).to(device)
            places = seen.boxes[0, 1:] if cells and not images[0] else seen.boxes[0, :0]
            yield {
                "features": seen.features.float()[there],
                "counts": counts,
                "cells": places.float(),
            }
            progress(int(images[-1]) + 1, len(sighted))

    rows = kept_rows(cache_folder(), "features", _key(model, sighted, device), compute)
    return SeenOnce(rows, rows.all("counts"), rows.all("cells") if cells else None)


def _key(model: Vilbert, sighted: Sighted, device: torch.device) -> str:
    """All that features depend on."""
    config, boxes = model.config, hashlib.sha256(sighted.counts.numpy().tobytes())
    boxes.update(sighted.boxes.numpy().tobytes())
    half = torch.is_autocast_enabled(device.type)
    precision = str(torch.get_autocast_dtype(device.type)) if half else "whole"
    how = [
        VERSION,
        config.encoder,
        config.stage,
        config.regions,
        model.image_encoder.bins,
        precision,
    ]
    parts = [digest(sighted.images), boxes.hexdigest(), weights_digest(model.image_encoder)]
    return json.dumps([*how, *parts])

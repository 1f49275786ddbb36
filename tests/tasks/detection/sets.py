"""Detections and true objects, drawn at random, in float64."""

import torch
from torch import Tensor

from saccade.models.detection.detr import Detections
from saccade.tasks.detection.matching import TrueObjects


def detections(passes: int, batch: int, queries: int, scores: int, seed: int = 0) -> Detections:
    draws = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(passes, batch, queries, scores, generator=draws, dtype=torch.float64)
    weights = tuple(1 / (1 + number) for number in range(passes))
    return Detections(z, _boxes((passes, batch, queries), draws), weights)


def objects(counts: list[int], room: int, classes: int, seed: int = 0) -> TrueObjects:
    """So many in each image, the first of its places."""
    draws = torch.Generator().manual_seed(seed + 500)
    there = torch.arange(room) < torch.tensor(counts)[:, None]
    labels = torch.randint(0, classes, there.shape, generator=draws)
    return TrueObjects(_boxes(tuple(there.shape), draws), labels, there)


def _boxes(shape: tuple[int, ...], draws: torch.Generator) -> Tensor:
    places, sizes = torch.rand(2, *shape, 2, generator=draws, dtype=torch.float64)
    return torch.cat([places, 0.05 + 0.4 * sizes], dim=-1)


def permuted(true: TrueObjects, seed: int) -> TrueObjects:
    """The objects of each image in another order, also among places that are empty."""
    draws = torch.Generator().manual_seed(seed)
    orders = torch.stack([torch.randperm(true.there.shape[1], generator=draws) for _ in true.there])
    boxes = true.boxes.gather(1, orders[..., None].expand_as(true.boxes))
    return TrueObjects(boxes, true.labels.gather(1, orders), true.there.gather(1, orders))

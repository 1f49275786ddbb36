"""A small ViLBERT, texts, images as boxes with features, and its plain twin."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.app.bench.peers.vilbert import PlainVilbert, copy_weights
from saccade.data.batching.rows import Rows
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams, Vilbert
from tests.models import zoo
from tests.models.encoders import rows_of, types_of

TINY = VilbertConfig(
    vocabulary=19,
    width=12,
    depth=3,
    heads=3,
    hidden=20,
    longest=12,
    region_width=16,
    region_depth=3,
    region_heads=2,
    region_hidden=18,
    joins=2,
    join_width=8,
    join_heads=2,
    dropout=0.0,
    encoder="resnet-mini",
    regions="boxes",
    contrast=True,
    region_classes=5,
)
TEXTS = [[4, 5, 6, 7, 2], [8], [9, 10, 4, 8, 2, 11, 12], [5, 18, 3]]
COUNTS = [3, 1, 6]  # regions of each image, the whole one counted
OF = torch.tensor([0, 2, 2, 1])  # the image of each text
SLOTS = 8


def built(config: VilbertConfig = TINY, dtype: torch.dtype = torch.float64) -> Vilbert:
    model = zoo.build(config, dtype)
    assert isinstance(model, Vilbert)
    return model


def regions_of(
    counts: list[int],
    features: int,
    *,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    slots: int | None = None,
) -> RegionRows:
    """So many regions in each image, the whole one first."""
    rng, total = torch.Generator().manual_seed(seed), sum(counts)
    corners = torch.rand(total, 2, 2, generator=rng, dtype=dtype).sort(dim=1).values.flatten(1)
    starts = torch.tensor([0, *counts]).cumsum(0).int()
    corners[starts[:-1]] = torch.tensor([0.0, 0, 1, 1], dtype=dtype)
    shown = torch.randn(total, features, generator=rng, dtype=dtype)
    equal = len(set(counts)) == 1
    places = counts[0] if equal else slots
    return RegionRows(shown, corners, starts, 16, places, equal)


def only(regions: RegionRows, image: int) -> RegionRows:
    """Those of one image."""
    here = slice(int(regions.starts[image]), int(regions.starts[image + 1]))
    count = here.stop - here.start
    starts = torch.tensor([0, count], dtype=torch.int32)
    return RegionRows(regions.features[here], regions.boxes[here], starts, 16, count, equal=True)


def read(model: Vilbert, texts: list[list[int]], regions: RegionRows, of: Tensor) -> Streams:
    rows = rows_of(texts)
    return model(rows, types_of(rows), regions, of)


class Pair(NamedTuple):
    """What a model makes of a text and its image."""

    words: Tensor
    regions: Tensor
    heads: dict[str, Tensor]


HEADS = ("fits", "answers", "pooled")


def pair_of(model: Vilbert, found: Streams, number: int) -> Pair:
    """One pair of many, without what fills its slots up."""
    assert found.beside is not None
    words = slice(int(found.word_starts[number]), int(found.word_starts[number + 1]))
    mine = found.beside.pair == number
    heads = dict[str, Tensor]()
    if model.pool_words is not None:
        heads["pooled"] = model.pooled(found)[number]
    if model.fit is not None:
        heads["fits"] = model.fits(found)[number]
    if model.answer is not None:
        heads["answers"] = model.answers(found)[number]
    if model.choose is not None:
        heads["chosen"] = model.chosen(found)[mine]
    if model.tells is not None:
        heads["told"] = model.told(found)[mine]
        heads["filled"] = model.output(model.transformed(found.words[words]))
    return Pair(found.words[words], found.regions[mine], heads)


def assert_same(found: Pair, expected: Pair, **tolerance: Any) -> None:
    tolerance = tolerance or {"atol": 1e-11, "rtol": 0}
    torch.testing.assert_close(found.words, expected.words, **tolerance)
    torch.testing.assert_close(found.regions, expected.regions, **tolerance)
    assert found.heads.keys() == expected.heads.keys()
    for name, wanted in expected.heads.items():
        torch.testing.assert_close(found.heads[name], wanted, **tolerance)


class Padded(NamedTuple):
    """Texts and the regions of their images as rectangles, as torch's own layers take them."""

    tokens: Tensor
    types: Tensor
    real: Tensor
    features: Tensor
    boxes: Tensor
    there: Tensor


def padded(rows: Rows, regions: RegionRows) -> Padded:
    places = Rows.of(torch.arange(len(regions.boxes)), regions.starts.diff().long())
    return Padded(
        rows.padded(),
        rows.rectangle(types_of(rows)),
        rows.rectangle(torch.ones_like(rows.tokens)).bool(),
        places.rectangle(regions.features),
        places.rectangle(regions.boxes),
        places.rectangle(torch.ones_like(places.tokens)).bool(),
    )


def twin(model: Vilbert) -> PlainVilbert:
    """The same model out of torch's own layers."""
    dtype = next(model.parameters()).dtype
    plain = PlainVilbert(model.config, model.image_encoder.features).to(dtype).eval()
    copy_weights(model, plain)
    return plain

"""ViLBERT beside a plain twin of torch's own layers, and the laws of its two streams."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from saccade.app.bench.peers.vilbert import copy_weights
from saccade.attention.look.looking import looking
from saccade.config import from_dict, to_dict
from saccade.data.batching.rows import BatchShape, Rows
from saccade.models import FAMILIES, PRESETS, family
from saccade.models.joint.config import JointHead, VilbertConfig
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams, Vilbert
from saccade.models.protocol import Capturable, HasLayers, StartsFromPublished
from tests.marks import one_fast
from tests.models.encoders import rows_of, types_of
from tests.models.joint.pairs import (
    COUNTS,
    OF,
    SLOTS,
    TEXTS,
    TINY,
    Padded,
    assert_same,
    built,
    only,
    padded,
    pair_of,
    read,
    regions_of,
    twin,
)

JOINT_HEADS: tuple[JointHead, ...] = ("pretraining", "answers", "fit", "regions")
WAYS: dict[str, tuple[list[int], int | None]] = {
    "equal": ([4, 4, 4], None),
    "unequal": (COUNTS, None),
    "unequal in slots": (COUNTS, SLOTS),
}
every_way = pytest.mark.parametrize("way", WAYS)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def some_regions(way: str, model: Vilbert, *, seed: int = 0) -> RegionRows:
    counts, slots = WAYS[way]
    dtype = next(model.parameters()).dtype
    return regions_of(counts, model.image_encoder.features, dtype=dtype, seed=seed, slots=slots)


@pytest.fixture(scope="module")
def model() -> Vilbert:
    return built()


def plain_pairs(found: tuple[Tensor, Tensor], given: Padded) -> Iterator[tuple[Tensor, Tensor]]:
    """The words and regions of each pair, without padding."""
    for x, y, real, there in zip(*found, given.real, given.there[OF]):
        yield x[real], y[there]


def moderate(dtype: torch.dtype) -> Vilbert:
    """Fresh weights: those of the zoo are so large that float32 has no five digits left."""
    torch.manual_seed(0)
    return Vilbert(TINY).to(dtype).eval()


@pytest.mark.parametrize("dtype", TOLERANCE)
@every_way
def test_both_streams_and_the_heads_are_those_of_the_plain_twin(
    way: str, dtype: torch.dtype
) -> None:
    model = built(dtype=dtype) if dtype is torch.float64 else moderate(dtype)
    plain, rows = twin(model), rows_of(TEXTS)
    regions = some_regions(way, model)
    found, given = read(model, TEXTS, regions, OF), padded(rows, regions)
    x, y = plain.alone(*given)
    x, y = plain.joined(x, y[OF], given.real, given.there[OF])
    near = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    for number, (words, seen) in enumerate(plain_pairs((x, y), given)):
        mine = pair_of(model, found, number)
        torch.testing.assert_close(mine.words, words, **near)
        torch.testing.assert_close(mine.regions, seen, **near)
        torch.testing.assert_close(mine.heads["pooled"], plain.pooled(x, y)[number], **near)
        torch.testing.assert_close(mine.heads["fits"], plain.fits(x, y)[number], **near)
        torch.testing.assert_close(mine.heads["told"], plain.tells(seen), **near)
        torch.testing.assert_close(mine.heads["filled"], plain.word_scores(words), **near)


def total(words: Tensor, regions: Tensor, pooled: Tensor) -> Tensor:
    """A number to which all states contribute, each by itself."""
    return words.cos().sum() + regions.sin().sum() + pooled.square().sum()


def assert_near(found: Tensor, expected: Tensor) -> None:
    """To so many digits of the largest: what is near zero is a sum of what is not."""
    error = (found - expected).abs().max() / expected.abs().max().clamp_min(1.0)
    assert error < TOLERANCE[expected.dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
@every_way
def test_gradients_are_those_of_the_plain_twin(way: str, dtype: torch.dtype) -> None:
    model = built(dtype=dtype) if dtype is torch.float64 else moderate(dtype)
    plain, rows = twin(model).train(), rows_of(TEXTS)  # no kernels for inference
    regions = some_regions(way, model)
    given = padded(rows, regions)
    shown = regions.features.requires_grad_()
    found = read(model, TEXTS, regions, OF)
    assert found.beside is not None
    mine = found.regions[found.beside.pair < len(TEXTS)]
    total(found.words, mine, model.pooled(found)).backward()
    features = given.features.detach().requires_grad_()
    x, y = plain.alone(*given._replace(features=features))
    x, y = plain.joined(x, y[OF], given.real, given.there[OF])
    parts = [torch.cat(some) for some in zip(*plain_pairs((x, y), given), strict=True)]
    total(*parts, plain.pooled(x, y)).backward()
    assert shown.grad is not None
    assert features.grad is not None
    assert_near(shown.grad, features.grad[given.there])
    learnt = {name: p.grad for name, p in plain.named_parameters() if p.grad is not None}
    ours = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    with torch.no_grad():  # named as the twin names weights
        for name, parameter in model.named_parameters():
            parameter.copy_(ours.get(name, torch.zeros(())))
    copy_weights(model, plain)
    for name, wanted in learnt.items():
        assert_near(plain.get_parameter(name).data, wanted)
    assert {"words.0.linear1.weight", "to_regions.1.key.weight", "lies.bias"} <= learnt.keys()


@pytest.mark.parametrize("head", one_fast(JOINT_HEADS))
@every_way
@torch.no_grad()
def test_a_pair_among_others_is_as_it_is_alone(way: str, head: JointHead) -> None:
    model = built(replace(TINY, head=head, labels=4))
    regions = some_regions(way, model)
    found = read(model, TEXTS, regions, OF)
    for number, text in enumerate(TEXTS):
        alone = read(model, [text], only(regions, int(OF[number])), torch.tensor([0]))
        assert_same(pair_of(model, found, number), pair_of(model, alone, 0))


@pytest.mark.slow
@given(seed=st.integers(0, 99), way=st.sampled_from(list(WAYS)))
@torch.no_grad()
def test_the_order_of_regions_orders_their_states_and_changes_nothing_else(
    seed: int, way: str
) -> None:
    model = built()
    regions, rng = some_regions(way, model, seed=seed), torch.Generator().manual_seed(seed)
    order = torch.cat(
        [
            torch.cat([torch.tensor([0]), 1 + torch.randperm(count - 1, generator=rng)]) + start
            for count, start in zip(WAYS[way][0], regions.starts.tolist())
        ]
    )  # the whole image stays first
    other = regions._replace(features=regions.features[order], boxes=regions.boxes[order])
    before, after = read(model, TEXTS, regions, OF), read(model, TEXTS, other, OF)
    for number, image in enumerate(OF.tolist()):
        here = order[regions.starts[image] : regions.starts[image + 1]] - regions.starts[image]
        old, new = pair_of(model, before, number), pair_of(model, after, number)
        heads = {**old.heads, "told": old.heads["told"][here]}
        assert_same(new, old._replace(regions=old.regions[here], heads=heads))


@torch.no_grad()
def test_a_word_and_a_region_each_tell_in_both_streams(model: Vilbert) -> None:
    regions = some_regions("unequal", model)
    before = pair_of(model, read(model, TEXTS, regions, OF), 0)
    texts = [[4, 5, 6, 13, 2], *TEXTS[1:]]
    by_word = pair_of(model, read(model, texts, regions, OF), 0)
    shown = regions.features.clone()
    shown[2] += 1
    by_region = pair_of(model, read(model, TEXTS, regions._replace(features=shown), OF), 0)
    for changed in (by_word, by_region):
        assert (changed.words[0] - before.words[0]).abs().max() > 1e-4
        assert (changed.regions[1] - before.regions[1]).abs().max() > 1e-4
    places = regions.boxes.clone()
    places[2] = torch.tensor([0.1, 0.2, 0.3, 0.9])
    moved = pair_of(model, read(model, TEXTS, regions._replace(boxes=places), OF), 0)
    assert (moved.words[0] - before.words[0]).abs().max() > 1e-4


@pytest.mark.parametrize("way", ["unequal", "unequal in slots", "equal"])
@torch.no_grad()
def test_what_fills_a_shape_changes_nothing(model: Vilbert, way: str) -> None:
    regions, rows = some_regions(way, model), rows_of(TEXTS)
    expected = read(model, TEXTS, regions, OF)
    filled = Rows.of(rows.tokens, rows.lengths, shape=BatchShape(32, 9, 8))
    of = torch.cat([OF, torch.zeros(5, dtype=torch.long)])
    found = model(filled, types_of(filled), regions, of)
    assert found.words.isfinite().all()
    assert found.regions.isfinite().all()
    for number in range(len(TEXTS)):
        assert_same(pair_of(model, found, number), pair_of(model, expected, number))


@every_way
@torch.no_grad()
def test_texts_and_images_can_be_paired_otherwise_than_they_came(model: Vilbert, way: str) -> None:
    regions, rows = some_regions(way, model), rows_of(TEXTS)
    alone = model.alone(rows, types_of(rows), regions)
    texts, of = torch.tensor([2, 0, 2, 1, 3, 3]), torch.tensor([0, 1, 1, 2, 2, 0])
    found = model.joined(alone, of, texts)
    for number, (text, image) in enumerate(zip(texts.tolist(), of.tolist())):
        one = read(model, [TEXTS[text]], only(regions, image), torch.tensor([0]))
        assert_same(pair_of(model, found, number), pair_of(model, one, 0))


@torch.no_grad()
def test_before_they_meet_neither_knows_the_other_and_cosines_compare_them(model: Vilbert) -> None:
    regions, rows = some_regions("unequal", model), rows_of(TEXTS)
    alone = model.alone(rows, types_of(rows), regions)
    other = model.alone(rows, types_of(rows), some_regions("unequal", model, seed=1))
    assert torch.equal(alone.words, other.words)
    assert not torch.equal(alone.regions, other.regions)
    z = model.compared(alone)
    contrast = model.contrast
    assert contrast is not None
    for text, x in enumerate(alone.first_words):
        for image, y in enumerate(alone.first_regions):
            a, b = contrast.of_words(x), contrast.of_regions(y)
            cosine = (a @ b / (a.norm() * b.norm())).item()
            scale = min(contrast.log_scale.exp().item(), 100)
            assert z[text, image].item() == pytest.approx(scale * cosine, rel=1e-5)


def test_it_says_what_it_can_do_and_has_only_its_heads_parts() -> None:
    parts = ("pool_words", "pool_regions", "words", "tells", "fit", "choose", "answer", "contrast")
    expected: dict[JointHead, set[str]] = {
        "pretraining": {"pool_words", "pool_regions", "words", "tells", "fit", "contrast"},
        "answers": {"pool_words", "pool_regions", "answer", "contrast"},
        "fit": {"pool_words", "pool_regions", "fit", "contrast"},
        "regions": {"choose", "contrast"},
    }
    for head in JOINT_HEADS:
        model = Vilbert(replace(TINY, head=head))
        assert {part for part in parts if getattr(model, part) is not None} == expected[head]
        assert isinstance(model, Capturable)
        assert isinstance(model, HasLayers)
        assert isinstance(model, StartsFromPublished)
        assert model.published is None
        assert len(model.layers_upwards()) == 3
    assert Vilbert(replace(TINY, contrast=False)).contrast is None
    assert Vilbert(replace(TINY, weights="encoder.pth")).published == Path("encoder.pth")
    assert model.slow_part is model.image_encoder.grid.encoder
    assert model.longest == TINY.most_words == 12


def linear(inside: int, outside: int) -> int:
    return inside * outside + outside


def layer(width: int, hidden: int, of: int | None = None, inner: int | None = None) -> int:
    """Queries, keys and values, what comes out, two norms and the MLP."""
    of, inner = of or width, inner or width
    attention = linear(width, inner) + 2 * linear(of, inner) + linear(inner, width)
    return attention + 4 * width + linear(width, hidden) + linear(hidden, width)


def test_the_published_size_has_the_parameters_of_the_formula() -> None:
    config = PRESETS["vilbert-base"]
    assert isinstance(config, VilbertConfig)
    with torch.device("meta"):
        model = Vilbert(config)
    counts = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    words, regions, joint = 768, 1024, 1024
    assert counts["embeddings"] == (30522 + 512 + 2 + 2) * words
    assert counts["encoder"] == 12 * layer(words, 3072)
    assert counts["region_input"] == linear(2048, regions) + linear(5, regions) + 2 * regions
    assert counts["region_encoder"] == 6 * layer(regions, 1024)
    to_words, to_regions = (
        layer(words, 3072, regions, joint),
        layer(regions, 1024, words, joint),
    )
    assert counts["joins"] == 6 * (to_words + to_regions)
    assert counts["pool_words"] + counts["pool_regions"] == linear(words, joint) + linear(
        regions, joint
    )
    assert counts["words"] == linear(words, words) + 2 * words + 30522
    assert counts["tells"] == linear(regions, regions) + 2 * regions + linear(regions, 1601)
    assert counts["fit"] == linear(joint, 1)


@pytest.mark.parametrize("head", one_fast(JOINT_HEADS))
def test_it_is_as_it_was_saved(head: JointHead, tmp_path: Path) -> None:
    config = replace(TINY, head=head, labels=4)
    model = built(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    again = from_dict(FAMILIES[family(config)], to_dict(config))
    assert again == config
    other = again.build().double().eval()
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    regions = some_regions("unequal", model)
    with torch.no_grad():
        for number in range(len(TEXTS)):
            assert_same(
                pair_of(other, read(other, TEXTS, regions, OF), number),
                pair_of(model, read(model, TEXTS, regions, OF), number),
            )


SITES = {
    **{f"encoder.{i}.self": ("text", "text") for i in range(3)},
    **{f"region_encoder.{i}.self": ("regions", "regions") for i in range(3)},
    **{f"joins.{i}.words.cross": ("words", "regions") for i in range(2)},
    **{f"joins.{i}.regions.cross": ("regions", "words") for i in range(2)},
}


def watched(model: Vilbert, images: Tensor, boxes: Tensor | None) -> tuple[Any, Streams]:
    with looking(model) as trace, torch.no_grad():
        regions = RegionRows.of(model.see(images, boxes), None)
        found = read(model, TEXTS[:2], regions, torch.tensor([0, 1]))
    return trace, found


def test_looking_sees_co_attention_both_ways(model: Vilbert) -> None:
    images = torch.randint(256, (2, 3, 32, 32), dtype=torch.uint8)
    boxes = torch.tensor([[[0.0, 0, 0.5, 1], [0.2, 0.1, 0.9, 0.8]]]).expand(2, -1, -1)
    model = built(dtype=torch.float32)
    trace, found = watched(model, images, boxes)
    assert {name: tuple(a.name for a in axes) for name, axes in trace.axes.items()} == SITES
    weights = trace.weights()
    assert weights.keys() == SITES.keys()
    for name in (name for name in SITES if name.startswith("joins")):
        seen = weights[name][0]  # of both pairs end to end
        assert seen.shape == (2, 6, 6)
        torch.testing.assert_close(seen.sum(dim=-1), torch.ones(2, 6))
    forth = weights["joins.0.words.cross"][0]
    assert not forth[:, :5, 3:].any()  # a text sees no other image's regions
    assert not forth[:, 5:, :3].any()
    back = weights["joins.0.regions.cross"][0]
    assert not back[:, :3, 5:].any()
    again = read(model, TEXTS[:2], RegionRows.of(model.see(images, boxes), None), torch.arange(2))
    assert torch.allclose(again.words, found.words, atol=1e-6)
    assert trace.axes["joins.0.words.cross"][1].kind == "tokens"


def test_what_is_seen_are_softmax_weights_of_the_twin() -> None:
    model = built(dtype=torch.float32)
    images = torch.randint(256, (2, 3, 32, 32), dtype=torch.uint8)
    boxes = torch.rand(2, 3, 2, 2).sort(dim=2).values.flatten(2)
    trace, _ = watched(model, images, boxes)
    seen = trace.weights()["joins.0.words.cross"][0]
    with torch.no_grad():
        rows = rows_of(TEXTS[:2])
        regions = RegionRows.of(model.see(images, boxes), None)
        given, plain = padded(rows, regions), twin(model)
        x, y = plain.alone(*given)
        meet: Any = plain.to_words[0]
        q, k = (
            part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (meet.query(x), meet.key(y))
        )
        expected = (q @ k.mT / 4**0.5).softmax(dim=-1)  # (B, N, T, S)
    torch.testing.assert_close(seen[:, :5, :4], expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen[:, 5:, 4:], expected[1][:, :1], rtol=1e-4, atol=1e-5)


def test_cells_are_told_as_a_grid_after_the_whole_image() -> None:
    model = built(replace(TINY, regions="cells", stage=3), dtype=torch.float32)
    images = torch.randint(256, (2, 3, 32, 48), dtype=torch.uint8)
    trace, found = watched(model, images, None)
    axis = trace.axes["joins.0.words.cross"][1]
    assert (axis.kind, axis.special) == ("grid", 1)
    cells = axis.height * axis.width
    assert len(found.regions) == 2 * (1 + cells)
    for name in ("region_encoder.0.self", "joins.1.regions.cross"):
        assert trace.axes[name][0] == axis
    assert axis.width * 32 == axis.height * 48

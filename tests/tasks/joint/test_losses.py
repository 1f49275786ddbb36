"""The losses of joint models against their formulas, and what is hidden and drawn for them."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.joint import losses
from saccade.tasks.joint.data import UNKNOWN
from saccade.tasks.joint.losses import (
    choose_regions,
    contrast_loss,
    fit_loss,
    hidden_regions,
    hidden_words,
    wrong_images,
)
from tests.models.joint.pairs import COUNTS, OF, SLOTS, TEXTS, TINY, built, read, regions_of

seeds = st.integers(0, 999)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=rng, dtype=torch.float64)


@given(seed=seeds, texts=st.integers(1, 7), images=st.integers(1, 4))
def test_contrast_is_that_of_two_loops(seed: int, texts: int, images: int) -> None:
    """Several texts may be about one image, and none about another."""
    z = 3 * drawn(texts, images, seed=seed)
    of = torch.randint(images, (texts,), generator=torch.Generator().manual_seed(seed))
    total = 0.0
    for text, own in enumerate(of.tolist()):
        of_text = sum(math.exp(z[text, image]) for image in range(images))
        of_image = sum(math.exp(z[other, own]) for other in range(texts))
        total -= math.log(math.exp(z[text, own]) / of_text)
        total -= math.log(math.exp(z[text, own]) / of_image)
    assert contrast_loss(z, of).item() == pytest.approx(total / texts / 2, rel=1e-9)


def log_sigmoid(z: float) -> float:
    return -math.log(1 + math.exp(-z))


@given(seed=seeds, texts=st.integers(1, 6))
def test_what_fits_is_that_of_a_loop(seed: int, texts: int) -> None:
    right, wrong = 2 * drawn(2, texts, seed=seed)
    of_right = -sum(log_sigmoid(z) for z in right.tolist()) / texts
    of_wrong = -sum(log_sigmoid(-z) for z in wrong.tolist()) / texts
    assert fit_loss(right, wrong).item() == pytest.approx((of_right + of_wrong) / 2, rel=1e-9)
    assert fit_loss(right, None).item() == pytest.approx(of_right, rel=1e-9)


class Seen:
    """A pass of a model over pairs, with regions hidden or not."""

    def __init__(self, model: Vilbert, *, slots: int | None = None) -> None:
        self.model = model
        self.regions = regions_of(COUNTS, model.image_encoder.features, slots=slots)
        self.found = read(model, TEXTS, self.regions, OF)

    def loss(self, chosen: Tensor, true: Tensor, pairs: int = len(TEXTS)) -> Tensor:
        return hidden_regions(self.model, self.found, self.regions, chosen, true, pairs)

    def asked(self, chosen: Tensor, pairs: int = len(TEXTS)) -> list[tuple[int, int]]:
        """Pair by pair, where a chosen region's state lies and which of all it is."""
        assert self.found.beside is not None
        every = zip(self.found.beside.which.tolist(), self.found.beside.pair.tolist())
        return [(at, r) for at, (r, pair) in enumerate(every) if pair < pairs and chosen[r]]


CHOSEN = torch.tensor([0, 1, 0, 0, 0, 1, 1, 0, 0, 1]).bool()
KINDS = torch.tensor([UNKNOWN, 2, 1, UNKNOWN, UNKNOWN, 0, UNKNOWN, 3, 4, 4])
ONE_EACH = (KINDS[:, None] == torch.arange(5)).double()


def said_by_a_detector(seed: int) -> Tensor:
    """Of some regions nobody has said anything."""
    said = (3 * drawn(len(KINDS), 5, seed=seed)).softmax(dim=1)
    said[0, :3] = 0  # what is impossible costs nothing
    return (said / said.sum(dim=1, keepdim=True)).masked_fill(KINDS[:, None] == UNKNOWN, 0)


@pytest.mark.parametrize("slots", [None, SLOTS])
@pytest.mark.parametrize("pairs", [4, 2])
def test_classes_of_hidden_regions_are_told_by_their_logarithms(
    slots: int | None, pairs: int
) -> None:
    with torch.no_grad():
        seen = Seen(built(), slots=slots)
        told = seen.model.told(seen.found).tolist()
    known = [(at, int(KINDS[r])) for at, r in seen.asked(CHOSEN, pairs) if KINDS[r] != UNKNOWN]
    assert len(known) == {4: 5, 2: 3}[pairs]
    total = 0.0
    for at, kind in known:
        total -= told[at][kind] - math.log(sum(map(math.exp, told[at])))
    loss = seen.loss(CHOSEN, ONE_EACH, pairs)
    assert loss.item() == pytest.approx(total / len(known), rel=1e-5)


@pytest.mark.slow
@given(seed=seeds)
def test_what_a_detector_says_of_hidden_regions_is_told_by_the_kl_divergence(seed: int) -> None:
    with torch.no_grad():
        seen, true = Seen(built()), said_by_a_detector(seed)
        told = seen.model.told(seen.found).float().double()
    assert seen.found.beside is not None
    asked = [(at, r) for at, r in seen.asked(CHOSEN) if KINDS[r] != UNKNOWN]
    at, regions = torch.tensor(asked).T
    log_q = told[at].log_softmax(dim=1)
    expected = F.kl_div(log_q, true[regions], reduction="sum") / len(asked)
    by_hand = sum(
        p * (math.log(p) - float(log_q[row, kind]))
        for row, region in enumerate(regions.tolist())
        for kind, p in enumerate(true[region].tolist())
        if p > 0
    )
    assert expected.item() == pytest.approx(by_hand / len(asked), rel=1e-6)
    found = seen.loss(CHOSEN, true).item()
    assert found == pytest.approx(expected.item(), rel=1e-5)
    assert found > 0


def test_its_gradient_is_that_of_the_plain_formula() -> None:
    model, true = built(), said_by_a_detector(3)
    weights, seen = list(model.parameters()), Seen(model)
    asked = [(at, r) for at, r in seen.asked(CHOSEN) if KINDS[r] != UNKNOWN]
    q = model.told(seen.found).softmax(dim=1)
    plain = torch.stack(
        [
            p * (p.log() - q[at, kind].log())
            for at, r in asked
            for kind, p in enumerate(true[r])
            if p
        ]
    )
    expected = torch.autograd.grad(plain.sum() / len(asked), weights, allow_unused=True)
    found = torch.autograd.grad(Seen(model).loss(CHOSEN, true), weights, allow_unused=True)
    told = 0
    for one, other in zip(found, expected):
        pair: tuple[Tensor | None, Tensor | None] = (one, other)
        if pair == (None, None):
            continue
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
        told += bool(one.any())
    assert told


@torch.no_grad()
def test_who_says_what_the_detector_says_loses_nothing() -> None:
    seen, true = Seen(built()), torch.zeros_like(ONE_EACH)
    at, region = seen.asked(CHOSEN, pairs=1)[0]
    true[region] = seen.model.told(seen.found)[at].softmax(dim=0)
    only = torch.zeros_like(CHOSEN)
    only[region] = True
    assert seen.loss(only, true, pairs=1).item() == pytest.approx(0, abs=1e-6)
    assert seen.loss(only, true.flip(1), pairs=1).item() > 1e-3


@pytest.mark.parametrize("slots", [None, SLOTS])
def test_without_classes_their_normalised_features_are_told(slots: int | None) -> None:
    with torch.no_grad():
        seen = Seen(built(replace(TINY, region_classes=0)), slots=slots)
        told = seen.model.told(seen.found)
    total, asked = 0.0, seen.asked(CHOSEN)
    for at, region in asked:
        true = seen.regions.features[region]
        true = (true - true.mean()) / (true.var(unbiased=False) + 1e-5).sqrt()
        total += sum((a - b) ** 2 for a, b in zip(told[at].tolist(), true.tolist())) / len(true)
    assert seen.loss(CHOSEN, ONE_EACH).item() == pytest.approx(total / len(asked), rel=1e-4)


@pytest.mark.parametrize("classes", [5, 0])
def test_where_nothing_was_hidden_nothing_is_lost_and_gradients_are_finite(classes: int) -> None:
    """Published code divides by the number of hidden regions, which may be zero."""
    model = built(replace(TINY, region_classes=classes))
    seen = Seen(model)
    nothing = torch.zeros_like(CHOSEN)
    loss = seen.loss(nothing, ONE_EACH)
    assert loss.item() == 0
    words = hidden_words(
        model, seen.found, torch.zeros(3, dtype=torch.long), torch.full((3,), IGNORED)
    )
    assert words.item() == 0
    (loss + words).backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    assert grads
    assert all(grad.isfinite().all() for grad in grads)
    assert not any(grad.any() for grad in grads)
    if classes:  # chosen, but nobody knows what they are
        assert seen.loss(CHOSEN, torch.zeros_like(ONE_EACH)).item() == 0


@torch.no_grad()
def test_hidden_words_are_those_of_the_output_layer_whatever_fills_up() -> None:
    model = built()
    seen = Seen(model)
    at, labels = torch.tensor([2, 5, 9]), torch.tensor([4, 18, 0])
    z = model.output(model.transformed(seen.found.words[at])).log_softmax(dim=-1)
    expected = -sum(z[i, label].item() for i, label in enumerate(labels.tolist())) / 3
    assert hidden_words(model, seen.found, at, labels).item() == pytest.approx(expected, rel=1e-6)
    more = torch.cat([at, torch.zeros(5, dtype=torch.long)])
    filled = torch.cat([labels, torch.full((5,), IGNORED)])
    assert hidden_words(model, seen.found, more, filled).item() == pytest.approx(expected, rel=1e-6)


def many(images: int, each: int, seed: int) -> RegionRows:
    return regions_of([1 + (each + n) % (each + 1) for n in range(images)], 2, seed=seed)


def shared(a: list[float], b: list[float]) -> float:
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(across, 0.0) * max(down, 0.0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return common / max(sum(areas) - common, 1e-9)


@given(seed=seeds)
def test_what_shares_much_with_an_emptied_region_is_emptied_too(seed: int) -> None:
    regions = many(6, 7, seed)
    torch.manual_seed(seed)
    chosen, emptied = choose_regions(regions, overlap=True)
    torch.manual_seed(seed)
    same, first = choose_regions(regions, overlap=False)
    assert torch.equal(chosen, same)
    assert (first <= chosen).all()
    boxes = regions.boxes.tolist()
    for start, end in pairwise(regions.starts.tolist()):
        assert not chosen[start]  # the whole image
        assert not emptied[start]
        for region in range(start + 1, end):
            near = any(
                first[other] and shared(boxes[region], boxes[other]) > 0.4
                for other in range(start, end)
            )
            assert bool(emptied[region]) == (bool(first[region]) or near)


def test_nothing_is_hidden_in_another_image() -> None:
    box = torch.tensor([[0, 0, 1, 1], [0.2, 0.2, 0.6, 0.6]], dtype=torch.float64)
    regions = RegionRows(
        torch.zeros(400, 1, dtype=torch.float64),
        box.repeat(200, 1),
        2 * torch.arange(201, dtype=torch.int32),
        16,
        2,
        equal=True,
    )
    torch.manual_seed(0)
    _, emptied = choose_regions(regions, overlap=True)
    torch.manual_seed(0)
    assert torch.equal(emptied, choose_regions(regions, overlap=False)[1])
    assert 0 < int(emptied.sum()) < 60


def test_about_fifteen_in_a_hundred_are_chosen_and_nine_in_ten_of_these_emptied() -> None:
    torch.manual_seed(0)
    regions = regions_of([11] * 2000, 1)
    chosen, emptied = choose_regions(regions, overlap=False)
    whole = torch.zeros_like(chosen)
    whole[regions.starts[:-1].long()] = True
    assert not (chosen & whole).any()
    assert int(chosen.sum()) / 20_000 == pytest.approx(losses.HIDDEN, abs=0.01)
    assert int((emptied & chosen).sum()) / int(chosen.sum()) == pytest.approx(0.9, abs=0.02)


def test_images_without_regions_have_nothing_to_hide() -> None:
    chosen, emptied = choose_regions(regions_of([1, 1, 1], 2), overlap=True)
    assert not chosen.any()
    assert not emptied.any()


@given(seed=seeds, images=st.integers(2, 9), scored=st.booleans())
def test_a_wrong_image_is_never_the_own(seed: int, images: int, scored: bool) -> None:
    torch.manual_seed(seed)
    of = torch.randint(images, (50,))
    z = 100 * (torch.arange(images) == of[:, None]).double() if scored else None
    found = wrong_images(z, of, images)
    assert (found != of).all()
    assert found.min() >= 0
    assert found.max() < images


def test_the_likelier_a_wrong_image_seems_the_more_often_it_is_drawn() -> None:
    torch.manual_seed(0)
    z = torch.tensor([[9.0, 0.0, 1.0, 2.0]]).expand(20_000, -1)
    found = wrong_images(z, torch.zeros(20_000, dtype=torch.long), 4)
    shares = found.bincount(minlength=4) / 20_000
    expected = torch.tensor([-math.inf, 0.0, 1.0, 2.0]).softmax(dim=0)
    torch.testing.assert_close(shares, expected, atol=0.01, rtol=0)
    blind = wrong_images(None, torch.ones(20_000, dtype=torch.long), 4).bincount(minlength=4)
    torch.testing.assert_close(
        blind / 20_000, torch.tensor([1 / 3, 0, 1 / 3, 1 / 3]), atol=0.02, rtol=0
    )

"""The terms beside cross-entropy: by hand, and against the exact expectation over all glances."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical

from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import OURS
from saccade.models.caption.captioner import CaptionHidden, Glances
from saccade.models.caption.show_attend_tell import Baseline, ShowAttendTellConfig
from saccade.tasks.captioning.data import HardSettings
from saccade.tasks.captioning.losses import (
    captions_sums,
    negative_entropy,
    reinforced,
    score_function,
    uncovered,
)
from saccade.tasks.cross_entropy import IGNORED

START, END = OURS.start, OURS.end

CELLS, WORDS = 3, 2
TOY = ShowAttendTellConfig(vocabulary=6, width=4, hidden=3, dropout=0.0, glance="hard")
PICTURE = torch.randint(
    256, (1, 3, 8, 8 * CELLS), dtype=torch.uint8, generator=torch.Generator().manual_seed(3)
)
CAPTION = Rows.of(torch.tensor([START, 5]), torch.tensor([WORDS]))
LABELS = torch.tensor([5, END])
FIVE = torch.tensor([4, 4, 4, 4, END])
PLAIN = HardSettings(reinforce=float(WORDS), entropy=0.0)


def toy() -> Any:
    """Looks at three cells twice; all that it knows matters."""
    torch.manual_seed(0)
    model = TOY.build().double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("image_encoder."):
                parameter.add_(torch.randn(parameter.shape))
    return model


def along(model: Any, path: tuple[int, ...]) -> CaptionHidden:
    """What is told if the glances go this way."""
    left = list(path)
    model.cross_attention.draw = lambda a: torch.full_like(a[..., :1], left.pop(0)).long()
    found = model(PICTURE, CAPTION, torch.tensor([0]))
    assert found.looked.shape == (1, WORDS, CELLS)
    return found


def paths() -> list[tuple[int, ...]]:
    return list(product(range(CELLS), repeat=WORDS))


def expected_cost(model: Any) -> Tensor:
    """Over all ways, each with its own probability and its own cost; nothing is estimated."""
    total = torch.zeros((), dtype=torch.float64)
    for path in paths():
        found = along(model, path)
        chance = math.prod(found.looked[0, t, cell] for t, cell in enumerate(path))
        scores = model.output(found.hidden).log_softmax(dim=-1)
        total = total - chance * scores.gather(1, LABELS[:, None]).sum()
    return total


def mean_estimate(model: Any, baseline: float, settings: HardSettings = PLAIN) -> dict[str, Tensor]:
    """The gradient that training would take on average."""
    model.baseline.cost.fill_(baseline)
    total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for path in paths():
        found = along(model, path)
        assert found.glances is not None
        chance = found.glances.log_chance.sum().exp().detach()
        loss = reinforced(found, model.output, LABELS, CAPTION, settings, model.baseline)
        model.zero_grad()
        (chance * loss).backward()
        for name, parameter in model.named_parameters():
            total[name] += parameter.grad
    return total


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [0.0, 1.7, -3.0])
def test_on_average_the_gradient_is_that_of_the_expected_cost(baseline: float) -> None:
    """By differences: the law needs nothing of ours but the cost of each way and its chance.

    The published term has the mean cost of a word, so that as many words weigh it as there are.
    """
    model = toy()
    found, learnt = mean_estimate(model, baseline), list(model.parameters())
    for seed in range(2):
        rng = torch.Generator().manual_seed(seed)
        way = [torch.randn(p.shape, generator=rng, dtype=torch.float64) for p in learnt]
        costs = []
        with torch.no_grad():
            for pace in (1e-6, -2e-6):  # forth, and from there back to the other side
                torch._foreach_add_(learnt, way, alpha=pace)
                costs.append(expected_cost(model))
            torch._foreach_add_(learnt, way, alpha=1e-6)
        slope = (costs[0] - costs[1]) / 2e-6
        here = sum((found[name] * v).sum() for (name, _), v in zip(model.named_parameters(), way))
        torch.testing.assert_close(here, slope, atol=1e-7, rtol=1e-6)


def test_without_the_estimate_the_gradient_is_another() -> None:
    model = toy()
    model.zero_grad()
    expected_cost(model).backward()
    weight = "cross_attention.score.weight"
    exact = model.get_parameter(weight).grad.clone()
    torch.testing.assert_close(mean_estimate(model, 0.3)[weight], exact)
    for wrong in (0.0, 1.0, 2.5):
        other = mean_estimate(model, 0.3, HardSettings(reinforce=wrong, entropy=0.0))[weight]
        assert (other - exact).norm() > 0.05 * exact.norm()


def glanced(*, hard: float = 1.0, seed: int = 0) -> tuple[CaptionHidden, Tensor, Rows, Any]:
    """Three captions, the last of which does not count."""
    rng = torch.Generator().manual_seed(seed)
    captions = Rows.of(torch.ones(7, dtype=torch.long), torch.tensor([2, 4, 1]))
    labels = torch.tensor([4, 2, 3, 5, 4, 2, IGNORED])
    there = (torch.arange(4) < captions.lengths[:, None]).double()
    looked = torch.randn(3, 4, 5, generator=rng, dtype=torch.float64).softmax(dim=2)
    chance = torch.randn(3, 4, generator=rng, dtype=torch.float64) * there
    known = torch.randn(7, 3, generator=rng, dtype=torch.float64).requires_grad_()
    layer = OutputLayer(torch.randn(6, 3, generator=rng, dtype=torch.float64))
    glances = Glances(chance.requires_grad_(), torch.tensor(hard, dtype=torch.float64))
    return CaptionHidden(known, looked * there[:, :, None], glances), labels, captions, layer


def test_is_the_sum_of_its_terms_over_what_counts() -> None:
    told, labels, captions, layer = glanced()
    assert told.glances is not None
    assert told.looked is not None
    settings, baseline = HardSettings(reinforce=0.3, entropy=0.02), Baseline().double()
    baseline.cost.fill_(0.4)
    log_p = layer(told.hidden).log_softmax(dim=1)
    cost = [-log_p[i, label] for i, label in enumerate(labels[:6])]
    expected = sum(cost[:6])
    for row, words in ((0, [0, 1]), (1, [2, 3, 4, 5])):
        advantage = sum(cost[i] for i in words).item() / len(words) - 0.4
        expected = expected + 0.3 * advantage * told.glances.log_chance[row].sum()
        for t in range(len(words)):
            expected = expected - 0.02 * Categorical(told.looked[row, t]).entropy()
    found = reinforced(told, layer, labels, captions, settings, baseline)
    torch.testing.assert_close(found, expected)
    mean = sum(cost[:6]).item() / 6
    assert baseline.cost.item() == pytest.approx(0.9 * 0.4 + 0.1 * mean)


def test_soft_batches_have_no_estimate() -> None:
    told, labels, captions, layer = glanced(hard=0.0)
    assert told.glances is not None
    reinforced(told, layer, labels, captions, HardSettings(), Baseline()).backward()
    assert told.glances.log_chance.grad is None or not told.glances.log_chance.grad.any()


def test_captions_that_do_not_count_change_nothing_and_leave_the_baseline() -> None:
    told, labels, captions, layer = glanced()
    baseline = Baseline().double()
    baseline.cost.fill_(0.4)
    nothing = torch.full_like(labels, IGNORED)
    loss = reinforced(told, layer, nothing, captions, HardSettings(), baseline)
    loss.backward()
    assert told.glances is not None
    assert loss == 0
    assert baseline.cost == 0.4
    assert not told.hidden.grad.any()  # type: ignore[union-attr]
    assert not told.glances.log_chance.grad.any()  # type: ignore[union-attr]


def test_entropy_is_pushed_up_and_a_weight_of_zero_has_a_finite_slope() -> None:
    scores = torch.tensor([[[0.0, 2.0, -1.0, -2000.0]]], dtype=torch.float64, requires_grad=True)
    weights = scores.softmax(dim=2)
    assert weights[0, 0, 3] == 0
    loss = negative_entropy(weights)
    loss.backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    entropy = Categorical(logits=scores[0, 0].detach()).entropy()
    torch.testing.assert_close(-loss.detach(), entropy)
    down = scores.detach() - 0.1 * scores.grad
    assert Categorical(logits=down[0, 0]).entropy() > entropy


def test_an_estimate_favours_what_cost_less_than_expected() -> None:
    chance = torch.zeros(2, 3, requires_grad=True)
    cost = torch.tensor([1.0, -2.0], requires_grad=True)
    score_function(cost, chance).backward()
    assert torch.equal(chance.grad, torch.tensor([[1.0] * 3, [-2.0] * 3]))  # type: ignore[arg-type]
    assert cost.grad is None


def test_sums_are_over_each_caption() -> None:
    captions = Rows.of(torch.ones(6, dtype=torch.long), torch.tensor([1, 3, 2]))
    assert captions_sums(torch.arange(6.0), captions).tolist() == [0, 6, 9]


@pytest.mark.parametrize("by", ["paper", "mean", "length"])
def test_cells_are_covered_when_each_is_looked_at_as_often_as_wanted(by: Any) -> None:
    told, labels, captions, _ = glanced()
    assert told.looked is not None
    total = 0.0
    for looked, length in zip(told.looked, captions.lengths[:2].tolist()):  # the last has no label
        wanted = length / 5 if by == "length" else 1.0
        for cell in range(5):
            total += (wanted - sum(looked[t, cell].item() for t in range(length))) ** 2
    expected = total / 5 if by == "mean" else total
    assert uncovered(told.looked, labels, captions, by).item() == pytest.approx(expected)
    even = torch.full((1, 10, 5), 0.2)
    even[0, 5:] = 0
    five = Rows.of(torch.ones(5, dtype=torch.long), torch.tensor([5]))
    assert uncovered(even[:, :5], FIVE, five, by).item() == pytest.approx(0, abs=1e-12)


def test_covering_evens_out_where_a_caption_looked() -> None:
    scores = torch.randn(1, 5, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    five = Rows.of(torch.ones(5, dtype=torch.long), torch.tensor([5]))
    before = uncovered(scores.softmax(dim=2), FIVE, five, "paper")
    before.backward()
    down = scores - 0.1 * scores.grad  # type: ignore[operator]
    after = uncovered(down.softmax(dim=2), FIVE, five, "paper")
    assert after < before

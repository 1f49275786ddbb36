"""Where it looks, what it reads there, and how single glances are drawn."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.axes import TARGET, Axis
from saccade.attention.look.looking import looking
from saccade.data.tokens.vocabulary import OURS
from saccade.errors import ConfigError
from saccade.models.caption.captioner import CaptionHidden
from saccade.models.caption.show_attend_tell import Baseline, ByTime, ShowAttendTellConfig
from tests.models.gallery import CAPTIONS, HARD, OF, PICTURES, SOFT, build, each, rows, told

START = OURS.start

EXACT = {"atol": 1e-10, "rtol": 0}
both = pytest.mark.parametrize("config", [SOFT, HARD], ids=["soft", "hard"])


def written_out(model: Any, caption: list[int], cells: Tensor, *, hard: bool) -> list[Tensor]:
    """The published equations, word by word, cell by cell: what is known, and all weights."""
    score, rnn, config = model.cross_attention.score, model.rnn.layers[0], model.config
    mean = torch.stack(list(cells)).mean(0)
    shared = torch.relu(model.first.weight @ mean + model.first.bias)
    h = torch.tanh(model.first_hidden.weight @ shared + model.first_hidden.bias)
    c = torch.tanh(model.first_cell.weight @ shared + model.first_cell.bias)
    known, looked = [], []
    for word in caption:
        query = score.of_query.weight @ h + score.of_query.bias
        e = [score.weight @ torch.tanh(query + score.of_key.weight @ cell) for cell in cells]
        raised = [math.exp(config.sharpness * float(x.detach())) for x in e]
        a = torch.tensor([x / sum(raised) for x in raised], dtype=torch.float64)
        z = cells[a.argmax()] if hard else sum(x * cell for x, cell in zip(a, cells))
        gate = model.cross_attention.gate
        z = torch.sigmoid(gate.weight @ h + gate.bias) * z
        y = model.embedding.weight[word]
        _, (h, c) = rnn(torch.cat([y, z])[None, None], (h[None, None], c[None, None]))
        h, c = h[0, 0], c[0, 0]
        deep = model.of_hidden.weight @ h + model.of_hidden.bias + y + model.of_context.weight @ z
        known.append(deep.tanh())
        looked.append(a)
    return [torch.stack(known), torch.stack(looked)]


@both
def test_computes_the_published_equations(config: ShowAttendTellConfig) -> None:
    model = build(config)
    found, (cells, _) = told(model), model.image_encoder(PICTURES)
    assert found.looked is not None
    hard = config.glance == "hard"
    for i, known in enumerate(each(CAPTIONS, found.hidden)):
        expected = written_out(model, CAPTIONS[i], cells[OF[i]], hard=hard)
        torch.testing.assert_close(known, expected[0], **EXACT)
        torch.testing.assert_close(found.looked[i, : len(CAPTIONS[i])], expected[1], **EXACT)


@both
def test_weights_sum_to_one_for_each_word_and_to_nothing_beyond(
    config: ShowAttendTellConfig,
) -> None:
    looked = told(build(config)).looked
    assert looked is not None
    lengths = torch.tensor([len(caption) for caption in CAPTIONS])
    expected = (torch.arange(6) < lengths[:, None]).double()
    torch.testing.assert_close(looked.sum(dim=2), expected)


def test_a_gate_that_is_shut_removes_the_picture() -> None:
    model = build(SOFT)
    other = [PICTURES, PICTURES.flip(0)]
    with torch.no_grad():
        model.cross_attention.gate.bias.fill_(-1e9)
    first, second = (told(model, pictures=x).hidden for x in other)
    assert not torch.allclose(first, second)  # the first state still comes from it
    with torch.no_grad():
        model.first.weight.zero_()
    first, second = (told(model, pictures=x).hidden for x in other)
    torch.testing.assert_close(first, second, **EXACT)


@both
def test_a_watcher_is_shown_where_it_looked(config: ShowAttendTellConfig) -> None:
    model = build(config)
    with looking(model, only="cross") as trace:
        looked = told(model).looked
    assert looked is not None
    assert trace.axes == {"cross": (TARGET, Axis("source", "grid", 4, 4, first=1 / 16, apart=1.0))}
    seen = trace.weights()["cross"][:, 0]
    if config.glance == "hard":
        there = looked.sum(dim=2, keepdim=True).round()
        looked = torch.nn.functional.one_hot(looked.argmax(dim=2), 16) * there
    torch.testing.assert_close(seen.double(), looked, atol=1e-6, rtol=0)


@both
def test_a_watcher_is_shown_the_same_step_by_step(config: ShowAttendTellConfig) -> None:
    model = build(config)
    with looking(model, only="cross") as trace:
        told(model)
    expected = trace.weights()["cross"][1]  # (1, T, cells)
    with looking(model, only="cross") as trace:
        state = model.start(PICTURES[1:])
        for word in CAPTIONS[1]:
            _, state = model.step(torch.tensor([word]), state)
    torch.testing.assert_close(trace.weights()["cross"][0], expected)


def drawn(seed: int, **changes: Any) -> CaptionHidden:
    model = build(replace(HARD, **changes)).train()
    model.image_encoder.eval()
    torch.manual_seed(seed)
    return told(model)


def test_glances_are_drawn_by_the_seed() -> None:
    first, again, other = (drawn(seed, soft_batches=0.0) for seed in (0, 0, 1))
    assert torch.equal(first.hidden, again.hidden)
    assert not torch.allclose(first.hidden, other.hidden)


def test_the_chance_of_a_glance_is_the_weight_of_its_cell() -> None:
    model = build(replace(HARD, soft_batches=0.0)).train()
    with looking(model, only="cross") as trace:
        found = told(model)
    assert found.glances is not None
    assert found.looked is not None
    single = trace.weights()["cross"][:, 0]
    chance = (single * found.looked).sum(dim=2)
    there = found.looked.sum(dim=2) > 0
    torch.testing.assert_close(found.glances.log_chance[there].exp(), chance[there])
    assert found.glances.log_chance[~there].eq(0).all()


def test_so_many_batches_are_soft() -> None:
    soft = drawn(0, soft_batches=1.0)
    assert soft.glances is not None
    assert soft.glances.hard == 0
    model = build(HARD)
    twin = build(replace(HARD, glance="soft"))
    torch.testing.assert_close(soft.hidden, told(twin).hidden, **EXACT)
    torch.manual_seed(0)
    site = model.train().cross_attention
    share = sum(float(site.hard()) for _ in range(400)) / 400
    assert 0.4 < share < 0.6
    assert site.eval().hard() == 1


def test_glances_fall_as_often_as_weights_say() -> None:
    site = build(HARD).train().cross_attention
    weights = torch.tensor([0.0, 0.6, 0.0, 0.3, 0.1, 0.0], dtype=torch.float64)
    torch.manual_seed(0)
    cells = site.draw(weights.expand(2000, 2, 6))
    shares = torch.bincount(cells.flatten(), minlength=6) / 4000
    torch.testing.assert_close(shares.double(), weights, atol=0.03, rtol=0)
    assert shares[weights == 0].eq(0).all()
    assert site.eval().draw(weights.expand(3, 2, 6)).eq(1).all()


def test_weights_that_are_no_numbers_still_draw_a_cell() -> None:
    site = build(HARD).train().cross_attention
    assert site.draw(torch.full((2, 1, 5), torch.nan)).lt(5).all()


@pytest.mark.parametrize("places", [True, False])
def test_equal_cells_are_told_apart_by_their_places_alone(places: bool) -> None:
    model = build(replace(SOFT, places=places))
    plain = torch.full((1, 3, 32, 32), 90, dtype=torch.uint8)
    cells, grid = model.image_encoder(plain)
    model.image_encoder.forward = lambda _: (cells[:, :1].expand_as(cells), grid)
    keys = model.start(plain).memory.keys[0]
    apart = torch.cdist(keys, keys) + torch.eye(len(keys))
    assert (apart.min() > 1e-3) if places else torch.equal(keys, keys[:1].expand_as(keys))


def test_words_by_time_come_back_to_their_places() -> None:
    captions = rows(CAPTIONS)
    by_time = ByTime.of(captions)
    assert by_time.going == [4, 3, 3, 2, 1, 1]
    numbers = torch.arange(14.0)[:, None]
    assert torch.equal(by_time.end_to_end(numbers[by_time.places]), numbers)
    square = by_time.rectangle(captions.tokens[by_time.places].double())
    expected = [[*caption, *[0] * (6 - len(caption))] for caption in CAPTIONS]
    assert square.tolist() == expected


def test_the_baseline_follows_costs_while_learning_and_passes_over_what_is_no_number() -> None:
    baseline = Baseline()
    assert list(baseline.state_dict()) == ["cost"]
    for cost, expected in ((2.0, 0.2), (4.0, 0.58), (math.nan, 0.58), (math.inf, 0.58)):
        baseline.follow(torch.tensor(cost), 0.9)
        assert baseline.cost == pytest.approx(expected)
    baseline.eval().follow(torch.tensor(9.0), 0.9)
    assert baseline.cost == pytest.approx(0.58)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 0}, "hidden=0 must be at least 1"),
        ({"soft_batches": 1.5}, "soft_batches=1.5 must be from 0 to 1"),
        ({"sharpness": 0.0}, "sharpness=0.0 must be more than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SOFT, **changes)

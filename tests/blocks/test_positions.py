"""Positional encodings: the formula, the desiderata, and how each rejected idea breaks one."""

import math

import pytest
import torch
from torch import Tensor

from saccade.blocks.positions import (
    ENCODINGS,
    Added,
    Concatenated,
    FixedPositions,
    GridPositions,
    LearnedPositions,
    fraction,
    make_positions,
    one_sinusoid,
    raw_index,
    saturating,
    sinusoids,
    sinusoids_2d,
)
from saccade.errors import ConfigError


def steps(count: int) -> Tensor:
    return torch.arange(count, dtype=torch.float64)


@pytest.mark.parametrize("width", [2, 6, 7])
def test_sinusoids_follow_the_formula(width: int) -> None:
    expected = torch.empty(50, width, dtype=torch.float64)
    for t in range(50):
        for i in range(width):
            frequency = 1 / 10000 ** (2 * (i // 2) / width)
            expected[t, i] = (math.sin if i % 2 == 0 else math.cos)(frequency * t)
    torch.testing.assert_close(sinusoids(steps(50), width), expected)


def test_sinusoids_are_unique_over_ten_thousand_positions() -> None:
    p = sinusoids(steps(10_000), 16)
    assert len(p.round(decimals=6).unique(dim=0)) == 10_000


@pytest.mark.parametrize("k", [1, 3, 100])
def test_the_distance_between_sinusoids_depends_on_the_gap_alone(k: int) -> None:
    p = sinusoids(steps(2000), 16)
    distances = (p[:-k] - p[k:]).norm(dim=1)
    torch.testing.assert_close(distances, distances[:1].expand_as(distances))


def test_sinusoids_are_bounded_far_beyond_any_training_length() -> None:
    assert sinusoids(steps(10) + 1e6, 16).abs().max() <= 1


def test_sinusoids_are_deterministic() -> None:
    assert torch.equal(sinusoids(steps(9), 4), sinusoids(steps(9), 4))


def test_the_raw_index_is_unbounded() -> None:
    assert raw_index(steps(1000), 4).max() == 999


def test_the_fraction_of_the_length_gives_a_position_another_value_in_another_sentence() -> None:
    assert fraction(steps(5), 4)[3, 0] == pytest.approx(3 / 5)
    assert fraction(steps(10), 4)[3, 0] == pytest.approx(3 / 10)


def test_a_saturating_function_soon_repeats_itself() -> None:
    p = saturating(steps(100), 4).float()
    assert p.abs().max() <= 1
    assert p[20].equal(p[99])


def test_one_sinusoid_comes_close_to_itself_within_every_period() -> None:
    p = one_sinusoid(steps(50), 4)[:, 0]
    assert (p[0] - p[44]).abs() < 0.02  # 44 is nearly seven turns
    assert (sinusoids(steps(50), 4)[0] - sinusoids(steps(50), 4)[44]).norm() > 0.3


def test_two_dimensional_sinusoids_tell_the_row_in_one_half_and_the_column_in_the_other() -> None:
    p = sinusoids_2d(3, 5, 8)
    assert p.shape == (3, 5, 8)
    for row in range(3):
        for column in range(5):
            assert torch.equal(p[row, column, :4], sinusoids(torch.arange(3.0), 4)[row])
            assert torch.equal(p[row, column, 4:], sinusoids(torch.arange(5.0), 4)[column])


def test_two_dimensional_sinusoids_need_an_even_width() -> None:
    message = r"^channels=7 must be even: half for rows, half for columns$"
    with pytest.raises(ConfigError, match=message):
        sinusoids_2d(2, 2, 7)


def test_positions_of_a_grid_are_its_sinusoids_row_by_row_whatever_grid_came_before() -> None:
    positions = GridPositions(8).double()
    for shape in ((2, 3), (3, 2), (3, 2), (2, 3)):
        assert positions(shape).dtype == torch.float64
        assert torch.equal(positions(shape), sinusoids_2d(*shape, 8).view(6, 8).double())
    assert positions.state_dict() == {}


@pytest.mark.parametrize("kind", [*ENCODINGS, "learned"])
def test_positions_from_a_start_are_the_tail_of_all_positions(kind: str) -> None:
    positions = make_positions(kind, longest=8, width=4)  # type: ignore[arg-type]
    assert positions is not None
    assert torch.equal(positions(3, 2), positions(0, 5)[3:])


@pytest.mark.parametrize("kind", [name for name in ENCODINGS if name != "fraction"])
def test_a_position_means_the_same_in_a_longer_sequence(kind: str) -> None:
    positions = FixedPositions(ENCODINGS[kind], 4)
    short = positions(0, 3).clone()
    assert torch.equal(positions(0, 100)[:3], short)
    assert torch.equal(positions(0, 3), short)


def test_fixed_positions_are_those_of_their_function() -> None:
    torch.testing.assert_close(
        FixedPositions(sinusoids, 6)(2, 7), sinusoids(steps(9), 6)[2:].float()
    )


def test_fixed_positions_are_not_stored_with_the_weights() -> None:
    positions = FixedPositions(sinusoids, 4)
    positions(0, 9)
    assert positions.state_dict() == {}


def test_fixed_positions_follow_their_module_to_another_precision() -> None:
    positions = FixedPositions(sinusoids, 4)
    assert positions(0, 2).dtype == torch.float32
    assert positions.double()(0, 20).dtype == torch.float64


def test_a_table_that_grew_leaves_the_old_one_where_captured_steps_read_it() -> None:
    positions = FixedPositions(sinusoids, 4)
    place, before = positions(0, 5).data_ptr(), positions(0, 5).clone()
    positions(0, 500)
    kept = [old for old in positions._outgrown if old.data_ptr() == place]  # pyright: ignore[reportPrivateUsage]
    assert torch.equal(kept[0][:5], before)


def test_a_learned_table_has_an_end_and_says_so() -> None:
    positions = LearnedPositions(5, 4)
    assert torch.equal(positions(2, 3), positions.table[2:])
    message = (
        r"^6 positions, but the model learnt only 5; give it less text, or train with a larger"
    )
    with pytest.raises(ConfigError, match=message):
        positions(5, 1)


def test_no_positions_are_none() -> None:
    assert make_positions("none", longest=8, width=4) is None


@pytest.mark.parametrize("start", [0, 3])
def test_added_is_the_sum_of_word_and_position(start: int) -> None:
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    expected = x + sinusoids(steps(8), 4).float()[start : start + 5]
    torch.testing.assert_close(Added(FixedPositions(sinusoids, 4))(x, start=start), expected)


@pytest.mark.parametrize("start", [0, 3])
def test_concatenated_mixes_word_and_position(start: int) -> None:
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    layer = Concatenated(FixedPositions(sinusoids, 6), width=4, position_width=6)
    p = sinusoids(steps(8), 6).float()[start : start + 5]
    of_word, of_position = layer.mix.weight[:, :4], layer.mix.weight[:, 4:]
    expected = x @ of_word.T + p @ of_position.T + layer.mix.bias
    torch.testing.assert_close(layer(x, start=start), expected)

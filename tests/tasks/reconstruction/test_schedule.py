"""β rises in a line, τ falls by half a cosine, as functions of the micro-batch alone."""

import pytest

from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.reconstruction.schedule import beta_at, temperature_at

PAPER = ReconstructionSettings()


def test_both_go_from_where_the_paper_begins_to_where_it_ends() -> None:
    assert (beta_at(0, PAPER), temperature_at(0, PAPER)) == (0, 1)
    assert beta_at(2500, PAPER) == pytest.approx(3.3)
    assert beta_at(5000, PAPER) == beta_at(10**6, PAPER) == 6.6
    assert temperature_at(75_000, PAPER) == pytest.approx((1 + 1 / 16) / 2)
    assert temperature_at(150_000, PAPER) == pytest.approx(1 / 16)
    assert temperature_at(10**6, PAPER) == temperature_at(150_000, PAPER)


def test_the_temperature_falls_slowly_first_and_last() -> None:
    falls = [
        temperature_at(at, PAPER) - temperature_at(at + 15_000, PAPER)
        for at in range(0, 150_000, 15_000)
    ]
    assert falls == pytest.approx(falls[::-1])
    assert falls[:5] == sorted(falls[:5])
    assert 0 < falls[0] < falls[4] / 3


def test_without_a_time_to_change_in_they_are_there_at_once() -> None:
    at_once = ReconstructionSettings(beta_batches=0, cool_batches=0)
    assert (beta_at(0, at_once), temperature_at(0, at_once)) == (6.6, 1 / 16)

"""Whatever takes a while says how far it is, how fast, and how long the rest will take."""

import pytest

from saccade.app.cli import output, pace, progress
from saccade.app.cli.output import counting
from saccade.app.cli.pace import Pace
from saccade.app.cli.progress import TrainingProgress
from saccade.train.events import DataProgress, Update, ValidationProgress


class Time:
    """A clock that goes when it is told to."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    for home in (output, pace, progress):
        monkeypatch.setattr(home, "time", clock)
    return clock


def test_rate_and_time_left_are_told_once_they_are_known(clock: Time) -> None:
    going = Pace()
    assert going.told("data", 1_000, 10_000) == "data 1,000/10,000"
    clock.now += 1
    assert going.told("data", 2_000, 10_000) == "data 2,000/10,000"
    clock.now += 1
    assert going.told("data", 3_000, 10_000) == "data 3,000/10,000  1,000/s  0:07 left"


def test_other_work_and_work_that_begins_again_has_a_pace_of_its_own(clock: Time) -> None:
    going = Pace()
    for what, total in (("data", 100), ("data", 50), ("validation", 50), ("validation", 50)):
        assert going.told(what, 1, total) == f"{what} 1/{total}"
        clock.now += 4
        assert going.told(what, 3, total).startswith(f"{what} 3/{total}  0.5/s  ")


def test_plain_lines_tell_of_data_and_of_validations_now_and_then(
    clock: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = TrainingProgress(100)
    for done in range(1, 31):
        clock.now += 1
        shown(DataProgress(done, 30))
    for done in range(1, 13):
        clock.now += 1
        shown(ValidationProgress(done, 12))
    shown(Update(7, 0.5, 0.1))
    clock.now += 10
    shown(Update(8, 0.25, 0.1))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "data 3/30  1.0/s  0:27 left"
    assert lines[1] == "data 13/30  1.0/s  0:17 left"
    assert lines[3] == "validation 3/12  1.0/s  0:09 left"
    assert lines[-1] == "step      8/100  loss 0.250"
    assert len(lines) == 5


def test_counted_work_tells_its_rate_and_what_is_left_where_that_is_known(
    clock: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    for total in (60, None):
        with counting("reading") as progress:
            for done in range(1, 8):
                progress(2 * done, total)
                clock.now += 1
    told = ["reading 14/60  2.0/s  0:23 left", "reading 14  2.0/s"]
    assert capsys.readouterr().err.splitlines() == told

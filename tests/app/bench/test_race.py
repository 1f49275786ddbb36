"""Those who can run are compared; those who cannot are named."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.app.bench.race import (
    CheckedWork,
    Contender,
    Race,
    Workload,
    check_peers,
    choose,
    run_race,
)
from saccade.errors import ConfigError

JOB = Workload(title="sleep", tokens=100, floor_seconds=0.001, against="peer", agreement="same")
FASTEST = replace(JOB, against="")


def sleeper(seconds: float, agreement: float | None = None) -> Callable[[], CheckedWork]:
    return lambda: CheckedWork(lambda: time.sleep(seconds), agreement)


def broken() -> CheckedWork:
    raise RuntimeError("no compiler\nand a long story")


def race(*contenders: Contender, job: Workload = JOB) -> Race:
    return run_race(job, contenders, device=torch.device("cpu"), seconds=0.0, tell=print)


def test_the_ratio_says_how_many_times_as_fast_as_the_peer_one_is() -> None:
    found = race(Contender("saccade", sleeper(0.01)), Contender("peer", sleeper(0.03), padding=0.5))
    ours, peer = found.rows
    assert ours.ratio == pytest.approx(peer.milliseconds / ours.milliseconds)
    assert 1.5 < ours.ratio < 6
    assert peer.ratio == 1.0
    assert ours.tokens_per_second == pytest.approx(100 / (ours.milliseconds / 1000))
    assert ours.floor_share == pytest.approx(1 / ours.milliseconds)
    assert (ours.padding, peer.padding, ours.memory_mib) == (None, 0.5, None)


def test_where_no_peer_is_named_ratios_are_to_the_fastest() -> None:
    slow, quick = Contender("slow", sleeper(0.03)), Contender("quick", sleeper(0.01))
    found = race(Contender("saccade", sleeper(0)), slow, quick, job=replace(JOB, against=""))
    assert found.job.against == "quick"
    assert found.heading().endswith("; × is to quick")
    assert [row.ratio for row in found.rows if row.name == "quick"] == [1.0]
    alone = race(Contender("saccade", sleeper(0)), job=replace(JOB, against=""))
    assert (alone.job.against, alone.rows[0].ratio) == ("", None)


def test_work_done_many_times_in_a_run_is_counted_once() -> None:
    once = race(Contender("saccade", sleeper(0.02))).rows[0]
    four = race(Contender("saccade", sleeper(0.02)), job=replace(JOB, repeats=4)).rows[0]
    assert four.milliseconds == pytest.approx(once.milliseconds / 4, rel=0.5)
    assert four.tokens_per_second == pytest.approx(4 * once.tokens_per_second, rel=0.5)


def test_who_does_a_part_of_it_is_measured_by_what_all_would_take() -> None:
    def part() -> CheckedWork:
        return CheckedWork(lambda: time.sleep(0.02), share=0.1)

    ours, peer = race(Contender("saccade", sleeper(0.02)), Contender("peer", part)).rows
    assert (ours.share, peer.share) == (1.0, 0.1)
    assert peer.milliseconds == pytest.approx(10 * ours.milliseconds, rel=0.5)
    assert ours.ratio == pytest.approx(peer.milliseconds / ours.milliseconds)
    found = race(Contender("saccade", sleeper(0.02)), Contender("slow", part), job=FASTEST)
    assert found.remarks() == ["slow did 10.00% of it, from which its time is that of all"]
    three = race(
        Contender("saccade", sleeper(0)),
        Contender("slow", part),
        Contender("quick", sleeper(0.05)),
        job=FASTEST,
    )
    assert three.job.against == "quick"


def test_what_is_not_compared_has_no_column() -> None:
    found = race(Contender("saccade", sleeper(0)), job=replace(JOB, agreement=""))
    assert found.columns()[""] == ["saccade"]
    assert "same" not in found.columns()


def test_where_the_time_goes_is_told_of_the_whole_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.bench.race.time_by_group", lambda *_: {"product": 5.0})

    def part() -> CheckedWork:
        return CheckedWork(lambda: time.sleep(0.02), share=0.1)

    how: dict[str, Any] = {"device": torch.device("cpu"), "seconds": 0.0, "tell": print}
    found = run_race(replace(JOB, repeats=2), [Contender("saccade", part)], **how, profiled=True)
    spent, (row,) = found.spent["saccade"], found.rows
    assert spent["product"] == pytest.approx(25)
    assert spent["gaps"] == pytest.approx(row.milliseconds - 25)
    assert list(spent) == ["gaps", "product"]  # the most first


def test_the_first_run_has_a_column_of_its_own() -> None:
    waits = iter([0.1])
    slow_at_first = Contender("saccade", lambda: CheckedWork(lambda: time.sleep(next(waits, 0.0))))
    row = race(slow_at_first).rows[0]
    assert row.first_seconds >= 0.1
    assert row.milliseconds < 50


def test_a_peer_that_is_not_installed_is_named_and_never_made() -> None:
    found = race(Contender("saccade", sleeper(0)), Contender("peer", broken, "no_such_package"))
    assert found.absent == {"peer": "no_such_package is not installed"}
    assert [row.name for row in found.rows] == ["saccade"]
    assert found.rows[0].ratio is None  # nobody to compare with
    assert "×" not in found.heading()


def test_a_peer_that_fails_is_named_with_the_reason_in_one_line() -> None:
    found = race(Contender("saccade", sleeper(0)), Contender("peer", broken))
    assert found.absent == {"peer": "RuntimeError: no compiler"}


def test_a_peer_that_fails_without_a_word_is_named_all_the_same() -> None:
    def silent() -> CheckedWork:
        raise StopIteration

    found = race(Contender("saccade", sleeper(0)), Contender("peer", silent))
    assert found.absent == {"peer": "StopIteration"}


def test_our_own_failure_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="no compiler"):
        race(Contender("saccade-compiled", broken), Contender("peer", sleeper(0)))


def test_the_agreement_found_when_made_is_in_the_row() -> None:
    assert race(Contender("saccade", sleeper(0, 0.75))).rows[0].agreement == 0.75


def test_named_peers_are_chosen_and_ours_always() -> None:
    all_of_them = [Contender(name, sleeper(0)) for name in ("saccade", "a", "saccade-x", "b")]
    assert [one.name for one in choose(all_of_them, "")] == ["saccade", "a", "saccade-x", "b"]
    assert [one.name for one in choose(all_of_them, " b ,")] == ["saccade", "saccade-x", "b"]


def test_a_peer_that_nobody_knows_is_refused() -> None:
    check_peers("a, b", ("a", "b"))
    with pytest.raises(ConfigError, match="peers=c is not one of a, b"):
        check_peers("a,c", ("a", "b"))

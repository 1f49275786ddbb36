"""Speed and time left are those of the last seconds."""

import pytest

from saccade.train.clock import Clock


def test_the_clock_tells_tokens_and_time_of_the_last_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    clock = Clock()
    for seconds, tokens in ((0.5, 50), (1.0, 400)):
        now[0] += seconds
        clock.tick(tokens)
    assert clock.tokens_per_second == 0  # not known before two seconds have passed
    for seconds, tokens in ((1.5, 600), (1.0, 100), (1.5, 900)):
        now[0] += seconds
        clock.tick(tokens)
    assert clock.tokens_per_second == 400  # of the last 2.5 s
    assert clock.seconds_per_step == 1.25

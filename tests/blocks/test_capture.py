"""A captured call, on a GPU of paper: what is copied in, replayed and copied out."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.blocks import capture
from saccade.blocks.capture import CapturedCall


def test_new_inputs_lie_where_the_old_ones_lay_and_outputs_outlive_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[Tensor, Tensor]] = []
    modes: list[str] = []

    def double(given: list[Tensor], name: str) -> tuple[Tensor, str]:
        calls.append((given[0], 2 * given[0]))
        return calls[-1][1], name

    def replay() -> None:
        given, doubled = calls[-1]
        torch.mul(given, 2, out=doubled)

    def graph(_: Any, *, stream: Any, pool: Any, capture_error_mode: str) -> Any:
        modes.append(capture_error_mode)
        return nullcontext()

    stream = SimpleNamespace(wait_stream=lambda _: None)
    fakes = {
        "CUDAGraph": lambda: SimpleNamespace(replay=replay),
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "graph": graph,
        "stream": lambda _: nullcontext(),
        "synchronize": lambda: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(capture, "_on_gpu", lambda x: isinstance(x, Tensor))
    mine = torch.tensor([1.0])
    call = CapturedCall(double, [mine], "a")
    assert (len(calls), modes) == (2, ["thread_local"])  # warmed up, then captured
    found = [call([torch.tensor([x])], "a") for x in (3.0, 4.0)]
    assert [(float(x), name) for x, name in found] == [(6.0, "a"), (8.0, "a")]
    assert (len(calls), float(mine)) == (2, 1.0)

"""The bench of large models: as the trainer trains, and the same numbers split or whole."""

import json
from typing import Any

import pytest
import torch

from saccade.app.bench.floor import Machine, language_flops
from saccade.app.bench.scale import ScaleBench
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.text.gpt import GptConfig
from saccade.train.fit import Trainer

QUICK = ["scale", "--device", "cpu", "--seconds", "0", "--rows", "1", "--window", "8", "--json"]


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))


@pytest.mark.slow
def test_both_parts_are_measured_by_the_trainer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Trainer] = []
    init = Trainer.__init__

    def noted(self: Trainer, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(Trainer, "__init__", noted)
    bench_command([*QUICK, "--kept"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    large, split = found["results"]
    names = ["saccade-recomputed", "saccade-recomputed-split", "saccade-kept"]
    assert [row["name"] for row in large["rows"]] == names
    assert [row["agreement"] for row in large["rows"]] == [0, 0, 0]
    assert [row["name"] for row in split["rows"]] == ["saccade-whole", "saccade-split"]
    assert [row["agreement"] for row in split["rows"]] == [0, 0]
    assert [(one.settings.checkpoint_activations, one.layout.splits) for one in made] == [
        (1.0, False),
        (1.0, True),
        (0.0, False),
        (0.0, False),
        (0.0, True),
    ]
    assert large["job"]["tokens"] == 8
    assert large["rows"][0]["floor_share"] > 0


def test_counted_are_six_operations_for_each_weight_and_token_and_attention() -> None:
    config = GptConfig(vocabulary=50257, width=1600, depth=48, heads=25, longest=1024)
    with torch.device("meta"):
        weights = sum(p.numel() for p in config.build().parameters())
    assert weights == 1_557_611_200
    tokens, attention = 32 * 1024, 3 * 4 * 1600 * 48 * (1025 / 2)
    expected = tokens * (6 * weights + attention)
    assert language_flops(config, 32, 1024) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("option", ["model", "small"])
def test_what_is_no_gpt_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="'vit' is no preset of a GPT; try one of: gpt-nano, "):
        ScaleBench(**{option: "vit"})  # type: ignore[arg-type]


def test_sizes_are_checked() -> None:
    with pytest.raises(ConfigError, match="rows=0 must be at least 1"):
        ScaleBench(rows=0)

"""GPUs to plan for: known ones by name, others by their memory."""

import pytest
import torch

from saccade.errors import ConfigError
from saccade.train.devices.hardware import GPUS, Hardware
from saccade.train.devices.memory import device_memory

CPU = torch.device("cpu")


def test_memory_is_that_of_the_gpu_or_of_what_is_here() -> None:
    assert Hardware(gpu="a100").memory(CPU) == GPUS["a100"].memory == 80e9
    assert Hardware(gpu="48").memory(CPU) == 48e9
    assert Hardware().memory(CPU) == device_memory(CPU)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gpus": 0}, "gpus=0 must be at least 1"),
        ({"rate": -1.0}, "rate=-1.0 must be above 0: tokens a second of all GPUs"),
        ({"rate": float("nan")}, "rate=nan must be above 0"),
        ({"gpu": "c64"}, "gpu='c64' is not known here; give one of h200, .*, or its memory in GB"),
        ({"gpu": "-3"}, "gpu='-3' is not known here"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Hardware(**wrong)  # type: ignore[arg-type]

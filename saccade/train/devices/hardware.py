"""GPUs that a run is planned for, as their makers describe them."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from saccade.errors import ConfigError
from saccade.train.devices.memory import device_memory


class Gpu(NamedTuple):
    """A GPU as its maker describes it: bytes, and operations a second by precision."""

    memory: float
    bfloat16: float
    float32: float


GPUS = {
    "h200": Gpu(141e9, 989e12, 67e12),
    "h100": Gpu(80e9, 989e12, 67e12),
    "a100": Gpu(80e9, 312e12, 19.5e12),
    "a100-40": Gpu(40e9, 312e12, 19.5e12),
    "l40s": Gpu(48e9, 362e12, 91.6e12),
    "a10": Gpu(24e9, 125e12, 31.2e12),
    "rtx4090": Gpu(24e9, 165e12, 82.6e12),
    "t4": Gpu(16e9, 65e12, 8.1e12),
}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What to plan for.

    Args:
        gpus: how many there will be; each micro-batch is shared out among them.
        gpu: h200, h100, a100, a100-40, l40s, a10, rtx4090, t4, or its memory in GB; without it
            the device that is here.
        rate: tokens a second that all of them together make, if that is known.
    """

    gpus: int = 1
    gpu: str = ""
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.gpus < 1:
            raise ConfigError(f"gpus={self.gpus} must be at least 1")
        if not self.rate >= 0:
            raise ConfigError(f"rate={self.rate} must be above 0: tokens a second of all GPUs")
        if self.gpu and self.gpu not in GPUS and not self._gigabytes > 0:
            raise ConfigError(
                f"gpu={self.gpu!r} is not known here; give one of {', '.join(GPUS)}, or its "
                "memory in GB, such as --gpu 48"
            )

    @property
    def _gigabytes(self) -> float:
        try:
            return float(self.gpu)
        except ValueError:
            return 0.0

    def memory(self, here: torch.device) -> float:
        """Bytes of one of them."""
        if not self.gpu:
            return float(device_memory(here))
        return GPUS[self.gpu].memory if self.gpu in GPUS else self._gigabytes * 1e9

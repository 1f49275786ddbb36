"""Whether a model can be trained here at all, told before anything is allocated."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.train.fine_tuning import learning
from saccade.train.settings import TrainSettings

MOST_TENSORS = 10_000  # parameters by name; making even the outlines of more takes minutes
SMALLER = "lower --model.width, --model.depth, or what else makes it large"
FILLS = {Tensor.normal_, Tensor.uniform_} | {
    fill for name, fill in vars(nn.init).items() if name[0] != "_" and name[-1] == "_"
}
DRAWS: dict[Any, Any] = {torch.randn: torch.empty, torch.rand: torch.empty}
CGROUP = Path("/sys/fs/cgroup/memory.max")


class _TooManyError(Exception):
    pass


class _Unfilled(TorchFunctionMode):
    """Weights without memory need no numbers; to draw some, torch would load its compiler."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in FILLS:
            return args[0] if args else kwargs["tensor"]
        return DRAWS.get(func, func)(*args, **(kwargs or {}))


def outline(config: ModelConfig) -> nn.Module:
    """The model without the memory of its weights."""
    tensors = 0

    def count(module: nn.Module, name: str, parameter: object) -> None:
        nonlocal tensors
        tensors += 1
        if tensors > MOST_TENSORS:
            raise _TooManyError(f"over {MOST_TENSORS:,} tensors of weights")

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Unfilled(), torch.device("meta"):
            return config.build()
    except (_TooManyError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0][:100]
        raise ConfigError(f"no model of such sizes can be made ({reason}); {SMALLER}") from error
    finally:
        hook.remove()


def count_parameters(config: ModelConfig) -> int:
    """How many weights a model has, counted without making them."""
    return sum(p.numel() for p in outline(config).parameters())


def check_memory(config: ModelConfig, settings: TrainSettings, device: torch.device) -> None:
    """Refuse a model whose weights, gradients and optimizer alone need more than there is."""
    model, has = outline(config), _memory(device)
    count = sum(p.numel() for p in model.parameters())
    learns = sum(p.numel() for p in learning(model, settings))
    copies = 2 if settings.optimizer == "muon" else 3  # gradients, and what the optimizer keeps
    needs = count * (1 + bool(settings.ema)) + learns * copies
    needs *= 8 if settings.precision == "float64" else 4
    if needs > has:
        raise ConfigError(
            f"the model would have {count:,} weights: with gradients and the optimizer that is "
            f"{_size(needs)}, and {device.type} has {_size(has)}; {SMALLER}"
        )


def _size(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"


def _memory(device: torch.device) -> int:
    """Bytes of the device; what is neither a CPU nor CUDA shares the machine's, or has less."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(machine, int(CGROUP.read_text()))
    except (OSError, ValueError):  # not in a container, or one without a bound
        return machine

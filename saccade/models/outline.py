"""A model's modules without the memory of their weights: what sizes would make, before they do."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from saccade.config import ModelConfig
from saccade.errors import ConfigError

MOST_TENSORS = 10_000  # parameters by name; making even the outlines of more takes minutes
SMALLER = "lower --model.width, --model.depth, or what else makes it large"
FILLS = {Tensor.normal_, Tensor.uniform_} | {
    fill for name, fill in vars(nn.init).items() if name[0] != "_" and name[-1] == "_"
}


def _norms(weight: Tensor, power: int = 2, dim: int = 0) -> Tensor:
    """As many as weight normalization takes."""
    return weight.new_empty([size if at == dim else 1 for at, size in enumerate(weight.shape)])


def _sums(weight: Tensor, dim: tuple[int, ...]) -> Tensor:
    """As many as a sum over some dimensions leaves."""
    return weight.new_empty([size for at, size in enumerate(weight.shape) if at not in dim])


SHAPED_ALIKE: dict[Any, Any] = {
    torch.randn: torch.empty,
    torch.rand: torch.empty,
    torch.norm_except_dim: _norms,
    Tensor.sum: _sums,
}
SCALES = {Tensor.mul, Tensor.div, Tensor.mul_, Tensor.div_}


class _TooManyError(Exception):
    pass


class _Unfilled(TorchFunctionMode):
    """Weights without memory need no numbers: to draw or scale some, torch would load its
    compiler, which takes seconds.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in FILLS:
            return args[0] if args else kwargs["tensor"]
        if func in SCALES and not isinstance(args[1], Tensor):
            return args[0]
        return SHAPED_ALIKE.get(func, func)(*args, **(kwargs or {}))


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

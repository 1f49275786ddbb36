"""What an optimizer may do with each parameter, as the modules that own them declare it.

Torch's own modules are known by their type. A module of ours that has parameters of its own, or
that knows better about those of its parts, declares them.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from torch import nn


class Role(NamedTuple):
    """Whether weight decay pulls a parameter towards zero, and how many matrices it holds that
    Muon may turn: one, several stacked on each other (the gates of a cell), or none.
    """

    decays: bool
    matrices: int = 0


MATRIX = Role(decays=True, matrices=1)  # between vectors
TABLE = Role(decays=True)  # a matrix whose rows should not become alike, or that reads no vectors
FREE = Role(decays=False)  # biases, norms, embeddings, positions

GATES: dict[type[nn.Module], int] = {nn.RNN: 1, nn.GRU: 3, nn.LSTM: 4}


@runtime_checkable
class DeclaresRoles(Protocol):
    """A module that says what its parameters are, by their names within it."""

    def roles(self) -> dict[str, Role]: ...


def parameter_roles(model: nn.Module) -> Iterator[tuple[nn.Parameter, Role]]:
    """Every parameter with its role; what a module declares overrides what its parts do."""
    declared: dict[str, Role] = {}
    for path, module in reversed(list(model.named_modules())):
        known = module.roles() if isinstance(module, DeclaresRoles) else _of_torch(module)
        declared |= {f"{path}.{name}" if path else name: role for name, role in known.items()}
    for name, parameter in model.named_parameters():
        role = declared.get(name)
        plain = parameter.dim() < 2 or not parameter.requires_grad
        assert role is not None or plain, f"nobody declares {name}"
        yield parameter, role or FREE


def _of_torch(module: nn.Module) -> dict[str, Role]:
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        return {"weight": MATRIX}
    if isinstance(module, nn.Embedding):
        return {"weight": FREE}
    if type(module) in GATES:
        stacked = Role(decays=True, matrices=GATES[type(module)])
        return {name: stacked for name, x in module.named_parameters() if x.dim() > 1}
    return {}

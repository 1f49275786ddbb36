"""A model of ours and what it is called in another library, or why it is not there."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, NoReturn

from torch import Tensor

from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models import family
from saccade.models.vision.swin import SwinConfig
from saccade.printable import printable

State = dict[str, Tensor]
ONNX = "--to onnx takes it"


def as_it_is(config: Any, state: State) -> State:
    """Nothing has to be changed."""
    return state


@dataclass(frozen=True)
class Counterpart:
    """A family of ours in another library.

    `settings` are theirs, of a config and the side of its images; `holds` are our fields that it
    has something for: any other must be at its default. `state` are our tensors, once they are
    what its module computes with.
    """

    name: Callable[[Any], str]
    settings: Callable[[Any, int], dict[str, Any]]
    holds: frozenset[str]
    state: Callable[[Any, State], State] = as_it_is
    more: tuple[tuple[str, Any], ...] = ()  # constants of the library's own file


def counterpart(
    known: dict[type[ModelConfig], Counterpart], config: ModelConfig, library: str
) -> Counterpart:
    """That of a model; refuses one which the library has not."""
    if type(config) not in known:
        raise ConfigError(f"{library} has no counterpart of {family(config)}; {ONNX}")
    found = known[type(config)]
    for one in fields(config):
        value, default = vars(config)[one.name], one.default
        usual = default if one.default_factory is MISSING else one.default_factory()
        if one.name not in found.holds and value != usual:
            refuse(config, library, one.name)
    return found


def refuse(
    config: ModelConfig, library: str, name: str, why: str = "", *, instead: str = ONNX
) -> NoReturn:
    """Say which setting a library has nothing for, and the way out."""
    value = printable(vars(config)[name])
    because = f" ({why})" if why else ""
    raise ConfigError(f"{library} has no {family(config)} with {name}={value}{because}; {instead}")


def check_windows(config: SwinConfig, image: int, library: str) -> None:
    """Refuse maps that windows do not tile: others fill those up with cells that are looked at."""
    side = image // config.patch
    for stage in range(len(config.depths)):
        if side < config.window or side % config.window:
            refuse(
                config,
                library,
                "window",
                f"the map of stage {stage + 1} is {side} × {side} for images of {image} pixels, "
                "which such windows do not tile",
            )
        side = -(-side // 2)

"""Settings as frozen dataclasses, and their way to and from plain dictionaries (JSON, TOML)."""

import dataclasses
import types
import typing
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from saccade.errors import ConfigError

Settings = TypeVar("Settings")


@dataclass(frozen=True, kw_only=True)
class ModelConfig(ABC):
    """Sizes of a model."""

    @abstractmethod
    def build(self) -> nn.Module:
        """Fresh weights, from torch's global random state."""

    def stands_in_for(self, other: "ModelConfig") -> bool:
        """Whether a recipe of the other model is one for this as well."""
        return type(self) is type(other)

    @property
    def kept(self) -> "ModelConfig":
        """What others go on from: all of it, unless a part is there for its training alone."""
        return self


@dataclass(frozen=True, kw_only=True)
class WordModelConfig(ModelConfig):
    """Sizes of a model that reads or writes words.

    Args:
        vocabulary: how many tokens it knows; training takes as many as the tokenizer has.
    """

    vocabulary: int = 8000

    @property
    def most_words(self) -> int | None:
        """How many tokens a text may have, start or end counted; None: any number."""
        return None


def check_positive(settings: Any, *names: str) -> None:
    """Refuse sizes below one."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ConfigError(f"{name}={getattr(settings, name)} must be at least 1")


def check_fraction(settings: Any, *names: str) -> None:
    """Refuse rates outside [0, 1)."""
    for name in names:
        if not 0 <= getattr(settings, name) < 1:
            raise ConfigError(f"{name}={getattr(settings, name)} must be at least 0 and below 1")


def to_dict(settings: Any) -> dict[str, Any]:
    """Nested plain values; the inverse of `from_dict`."""
    return dataclasses.asdict(settings)


def from_dict(kind: type[Settings], values: Any, *, where: str = "settings") -> Settings:
    """Build `kind` from untrusted plain values: each must be a known field of the right type."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where} must be a table of settings, not {type(values).__name__}")
    hints = typing.get_type_hints(kind)
    fields = {field.name for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for name, value in typing.cast(dict[Any, Any], values).items():
        if name not in fields:
            raise ConfigError(
                f"{where}.{name} is not a setting; there are: {', '.join(sorted(fields))}"
            )
        arguments[name] = _checked(hints[name], value, where=f"{where}.{name}")
    return kind(**arguments)


def _checked(hint: Any, value: Any, *, where: str) -> Any:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return from_dict(typing.cast(type[Any], hint), value, where=where)
    if origin is typing.Literal:
        if value not in options:
            raise ConfigError(f"{where}={value!r} must be one of: {', '.join(map(str, options))}")
        return value
    if origin in (list, tuple) and isinstance(value, list | tuple):
        items = typing.cast(list[Any], value)
        fixed = origin is tuple and options[-1] is not ...
        if fixed and len(items) != len(options):
            raise ConfigError(f"{where} must hold {len(options)} values, not {len(items)}")
        hints = options if fixed else options[:1] * len(items)
        return origin(_checked(one, item, where=where) for one, item in zip(hints, items))
    if origin is dict and isinstance(value, dict):
        named = typing.cast(dict[str, Any], value).items()
        return {key: _checked(options[1], one, where=f"{where}.{key}") for key, one in named}
    if origin in (types.UnionType, typing.Union):
        nested = [o for o in options if typing.get_origin(o) or dataclasses.is_dataclass(o)]
        if value is not None and nested:
            return _checked(nested[0], value, where=where)
        allowed = tuple(option for option in options if isinstance(option, type))
    else:
        allowed = (hint,)
    if float in allowed and type(value) is int:
        return float(value)
    if type(value) not in allowed:
        names = " or ".join(option.__name__ for option in allowed)
        raise ConfigError(f"{where}={value!r} must be {names}, not {type(value).__name__}")
    return value

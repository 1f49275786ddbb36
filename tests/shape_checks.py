"""Types and shapes checked at each call, for a fraction of what `jaxtyping.jaxtyped` takes.

That one binds the arguments of every call anew, checks them twice, and keeps a table of dimensions
for functions that have none. Here beartype checks each once, and only where a dimension may stand
is there a table, which holds for one call.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, config, install_import_hook, jaxtyped

Function = Callable[..., Any]
types_checked = beartype(conf=BeartypeConf(violation_type=TypeCheckError))


def check_calls(modules: list[str]) -> None:
    """Check whatever is imported from these modules from now on."""
    jaxtyping.jaxtyped = at_once  # what the hook writes above each function and class
    install_import_hook(modules, "tests.shape_checks.types_checked")


def at_once(*, typechecker: Callable[[Function], Function]) -> Callable[[Any], Any]:
    """Functions with their arguments and output checked, and dataclasses with their fields."""

    def decorate(made: Any) -> Any:
        if not isinstance(made, type):
            return checked(made, typechecker)
        if is_dataclass(made) and "__init__" in vars(made):
            made.__init__ = checked(made.__init__, typechecker)
        return made

    return decorate


def has_dimensions(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(map(has_dimensions, get_args(hint)))


def checked(function: Function, typechecker: Callable[[Function], Function]) -> Function:
    """The same dimension is of the same size in all that one call is given and gives."""
    if isgeneratorfunction(function):  # beartype would check it only when it is begun
        return jaxtyped(function, typechecker=typechecker)
    typed = typechecker(function)
    if not any(map(has_dimensions, function.__annotations__.values())):
        return typed

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        with jaxtyped("context"):
            return typed(*args, **kwargs)

    return call

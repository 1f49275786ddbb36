"""What `saccade` exports, what `saccade.load` gives for each kind of work, and what these give."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_args

import saccade
from saccade.app import api
from saccade.app.kinds import HOMES, kind_named
from saccade.app.look.traced import TracePage
from saccade.attention.look.glance import Glance
from saccade.attention.look.looking import Trace

_PRIVATE = re.compile(r"(?:, )?_\w+: [^,()]+(?=[,)])")
_HOME = re.compile(r"\b(?:\w+\.)+(?=[A-Z])|<class '([\w.]+)'>")


def api_markdown() -> str:
    """A section for what is exported, one for traces, and one for each kind of work."""
    exported = {f"saccade.{name}": _exported(name) for name in saccade.__all__}
    seen = {one.__name__: one for one in (Trace, Glance, TracePage)}
    parts = ["## What `saccade` exports", *(_entry(*pair) for pair in exported.items())]
    parts += ["## What was seen", *(_entry(*pair) for pair in seen.items())]
    return "\n\n".join([*parts, *_kinds()])


def _exported(name: str) -> Any:
    thing = getattr(saccade, name)
    return vars(api)[name] if isinstance(thing, ModuleType) else thing


def _kinds() -> Iterator[str]:
    """The models that `saccade.load` gives; kinds of work that share one are told together."""
    models: dict[type, list[str]] = {}
    for kind in HOMES:
        model = inspect.signature(kind_named(kind).load).return_annotation
        models.setdefault(model, []).append(kind)
    told = set[type]()
    for model, kinds in models.items():
        yield f"## A run of {', '.join(kinds)}"
        for one in [model, *_gives(model)]:
            if one not in told:
                told.add(one)
                yield _entry(one.__name__, one)


def _gives(model: type) -> list[type]:
    """The predictions of a model: classes of ours in what its methods return."""
    found: dict[type, None] = {}
    for _, method in _methods(model):
        for one in _flat(inspect.signature(method).return_annotation):
            if inspect.isclass(one) and one.__name__.endswith("Prediction"):
                found[one] = None
    return list(found)


def _flat(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _flat(part)


def _entry(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return _directive("function", _signature(name, thing), _doc(thing))
    members = [
        _directive("property", one, _doc(value))
        for one, value in vars(thing).items()
        if isinstance(value, property) and _public(one, value)
    ]
    members += [
        _directive("method", _signature(one, value, bound=True), _doc(value))
        for one, value in _methods(thing)
        if _public(one, value)
    ]
    error = issubclass(thing, BaseException)
    signature = name if error else _signature(name, thing)
    body = "\n\n".join([_doc(thing), *members])
    return _directive("exception" if error else "class", signature, body, fence="~~~~~~")


def _methods(thing: type) -> list[tuple[str, Callable[..., Any]]]:
    return [pair for pair in vars(thing).items() if inspect.isfunction(pair[1])]


def _public(name: str, thing: Any) -> bool:
    return not name.startswith("_") and bool(inspect.getdoc(thing))


def _signature(name: str, thing: Any, *, bound: bool = False) -> str:
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return name
    kept = list(signature.parameters.values())[1 if bound else 0 :]
    signature = signature.replace(parameters=[one for one in kept if one.name[0] != "_"])
    if inspect.isclass(thing):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    return name + _HOME.sub(lambda found: found[1] or "", str(signature)).replace("~", "")


def _doc(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").strip()


def _directive(kind: str, signature: str, body: str, *, fence: str = "~~~~~") -> str:
    return f"{fence}{{py:{kind}}} {signature}\n:no-index-entry:\n\n{body}\n{fence}"

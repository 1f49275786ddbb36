"""Python of a page that is not run: its names exist, and calls have keywords that are there."""

import ast
import builtins
import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


def check_snippet(code: str, known: dict[str, Any]) -> None:
    """Fail at a name of ours that does not exist; `known` grows by what the snippet binds."""
    tree = ast.parse(code)
    compile(tree, "a snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= dict(_imported(node))
    bound = {one.id for one in _names(tree, ast.Store)} | {
        one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)
    }
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for one in _names(tree, ast.Load):
        there = one.id in known or one.id in bound or hasattr(builtins, one.id)
        assert there, f"line {one.lineno}: nothing on this page says what {one.id} is"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _check_call(node, known)
        elif isinstance(node, ast.Attribute):
            _resolved(node, known)
    known |= {name: known.get(name) for name in bound}


def _names(tree: ast.AST, context: type) -> Iterator[ast.Name]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, context))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Any]]:
    """What an import binds; of packages that are not installed nothing is known."""
    home = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        where = home or alias.name
        if importlib.util.find_spec(where.partition(".")[0]) is None:
            assert not where.startswith("saccade")
            yield (alias.asname or alias.name, None)
            continue
        if not where.startswith(("saccade", "torch")):  # slow to import, and not ours to know
            yield (alias.asname or alias.name, None)
            continue
        module = importlib.import_module(where)
        if home:
            assert hasattr(module, alias.name), f"{home} has no {alias.name}"
            yield (alias.asname or alias.name, getattr(module, alias.name))
        else:
            top = importlib.import_module(where.partition(".")[0])
            yield (alias.asname or where.partition(".")[0], module if alias.asname else top)


def _resolved(node: ast.expr, known: dict[str, Any]) -> Any:
    """What an expression is, as far as modules and classes of ours tell it; None if they do not."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    home = _resolved(node.value, known)
    if isinstance(home, ModuleType) and home.__name__.startswith("saccade"):
        assert hasattr(home, node.attr), f"line {node.lineno}: {home.__name__} has no {node.attr}"
        return getattr(home, node.attr)
    return None


def _check_call(node: ast.Call, known: dict[str, Any]) -> None:
    called = _resolved(node.func, known)
    if called is None or not getattr(called, "__module__", "").startswith("saccade"):
        if not (isinstance(called, ModuleType) and called.__name__ == "saccade.train"):
            return
        called = importlib.import_module("saccade.app.api").train
    signature = inspect.signature(called)
    named = {one.arg: None for one in node.keywords if one.arg}
    if any(isinstance(one, ast.Starred) for one in node.args) or None in [
        k.arg for k in node.keywords
    ]:
        return
    try:
        signature.bind(*[None for _ in node.args], **named)
    except TypeError as error:
        pytest.fail(f"line {node.lineno}: {ast.unparse(node.func)}: {error}")

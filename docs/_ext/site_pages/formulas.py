"""Formulas beside the code that computes them, with its file and its lines."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
LONG = 60  # lines; what is longer is folded
_ROW = re.compile(r"^\| (.+?) \| (.+?) \| `(saccade/[\w/]+\.py::[\w.]+)` \|$", re.MULTILINE)


class Source(NamedTuple):
    """A function or class as it stands in its file, and where that is."""

    file: str
    first: int
    last: int
    code: str

    @property
    def place(self) -> str:
        lines = (
            f"line {self.first}"
            if self.first == self.last
            else f"lines {self.first} to {self.last}"
        )
        return f"{self.file}, {lines}"


@cache
def formulas() -> dict[str, list[tuple[str, str]]]:
    """Of each place in docs/formulas.md its formulas, and what they say in words."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for formula, words, place in _ROW.findall((ROOT / "docs" / "formulas.md").read_text()):
        rows.setdefault(place, []).append((formula, words))
    return rows


def source_of(place: str) -> Source:
    """The code that a place names: `saccade/attention/attend.py::attend`."""
    file, _, name = place.partition("::")
    text = (ROOT / file).read_text()
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = _within(node, part, place)
    decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
    first, last = min([node.lineno, *decorators]), node.end_lineno
    return Source(file, first, last, "\n".join(text.splitlines()[first - 1 : last]))


def _within(node: ast.AST, name: str, place: str) -> ast.AST:
    for child in ast.iter_child_nodes(node):
        targets = getattr(child, "targets", [getattr(child, "target", None)])
        if getattr(child, "name", None) == name or name in [getattr(x, "id", "") for x in targets]:
            return child
    raise LookupError(f"there is no {place}")


def formulas_markdown(places: list[str]) -> str:
    """Each place: its formulas, what they say, and the code."""
    return "\n\n".join(map(_one, places))


def _one(place: str) -> str:
    source = source_of(place)
    said = "\n".join(
        f'<p class="equation">{_escaped(formula)}</p>\n<p class="words">{_escaped(words)}</p>'
        for formula, words in formulas()[place]
    )
    count = source.last - source.first + 1
    folded = count > LONG
    opened = f"<details>\n<summary>All {count} lines</summary>\n\n" if folded else ""
    closed = "\n\n</details>" if folded else ""
    code = (
        f"~~~~{{code-block}} python\n:lineno-start: {source.first}\n"
        f":caption: {source.place}\n\n{source.code}\n~~~~"
    )
    where = f'<p class="place">{source.place}</p>\n' if folded else ""
    shown = f"{said}\n{where}\n{opened}{code}{closed}"
    return f'<div class="formula" data-place="{place}">\n{shown}\n\n</div>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

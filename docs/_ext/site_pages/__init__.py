"""Pages that are written from the code when the site is built, so that they cannot drift from it.

A page of docs/ says where by a comment, `<!-- site: recipes -->`, or lists the places of formulas
in a block of its own; what takes its place is Markdown. Whoever reads docs/ without building it
sees the sentences around.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from site_pages.api import api_markdown
from site_pages.command_line import command_line_markdown
from site_pages.finishing import finish
from site_pages.formulas import formulas_markdown
from site_pages.recipes import recipes_markdown

DOCS = Path(__file__).parents[2]


def other_guides() -> str:
    """Pages that the navigation does not name: a new one is a guide until it finds its place."""
    named = (DOCS / "index.md").read_text(encoding="utf-8")
    names = [path.stem for path in sorted(DOCS.glob("*.md")) if path.stem != "index"]
    return "\n".join(name for name in names if f"<{name}>" not in named)


WRITTEN: dict[str, Callable[[], str]] = {
    "recipes": recipes_markdown,
    "command-line": command_line_markdown,
    "python": api_markdown,
    "other-guides": other_guides,
}
_COMMENT = re.compile(r"^<!-- site: ([\w-]+) -->$", re.MULTILINE)
_FORMULAS = re.compile(r"^```formulas\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def written(source: str) -> str:
    """A page with what the code says put into it."""
    source = _COMMENT.sub(lambda found: WRITTEN[found[1]](), source)
    return _FORMULAS.sub(lambda found: formulas_markdown(found[1].split()), source)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's way in."""

    def read(app: Any, name: str, content: list[str]) -> None:
        content[0] = written(content[0])

    def written_out(app: Any, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            finish(Path(app.outdir))

    app.connect("source-read", read)
    app.connect("build-finished", written_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

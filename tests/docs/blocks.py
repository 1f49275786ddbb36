"""Every block of code in README.md and docs/, and what it says it is.

The first word after the fence names the language, the second what stands behind it:

    ```              commands, or a transcript if it begins with `$ `
    ```sh            commands: each is read by the real command line
    ```console       a transcript: its commands are read, and what they print must be marked
    ```python        names, imports and keywords are looked up in the API
    ```python run    is executed, after the blocks of its page that came before
    ```json, jsonl   is parsed
    ```text printed  what a command prints; the command is named beside it
    ```text layout   what files and folders look like

Where a transcript has times or rates, the sentence before or after it names the machine.
"""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = ("sh", "bash", "console")
OF_THE_SITE = ("formulas", "{toctree}")  # tests/docs/test_site.py asks what becomes of them


class Block(NamedTuple):
    """A block, where it is, and the paragraphs to both sides."""

    page: str
    line: int
    language: str
    mark: str
    text: str
    beside: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    lines, found = text.splitlines(), list[Block]()
    for token in MarkdownIt().parse(text):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        first, after = token.map
        language, _, mark = token.info.strip().partition(" ")
        if token.type == "code_block":
            language = "indented"
        elif not language:
            language = "console" if token.content.startswith("$ ") else "sh"
        beside = f"{_paragraph(lines[:first][::-1], -1)}\n{_paragraph(lines[after:], 1)}"
        name = str(page.relative_to(ROOT))
        found.append(Block(name, first + 1, language, mark, token.content, beside))
    return found


def _paragraph(lines: list[str], order: int) -> str:
    """The lines up to the next blank one, after blank ones that come first."""
    kept: list[str] = []
    for line in lines:
        if line.strip():
            kept.append(line)
        elif kept:
            break
    return " ".join(kept[::order])


def transcript_commands(block: Block) -> str:
    """What was typed in a transcript, or all of a block of commands."""
    if block.language != "console":
        return block.text
    typed = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.text, re.MULTILINE)
    return "\n".join(typed)


EVERY = [block for page in PAGES for block in blocks_of(page)]

"""Tables whose first line is a row: forms in which well-known data sets are given out.

Their columns have numbers, too, of which the user may choose others.

fastText            __label__pos a fine film         (a .txt file)
AG News, Yelp …     "3","A title","A description"    (a .csv file; names of classes in classes.txt)
STS benchmark       genre, file, year, number, score, sentence, sentence   (tabs, though named .csv)
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from saccade.data.readers.columns import Table, by_number, comma_table
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.find import NamedFile
from saccade.data.readers.text.lines import filled, lines, text_of
from saccade.errors import DataError

PREFIX = "__label__"
STS = ("genre", "filename", "year", "old_index", "score", "sentence1", "sentence2")
CLASSES = "classes.txt"
MOST_COLUMNS = 4  # class, title, question and answer of Yahoo's


def headless_form(file: NamedFile) -> str:
    """Which of these forms a file has; "" if none."""
    with suppress(DataError, BadRow):  # which reading it will tell
        if file.ending == "txt" and text_of(next(lines(file.path))).startswith(PREFIX):
            return "fasttext"
        if file.ending == "csv":
            tabs = text_of(next(lines(file.path))).split("\t")
            cells = comma_table(lines(file.path), str(file.path)).names
            numbered = cells[0].isdecimal() and any(" " in cell for cell in cells[1:])
            if len(tabs) >= len(STS) and tabs[4].replace(".", "", 1).isdecimal():
                return "sts"
            return "classes" * (2 <= len(cells) <= MOST_COLUMNS and numbered)
    return ""


def _fasttext(path: Path) -> Table:
    def record(raw: bytes | None) -> dict[str, Any]:
        words = filled(text_of(raw)).split(" ")
        count = next((n for n, word in enumerate(words) if not word.startswith(PREFIX)), len(words))
        labels = [word.removeprefix(PREFIX) for word in words[:count]]
        return {"label": labels[0] if count == 1 else labels, "text": " ".join(words[count:])}

    return Table(["label", "text"], lines(path), record)


def _numbered_classes(path: Path) -> Table:
    """Title and text are one text; in these files a line end is spelt as two characters."""
    name, beside = str(path), path.with_name(CLASSES)
    table = comma_table(lines(path), name, by_number(len(comma_table(lines(path), name).names)))
    names = [text_of(line).strip() for line in lines(beside)] if beside.is_file() else []

    def record(raw: Any) -> dict[str, Any] | None:
        fields = table.record(raw)
        if fields is None:
            return None
        label, *texts = (cell.replace("\\n", " ").strip() for cell in fields.values())
        if names and not (label.isdecimal() and 1 <= int(label) <= len(names)):
            raise BadRow(f"no such class: {label[:40]!r}, and {CLASSES} names {len(names)}")
        said = names[int(label) - 1] if names else label
        numbered = dict(zip(table.names, (said, *texts)))
        return {"label": said, "text": " ".join(filter(None, texts)), **numbered}

    return Table(["label", "text", *table.names], table.rows, record)


def _sts(path: Path) -> Table:
    """Rows of seven columns, or of nine where sources are named."""
    numbers = by_number(len(STS))

    def record(raw: bytes | None) -> dict[str, Any]:
        cells = filled(text_of(raw)).split("\t")
        if len(cells) < len(STS):
            raise BadRow(f"not {len(STS)} columns: {len(cells)} found")
        return {**dict(zip(STS, cells)), **dict(zip(numbers, cells))}

    return Table([*STS, *numbers], lines(path), record)


FORMS: dict[str, Callable[[Path], Table]] = {
    "fasttext": _fasttext,
    "classes": _numbered_classes,
    "sts": _sts,
}

"""Translation memories (TMX 1.4): a <tu> has a <tuv xml:lang="…"> with its <seg> in each language.

Codes of formatting inside a segment are no text; line ends and blanks in a row are one blank.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.lines import CHUNK, filled_pair, opened
from saccade.data.readers.text.records import Names, as_text, pair_names, refuse_unknown_order
from saccade.data.readers.text.records import shown_keys as shown
from saccade.errors import DataError
from saccade.printable import printable

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})


class _Units:
    """What an XML parser has met: the texts of each unit by language, and where it begins."""

    def __init__(self) -> None:
        self.ready = list[tuple[int, dict[str, str]]]()
        self._line, self._unit = 0, dict[str, str]()
        self._language, self._text, self._codes = "", list[str](), 0
        self._inside = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._line, self._unit = self.parser.CurrentLineNumber, {}
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif name == "seg":
            self._inside, self._text = True, []
        self._codes += name in _CODES

    def _end(self, name: str) -> None:
        if name == "seg":
            self._inside = False
            self._unit.setdefault(self._language, " ".join("".join(self._text).split()))
        elif name == "tu":
            self.ready.append((self._line, self._unit))
        self._codes -= name in _CODES

    def _characters(self, text: str) -> None:
        if self._inside and not self._codes:
            self._text.append(text)

    def _entity(self, *_: object) -> None:
        raise BadRow("entities of its own, which may hide others; take its DOCTYPE away")


def tmx_pairs(path: Path, asked: Names) -> Iterator[tuple[str, str] | Problem]:
    """The pair in each unit; its line is where the unit begins."""
    units, name = _Units(), str(path)
    try:
        with opened(path) as stream:
            while chunk := stream.read(CHUNK):
                units.parser.Parse(chunk)
                yield from _taken(units, name, asked)
            units.parser.Parse(b"", True)
    except (expat.ExpatError, BadRow, ValueError, LookupError) as error:
        raise DataError(
            f"{printable(name)} is not TMX: {printable(error)}; save it again"
        ) from None


def _taken(units: _Units, name: str, asked: Names) -> Iterator[tuple[str, str] | Problem]:
    for line, unit in units.ready:
        found = pair_names(list(unit), asked)
        if found is None:
            refuse_unknown_order(f"{printable(name)}:{line}", sorted(unit), asked)
            wanted = " and ".join(map(repr, asked[0])) if asked else "two languages"
            yield Problem(name, line, f"missing language: no {wanted}; it has {shown(unit)}")
            continue
        try:
            source, target = (as_text(unit[language], language) for language in found)
            yield filled_pair(source, target)
        except BadRow as bad:
            yield Problem(name, line, str(bad))
    units.ready.clear()

"""CoNLL: a word and its columns on each line, a blank line after each sentence.

Columns are parted by tabs, or else by blanks. The first is the word and the last its tag, unless
others are named; a first line that calls them so (word, tag) is passed over. CoNLL-U
(https://universaldependencies.org/format.html) is known by its ending or its ten columns: comments,
ranges such as 1-2 and empty nodes such as 8.1 are no words, and the tag is the universal part of
speech. CoNLL-2012 (OntoNotes) is known by its marks of documents; the tag is then that of named
entities, from brackets. A line that is wrong spoils its sentence.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from saccade.data.readers.labelled_texts.rows import LabelledText, TextColumns
from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.find import NamedFile
from saccade.data.readers.text.lines import lines, text_of
from saccade.errors import DataError
from saccade.printable import printable

MAX_WORDS = 10_000  # of one sentence: a file without blank lines is no CoNLL
PEEKED = 1_000  # lines that are looked at to know the form
UNIVERSAL = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT = "-DOCSTART-"
NO_TAG = "_"  # in CoNLL-U
_ID = re.compile(r"[0-9]+([-.][0-9]+)?")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
_COMMENT = re.compile(r"#\s*(id\b|\w+\s*=)")  # where a plain file has some, before a sentence
_DOCUMENTS = ("#begin document", "#end document")
_COLUMNS = {"universal": (1, 3), "2012": (3, 10), "plain": (0, -1)}  # of the word and of its tag
_WORD_NAME = re.compile(r"words?|tokens?|forms?", re.IGNORECASE)  # in a first line of names
_TAG_NAME = re.compile(r"(\w+[ _-])?(tags?|labels?)|ner|pos|upos", re.IGNORECASE)
_BRACKETS = re.compile(r"\(([\w-]+)(\*|\))|\*\)?")  # (ORG* … *) and (DATE)
UNPARTED = 200  # lines of a .txt
Lines = list[tuple[int, str | BadRow]]


@dataclass
class TaggedFile:
    """A file of sentences; where tags are not `needed`, they may be missing."""

    file: NamedFile
    columns: TextColumns
    needed: bool
    tagged: bool = field(default=True, init=False)
    passed_over: Counter[str] = field(default_factory=Counter[str], init=False)
    width: int = field(default=0, init=False)  # in columns, as the first word has it
    form: str = field(default="plain", init=False)

    def rows(self) -> Iterator[LabelledText | Problem]:
        """Each sentence."""
        name, universal = str(self.file.path), is_universal(self.file)
        self.form = "universal" if universal else "2012" if self._is_2012() else "plain"
        usual = _COLUMNS[self.form]
        word = self._place(self.columns.text, usual[0])
        tag = self._place(self.columns.label, usual[1])
        for place, block in enumerate(_blocks(self.file)):
            found = self._rows(block)
            if not place and not isinstance(found, Problem):
                found = found[_names_columns(found, word, tag) :]
            try:
                if isinstance(found, Problem):
                    yield found
                elif found:
                    yield self._sentence(found, word, tag, f"{name}:{block[0][0]}")
            except BadRow as bad:
                yield Problem(name, block[0][0], str(bad))

    @property
    def universal(self) -> bool:
        return self.form == "universal"

    def _is_2012(self) -> bool:
        """Whether it has CoNLL-2012's marks of documents; no blank line at all is another form."""
        seen = peek(self.file)
        if self.file.ending == "txt" and len(seen) > UNPARTED and all(map(str.strip, seen)):
            raise DataError(
                f"{printable(self.file.path)} has no blank line among its first {len(seen):,}, and "
                "in CoNLL one ends each sentence; texts with classes may be a .tsv or .csv whose "
                "first line names the columns, or lines as __label__NAME text"
            )
        return bool(seen) and seen[0].startswith(_DOCUMENTS)

    def _rows(self, block: Lines) -> list[list[str]] | Problem:
        """The columns of each word, or which line is bad."""
        rows: list[list[str]] = []
        if self.form == "2012":  # whose sentences have a column more for each of their verbs
            self.width = 0
        for number, line in block:
            try:
                if isinstance(line, BadRow):
                    raise line
                if cells := self._cells(line, first=not rows):
                    rows.append(cells)
            except BadRow as bad:
                return Problem(str(self.file.path), number, str(bad))
        return rows

    def _cells(self, line: str, *, first: bool) -> list[str]:
        """The columns of a word; none if the line holds no word."""
        cells = _split(line)
        if (
            cells[0] == DOCUMENT
            or line.startswith(_DOCUMENTS)
            or (self.universal and _NO_WORD.fullmatch(cells[0]))
        ):
            return []
        if first and line.startswith("#") and (self.universal or _COMMENT.match(line)):
            return []
        self.width = self.width or len(cells)
        if len(cells) != self.width:
            raise BadRow(f"not {self.width} columns: {len(cells)} found")
        return cells

    def _sentence(self, rows: list[list[str]], word: int, tag: int, where: str) -> LabelledText:
        if max(word, tag) >= self.width:
            raise BadRow(f"not {max(word, tag) + 1} columns: {self.width} found")
        words = tuple(cells[word] for cells in rows)
        if any(not one or one.isspace() for one in words):
            raise BadRow("empty: a line without a word")
        if len(words) > 1 and all(" " in one for one in words):
            raise BadRow(
                "not words: there are blanks in each; a table of texts has a first line that names "
                "its columns, such as text and label"
            )
        tags = tuple(cells[tag].strip() for cells in rows)
        if all(_BRACKETS.fullmatch(one) for one in tags):
            tags = _spans(tags)
        missing = ("", NO_TAG) if self.universal else ("",)
        untagged = tag % self.width == word or any(one in missing for one in tags)
        if untagged and self.needed:
            raise BadRow("no label: a word without a tag")
        return LabelledText((" ".join(words),), None if untagged else tags, words, where)

    def _place(self, given: str, usual: int) -> int:
        if not given:
            return usual
        if self.universal and given.lower() in UNIVERSAL:
            return UNIVERSAL.index(given.lower())
        if not re.fullmatch(r"[1-9][0-9]{0,3}", given):
            names = f", or one of {', '.join(UNIVERSAL)}" if self.universal else ""
            raise DataError(
                f"{printable(self.file.path)} has no column {given!r}: columns of CoNLL have no "
                f"names; give its number, 1 for the first{names}"
            )
        return int(given) - 1


def _names_columns(rows: list[list[str]], word: int, tag: int) -> bool:
    """Whether the first of some rows has names of columns: no text begins with `word` `tag`."""
    if not rows or max(word, tag) >= len(rows[0]):
        return False
    return bool(_WORD_NAME.fullmatch(rows[0][word]) and _TAG_NAME.fullmatch(rows[0][tag]))


def _spans(brackets: Sequence[str]) -> tuple[str, ...]:
    """Brackets around names, as CoNLL-2012 has them, as B- and I-."""
    tags, inside = list[str](), ""
    for one in brackets:
        begun = _BRACKETS.fullmatch(one)
        label = begun[1] if begun else None
        inside = label or inside
        tags.append(f"{'B' if label else 'I'}-{inside}" if inside else "O")
        inside = "" if one.endswith(")") else inside
    return tuple(tags)


def is_universal(file: NamedFile) -> bool:
    """Whether a file is CoNLL-U."""
    if file.ending == "conllu":
        return True
    words = (line for line in peek(file) if line.strip() and not line.startswith("#"))
    cells = next((line.split("\t") for line in words), [""])
    return len(cells) == len(UNIVERSAL) and bool(_ID.fullmatch(cells[0]))


def looks_tagged(file: NamedFile) -> bool:
    """Whether a table without names of columns has blank lines between sentences."""
    seen = peek(file)
    blank = next((place for place, line in enumerate(seen) if not line.strip()), 0)
    return blank > 0 and all(len(_split(line)) > 1 for line in seen[:blank])


def peek(file: NamedFile) -> Sequence[str]:
    """The first lines, as far as they are text."""
    found: list[str] = []
    for raw in islice(lines(file.path), PEEKED):
        try:
            found.append(text_of(raw))
        except BadRow:
            break
    return found


def _split(line: str) -> list[str]:
    if "\t" in line:
        return [cell.strip(" ") for cell in line.split("\t")]
    return re.split(" +", line.strip(" "))


def _blocks(file: NamedFile) -> Iterator[Lines]:
    """The numbered lines of each sentence; of one that is too long, its start and why it is bad."""
    block: Lines = []
    for number, raw in enumerate(lines(file.path), start=1):
        try:
            line: str | BadRow = text_of(raw)
        except BadRow as bad:
            line = bad
        if line and (isinstance(line, BadRow) or not line.isspace()):
            if len(block) < MAX_WORDS:
                block.append((number, line))
            elif len(block) == MAX_WORDS:
                why = f"too long: over {MAX_WORDS:,} words without a blank line"
                block.append((number, BadRow(why)))
        elif block:
            yield block
            block = []
    if block:
        yield block

"""As much of YAML as a `data.yaml` of YOLO needs: texts, lists and maps of them at the top.

    path: ../data            names: [cat, dog]        names:             names:
    train: images/train      names: {0: cat}            0: cat             - cat

Anything deeper is passed over.
"""

import re
from collections.abc import Iterator

Value = str | list[str] | dict[str, str]

_QUOTED = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
_KEY = rf"({_QUOTED}|[^\s,:'\"-][^,:]*):"
_TOP = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s+(.*))?$")
_ITEM = re.compile(r"\s*-(?:\s+(.*))?$")
_PAIR = re.compile(rf"\s+{_KEY}(?:\s+(.*))?$")
_FLOW_ITEM = re.compile(rf"\s*({_QUOTED}|[^,]+)\s*(?:,|$)")
_FLOW_PAIR = re.compile(rf"\s*{_KEY}\s+({_QUOTED}|[^,]+)\s*(?:,|$)")
_CLOSED_BY = {"[": "]", "{": "}"}
_BEFORE_QUOTES = ("", ":", "-", ",", "[", "{")


def little_yaml(text: str) -> dict[str, Value]:
    """What stands under each key at the top."""
    found: dict[str, Value] = {}
    key = ""
    lines = map(_without_comment, text.splitlines())
    for line in lines:
        if top := _TOP.match(line):
            key, rest = top[1], (top[2] or "").strip()
            found[key] = _flow(rest, lines) if rest[:1] in _CLOSED_BY else _scalar(rest)
        elif key:
            found[key] = _with_line(found[key], line)
    return found


def _with_line(held: Value, line: str) -> Value:
    """What is under a key, and a line below it: an item of a list, or a pair of a map."""
    if item := _ITEM.match(line):
        mine = held if isinstance(held, list) else []
        mine.append(_scalar(item[1] or ""))
        return mine
    if pair := _PAIR.match(line):
        pairs = held if isinstance(held, dict) else {}
        pairs[_scalar(pair[1])] = _scalar(pair[2] or "")
        return pairs
    return held


def _flow(first: str, lines: Iterator[str]) -> list[str] | dict[str, str]:
    """A list or a map in brackets, which may go on over the next lines."""
    end, parts = _CLOSED_BY[first[0]], [first]
    while not parts[-1].endswith(end) and (line := next(lines, None)) is not None:
        parts.append(line.strip())
    text = " ".join(parts)[1:].removesuffix(end).strip()
    if end == "]":
        return [_scalar(one[1]) for one in _matches(_FLOW_ITEM, text)]
    return {_scalar(one[1]): _scalar(one[2]) for one in _matches(_FLOW_PAIR, text)}


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Match upon match, to the end or to what is none."""
    place = 0
    while place < len(text) and (found := pattern.match(text, place)):
        yield found
        place = found.end()


def _without_comment(line: str) -> str:
    quote, last = "", ""  # the quotation that is open, and what was before the spaces
    for place, one in enumerate(line):
        if quote:
            escaped = quote == '"' and last == "\\"
            quote = "" if one == quote and not escaped else quote
            last = "" if escaped else one
        elif one == "#" and (not place or line[place - 1].isspace()):
            return line[:place].rstrip()
        elif one in "\"'" and (last in _BEFORE_QUOTES or line[place - 1] == one == "'"):
            quote, last = one, ""
        elif not one.isspace():
            last = one
    return line.rstrip()


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text

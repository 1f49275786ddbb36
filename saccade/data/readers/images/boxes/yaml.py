"""As much of YAML as a `data.yaml` of YOLO needs: texts, lists and maps of them at the top.

    path: ../data            names: [cat, dog]        names:             names:
    train: images/train      names: {0: cat}            0: cat             - cat

Anything deeper is passed over.
"""

import re
from collections.abc import Iterator

Value = str | list[str] | dict[str, str]

_TOP = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*))?$")
_ITEM = re.compile(r"\s*-\s+(.*)$")
_PAIR = re.compile(r"""\s+("[^"]*"|'[^']*'|[^\s:#][^:]*?)\s*:\s+(.*)$""")
_OPEN = {"[": "]", "{": "}"}


def little_yaml(text: str) -> dict[str, Value]:
    """What stands under each key at the top."""
    found: dict[str, Value] = {}
    key = ""
    lines = iter(text.splitlines())
    for raw in lines:
        line = _without_comment(raw)
        if not line.strip():
            continue
        if top := _TOP.match(line):
            key, rest = top[1], (top[2] or "").strip()
            found[key] = _flow(rest, lines) if rest[:1] in _OPEN else _scalar(rest)
        elif key:
            _add(found, key, line)
    return found


def _add(found: dict[str, Value], key: str, line: str) -> None:
    """A line below a key: an item of a list, or a pair of a map."""
    held = found[key]
    if item := _ITEM.match(line):
        found[key] = [*(held if isinstance(held, list) else []), _scalar(item[1])]
    elif pair := _PAIR.match(line):
        held = held if isinstance(held, dict) else {}
        found[key] = {**held, _scalar(pair[1]): _scalar(pair[2])}


def _flow(first: str, lines: Iterator[str]) -> list[str] | dict[str, str]:
    """A list or a map in brackets, which may go on over the next lines."""
    end, text = _OPEN[first[0]], first
    for raw in lines if not text.endswith(end) else ():
        text += " " + _without_comment(raw).strip()
        if text.endswith(end):
            break
    parts = _parts(text[1:].removesuffix(end))
    if end == "]":
        return [_scalar(part) for part in parts]
    pairs = (part.rpartition(":") if part[-1:] in "\"'" else part.partition(":") for part in parts)
    return {_scalar(key): _scalar(value) for key, _, value in pairs}


def _parts(text: str) -> list[str]:
    """What commas part, but for those in quotation marks."""
    found: list[str] = []
    part, quote = "", ""
    for one in text:
        if one == "," and not quote:
            found.append(part)
            part = ""
            continue
        if one in "\"'" and quote in ("", one) and (quote or not part.strip() or ":" in part):
            quote = "" if quote else one
        part += one
    return [one.strip() for one in (*found, part) if one.strip()]


def _without_comment(line: str) -> str:
    quote = ""
    for place, one in enumerate(line):
        if one in "\"'" and quote in ("", one) and (quote or line[:place].rstrip()[-1:] in _BEFORE):
            quote = "" if quote else one
        elif one == "#" and not quote and (not place or line[place - 1].isspace()):
            return line[:place].rstrip()
    return line.rstrip()


_BEFORE = ("", ":", "-", ",", "[", "{")  # what a quotation may follow


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return text

"""Reading an uploaded form: what browsers and curl send with a file (RFC 7578).

The body is here already and bounded, so its parts are cut out in memory, and nothing is written
to a disk.
"""

from typing import Any

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.http.strict_json import read_json

LONGEST_BOUNDARY = 70  # RFC 2046


def read_form(body: bytes, content_type: str, *, most: int) -> dict[str, list[bytes]]:
    """The content of all parts by their names, in their order; at most `most` parts."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not 1 <= len(boundary) <= LONGEST_BOUNDARY:
        raise _bad(f"the Content-Type names no boundary of 1 to {LONGEST_BOUNDARY} characters")
    parts = _Parts(most)
    try:
        parser = MultipartParser(boundary, parts.callbacks)
        parser.write(body)
        parser.finalize()
    except MultipartParseError as error:
        raise _bad(f"the form cannot be read: {str(error)[:200]}") from error
    if not parts.ended:
        raise _bad("the form is cut short: its last boundary is missing")
    return parts.found


def form_value(raw: bytes, field: str, *, plain: bool) -> Any:
    """A field that is no file: text as it is, everything else written as in JSON."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, "bad_form", f"{field} is not UTF-8", field=field) from error
    if plain:
        return text
    try:
        return read_json(raw)
    except RequestError:
        return text  # which the schema will refuse with the field's own rule


class _Parts:
    """What the parser has found so far."""

    def __init__(self, most: int) -> None:
        self.found: dict[str, list[bytes]] = {}
        self.ended = False
        self._most, self._count = most, 0
        self._name, self._value, self._data = bytearray(), bytearray(), bytearray()
        self._disposition = b""

    @property
    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._grow("_name"),
            "on_header_value": self._grow("_value"),
            "on_header_end": self._header,
            "on_part_data": self._grow("_data"),
            "on_part_end": self._part,
            "on_end": self._end,
        }

    def _grow(self, which: str) -> Any:
        def more(data: bytes, start: int, end: int) -> None:
            getattr(self, which).extend(memoryview(data)[start:end])

        return more

    def _begin(self) -> None:
        self._count += 1
        if self._count > self._most:
            raise _bad(f"the form has more than {self._most} parts")
        self._data, self._disposition = bytearray(), b""

    def _header(self) -> None:
        if bytes(self._name).lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._name, self._value = bytearray(), bytearray()

    def _part(self) -> None:
        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise _bad("a part of the form has no name")
        name = options[b"name"].decode("utf-8", errors="replace")
        self.found.setdefault(name, []).append(bytes(self._data))

    def _end(self) -> None:
        self.ended = True


def _bad(message: str) -> RequestError:
    return RequestError(400, "bad_form", message)

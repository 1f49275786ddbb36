"""Reading JSON from strangers: one meaning or none.

Python's reader accepts NaN, numbers beyond every float, keys given twice and halves of Unicode
characters. Each of them means different things to different programs, so here they are errors.
"""

import json
import math
from typing import Any

from saccade.app.serve.http.errors import RequestError


def read_json(body: bytes) -> Any:
    """The value of a JSON text, or a refusal that says what is wrong with it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(f"the body is not UTF-8: {error.reason} at byte {error.start}") from error
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _bad(f"the body is not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise _bad("the body is nested too deeply") from error
    except ValueError as error:  # more digits than Python reads
        raise _bad("the body holds a number with too many digits") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if not is_unicode(key):
            raise _bad(f"the key {ascii(key)[:60]} is not Unicode text")
        if key in made:
            raise RequestError(400, "bad_json", f"{key[:60]!r} is given twice", field=key[:60])
        made[key] = value
    return made


def _constant(name: str) -> float:
    raise _bad(f"{name} is not a JSON number")


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _bad(f"{digits[:60]} is too large a number")
    return value


def is_unicode(text: str) -> bool:
    """Whether a text holds whole characters only: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bad(message: str) -> RequestError:
    return RequestError(400, "bad_json", message)

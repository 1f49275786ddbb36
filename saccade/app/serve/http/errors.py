"""Every answer that is not what was asked for, in one shape.

{"error": {"code": "too_long", "message": "…", "field": "text"}, "id": "…"}
"""

import json
from typing import Any


class RequestError(Exception):
    """A request that is not answered, and why. `field` is what the client should change."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)

    def body(self, request_id: str) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message, "field": self.field}
        return {"error": error, "id": request_id}


class GoneError(Exception):
    """Nobody is there any more to be answered."""


def invalid(message: str, field: str | None) -> RequestError:
    """The request could be read, but not be done."""
    return RequestError(422, "invalid", message, field=field)


def internal() -> RequestError:
    """Our fault; what happened is in the server's log under the request's id."""
    return RequestError(500, "internal", "something went wrong here; the server's log says what")


def to_json(value: Any) -> bytes:
    """JSON that is always valid: no NaN, and no text that is not Unicode."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", errors="backslashreplace")

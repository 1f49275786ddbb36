"""The text of a stream as it grows, from what the decoder tells after each step."""

from collections.abc import Callable
from typing import Any

from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate

HALF_CHARACTER = "\ufffd"  # what the first bytes of a character read as, until the last is there


class Draft:
    """The best hypothesis so far. In a search it may still change its mind: a draft."""

    def __init__(self, text_of: Callable[[list[int]], str], how: Decoding) -> None:
        self._text_of = text_of
        self._may_change = how.beam > 1 and not how.sample
        self._live: list[list[int]] = [[]]

    def grow(self, candidates: list[Candidate]) -> dict[str, Any]:
        """One step further; those that have ended are not continued."""
        grown = [[*self._live[one.parent], one.token] for one in candidates if not one.ended]
        self._live = grown or self._live
        text = self._text_of(self._live[0]).rstrip(HALF_CHARACTER)
        return {"text": text, "draft": True} if self._may_change else {"text": text}

"""How models that fill blanks answer requests."""

from collections.abc import Sequence
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.masked import masked_document
from saccade.app.look.settings import LookSettings
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import ServedJob, Steps, check_length
from saccade.errors import DataError
from saccade.tasks.masked.blanks import FilledText
from saccade.tasks.masked.filler import BlankFiller

BEST = 5  # words for each blank, where a request does not say how many


class MaskedServing(Serving):
    """Texts of several requests are read together."""

    does = "fills blanks and writes nothing else"
    uses = frozenset(("n_best", "stream"))

    def check(self, run: str, tool: BlankFiller, given: str) -> int:
        """A text without blanks is refused later: it can be looked at."""
        if not given.strip():
            raise invalid("there is nothing to read in an empty text", "text")
        try:
            return check_length(run, len(tool.blanks.read(given).tokens), tool.fills.longest)
        except DataError as error:
            raise invalid(str(error), "text") from error

    def predict(self, tool: BlankFiller, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given = [text for job in jobs for text in job.work.given]
        try:
            filled = iter(tool.fill(given, n_best=max(BEST, jobs[0].work.how.n_best)))
        except DataError as error:  # a text without a blank
            raise invalid(str(error), "text") from error
        for job in jobs:
            found = [next(filled) for _ in job.work.given]
            steps.wrote(sum(len(one.blanks) for one in found))
            job.finish([filled_table(one) for one in found])

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        return masked_document(models, given, settings)


def filled_table(one: FilledText) -> dict[str, Any]:
    """A filled text, for JSON."""
    blanks = [
        {**words[0]._asdict(), "words": [word._asdict() for word in words]} for words in one.blanks
    ]
    return {"given": one.given, "text": one.text, "blanks": blanks}

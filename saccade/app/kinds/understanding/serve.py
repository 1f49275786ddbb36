"""How models that understand texts answer requests."""

from collections.abc import Sequence
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.document import LookDocument
from saccade.app.look.settings import LookSettings
from saccade.app.look.understanding.document import understanding_document
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import ServedJob, Steps
from saccade.errors import DataError
from saccade.tasks.understanding.classifier import BEST, TextAnswer, TextClassifier


class UnderstandingServing(Serving):
    """Texts of several requests are read together; the two of a pair have a tab between them."""

    does = "understands texts and writes nothing"
    uses = frozenset(("n_best", "stream"))

    def classes(self, tool: TextClassifier, given: Any) -> Sequence[str]:
        return tool.labels.names

    def check(self, run: str, tool: TextClassifier, given: str) -> int:
        try:
            texts = tool.parted(given)
        except DataError as error:
            raise invalid(f"{run}: {error}", "text") from error
        (reading,) = tool.vocabulary.readings([texts], longest=tool.longest)
        return len(reading.tokens)

    def predict(self, tool: TextClassifier, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given = [tool.parted(one) for job in jobs for one in job.work.given]
        best = max(BEST, *(job.work.how.n_best for job in jobs))
        answers = iter(tool.answers(given, best=best))
        for job in jobs:
            job.finish([answer_table(next(answers)) for _ in job.work.given])

    def look(self, models: list[Any], given: str, settings: LookSettings) -> LookDocument:
        return line_document(models, given, settings)

    def about_tool(self, tool: TextClassifier) -> dict[str, Any]:
        return {"pairs": tool.labels.pairs}


def line_document(models: list[Any], line: str, how: LookSettings) -> LookDocument:
    """Of a text, or of a pair with a tab between."""
    return understanding_document(models, models[0].tool.parted(line), how)


def answer_table(one: TextAnswer) -> dict[str, Any]:
    """What is said of a text, for JSON."""
    table: dict[str, Any] = {"text": one.text}
    if one.number is not None:
        table["number"] = one.number
    elif one.words:
        probability = [guesses[0].probability for guesses in one.word_guesses]
        table |= {"words": one.words, "tags": one.said, "probability": probability}
    else:
        table |= {"labels": one.said, "guesses": [guess._asdict() for guess in one.guesses]}
    return {**table, "cut": True} if one.cut else table

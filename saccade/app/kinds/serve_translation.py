"""How translators answer requests."""

from collections.abc import Iterator, Sequence
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.settings import LookSettings
from saccade.app.look.translation import translation_document
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import (
    PredictFields,
    ServedJob,
    Steps,
    check_length,
    refuse_writing,
    search_together,
    with_others,
)
from saccade.decode.protocol import OnStep
from saccade.tasks.translation.translator import Translated, Translator


class TranslationServing(Serving):
    """Sentences of several requests are searched for together."""

    def refuse(self, run: str, fields: PredictFields) -> None:
        refuse_writing(f"{run} translates", fields)

    def check(self, run: str, tool: Translator, given: str) -> int:
        if not given.strip():
            raise invalid("there is nothing to translate in an empty text", "text")
        tokens = len(tool.vocabulary.encode(given)) + 1  # and the end of the sentence
        return check_length(run, tokens, tool.longest)

    def predict(self, tool: Translator, jobs: Sequence[ServedJob], steps: Steps) -> None:
        def search(given: list[Any], on_step: OnStep) -> Iterator[tuple[int, Translated]]:
            streams = [0] * len(given)  # each draws what it would draw alone
            return tool.translate(given, jobs[0].work.how, streams=streams, on_step=on_step)

        def response(one: Translated) -> dict[str, Any]:
            return {"source": one.source, **with_others(one)}

        search_together(tool.vocabulary.decode, jobs, steps, search, response)

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        return translation_document(models, given, settings)

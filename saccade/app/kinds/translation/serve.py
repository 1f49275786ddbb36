"""How translators answer requests."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.settings import LookSettings
from saccade.app.look.translation import translation_document
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import (
    WRITING,
    ServedJob,
    Steps,
    check_length,
    search_together,
    with_others,
)
from saccade.decode.protocol import OnStep
from saccade.tasks.translation.translator import Translated, Translator


class TranslationServing(Serving):
    """Sentences of several requests are searched for together."""

    does = "translates"
    uses = WRITING
    instead = MappingProxyType(
        {"count": "ask for n_best instead of count", "most_tokens": "it ends by itself"}
    )

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

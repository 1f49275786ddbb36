"""How language models answer requests."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.language import language_document
from saccade.app.look.settings import LookSettings
from saccade.app.serve.draft import Draft
from saccade.app.serve.steps import WRITING, ServedJob, Steps, check_length, figures
from saccade.tasks.language.writer import Writer


class LanguageServing(Serving):
    """Prompt by prompt: what is drawn for one never depends on another."""

    draws = True
    does = "is a language run"
    uses = WRITING - {"n_best"} | {"count", "most_tokens"}
    instead = MappingProxyType({"n_best": "ask for count instead of n_best"})

    def check(self, run: str, tool: Writer, given: str) -> int:
        return check_length(run, len(tool.begin(given)), tool.reach)

    def predict(self, tool: Writer, jobs: Sequence[ServedJob], steps: Steps) -> None:
        for job in jobs:
            made = list[dict[str, Any]]()
            for prompt in job.work.given:
                made += _written(tool, prompt, job, steps)
            if not job.gone:
                job.finish(made)

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        return language_document(models, given, settings)


def _written(tool: Writer, prompt: str, job: ServedJob, steps: Steps) -> Iterator[dict[str, Any]]:
    begun, work = tool.begin(prompt), job.work
    draft = Draft(lambda tokens: tool.vocabulary.decode([*begun, *tokens]), work.how)
    on_step = steps.on_step([job] * work.count, [draft] * work.count)
    if job.gone:
        return
    sizes: dict[str, int] = {"count": work.count, "most_tokens": work.most_tokens}
    for one in tool.write(prompt, work.how, **sizes, on_step=on_step):
        steps.wrote(len(one.tokens) - len(begun))
        yield {"prompt": one.prompt, **figures(one), "others": []}

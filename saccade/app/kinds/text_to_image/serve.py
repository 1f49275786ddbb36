"""How text-to-image models answer requests."""

import base64
from collections.abc import Sequence
from typing import Any

from saccade.app.kinds.base import Serving
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.images import pillow_image
from saccade.app.look.settings import LookSettings
from saccade.app.look.text_to_image import DrawnSubject, drawn_document
from saccade.app.serve.draft import Draft
from saccade.app.serve.http.errors import RequestError, invalid
from saccade.app.serve.steps import ServedJob, Steps
from saccade.errors import DataError
from saccade.tasks.text_to_image.drawer import Drawing, ImageDrawer
from saccade.tasks.text_to_image.task import FRAME


class TextToImageServing(Serving):
    """Prompt by prompt: what is drawn for one never depends on another. Images come as PNG files
    in base64.
    """

    draws = True
    does = "draws images, each whole and at random"
    uses = frozenset(("count", "temperature", "top_k", "top_p", "seed", "guidance"))

    def check(self, run: str, tool: ImageDrawer, given: str) -> int:
        """Its words, and the codes that are drawn for them."""
        try:
            return len(tool.read(given)) + tool.model.config.cells
        except DataError as error:
            most = tool.model.config.text - FRAME
            if len(tool.vocabulary.encode(given)) > most:
                raise RequestError(422, "too_long", str(error), field="text") from error
            raise invalid(str(error), "text") from error

    def predict(self, tool: ImageDrawer, jobs: Sequence[ServedJob], steps: Steps) -> None:
        for job in jobs:
            made = list[dict[str, Any]]()
            for prompt in job.work.given:
                made += _drawn(tool, prompt, job, steps)
            if not job.gone:
                job.finish(made)

    def look(self, models: list[Any], given: str, settings: LookSettings) -> Any:
        if len(models) > 1:
            raise invalid("images of two runs are not shown side by side: leave it out", "compare")
        if not settings.sample:
            raise invalid("images are drawn at random: leave sample out", "sample")
        tool: ImageDrawer = models[0].tool
        how = Drawing(temperature=settings.temperature, seed=settings.seed)
        drawn = tool.draw([given], how)
        (pixels,) = tool.images(drawn)
        return drawn_document(models[0], DrawnSubject(given, pixels, *drawn[0]), settings)

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image}


def _drawn(tool: ImageDrawer, prompt: str, job: ServedJob, steps: Steps) -> list[dict[str, Any]]:
    work = job.work
    if job.gone:
        return []
    names = ("temperature", "top_k", "top_p", "seed")
    how = Drawing(**{name: vars(work.how)[name] for name in names}, guidance=work.guidance)
    silent = Draft(lambda tokens: "", work.how)
    on_step = steps.on_step([job] * tool.batch, [silent] * tool.batch)
    drawn = tool.draw([prompt] * work.count, how, on_step=on_step)
    if job.gone:
        return []
    steps.wrote(sum(len(one.codes) for one in drawn))
    return [
        {
            "prompt": prompt,
            "image": base64.b64encode(png_bytes(pillow_image(pixels))).decode(),
            "codes": codes,
            "log_probability": log_probability,
        }
        for pixels, (codes, log_probability) in zip(tool.images(drawn), drawn)
    ]

"""How captioners answer requests."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.look.captioning.document import caption_document
from saccade.app.look.images import SIDE, ShownImage
from saccade.app.look.settings import LookSettings
from saccade.app.serve.steps import (
    WRITING,
    ServedJob,
    Steps,
    search_together,
    with_others,
)
from saccade.decode.protocol import OnStep
from saccade.tasks.captioning.captioner import ImageCaptioner, WrittenCaption


class CaptioningServing(Serving):
    """Images of several requests are captioned together."""

    takes = "image"
    does = "captions images"
    uses = WRITING
    instead = MappingProxyType(
        {"count": "ask for n_best instead of count", "most_tokens": "it ends by itself"}
    )

    def predict(self, tool: ImageCaptioner, jobs: Sequence[ServedJob], steps: Steps) -> None:
        def search(given: list[Any], on_step: OnStep) -> Iterator[tuple[int, WrittenCaption]]:
            images, streams = torch.stack(given), [0] * len(given)  # each draws as if alone
            return tool.caption(images, jobs[0].work.how, streams=streams, on_step=on_step)

        search_together(tool.vocabulary.decode, jobs, steps, search, with_others)

    def look(self, models: list[Any], given: ShownImage, settings: LookSettings) -> Any:
        return caption_document(models, [given], settings)

    def image_to_predict(self, tool: ImageCaptioner, decode: DecodeImage) -> Tensor:
        return tool.prepare(decode(2 * tool.settings.image))

    def image_to_look_at(self, tools: list[ImageCaptioner], decode: DecodeImage) -> ShownImage:
        fits = {id(tool): self.image_to_predict(tool, decode) for tool in tools}

        def seen_by(tool: ImageCaptioner) -> Tensor:
            return fits[id(tool)]

        return replace(ShownImage.of(decode(2 * SIDE), tools[0]), seen_by=seen_by)

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image}

"""How discrete VAEs answer requests."""

import base64
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.images import pillow_image
from saccade.app.serve.steps import ServedJob, Steps
from saccade.tasks.reconstruction.reconstructor import Reconstructed, Reconstructor


class ReconstructionServing(Serving):
    """Images of several requests are told by codes together. There is nothing to look at."""

    takes = "image"
    does = "tells images by codes and writes nothing"
    uses = frozenset(("stream",))

    def predict(self, tool: Reconstructor, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given: list[Tensor] = [one for job in jobs for one in job.work.given]
        found = iter(tool.reconstruct(torch.stack(given)))
        for job in jobs:
            job.finish([served_table(next(found)) for _ in job.work.given])

    def look(self, models: list[Any], given: Any, settings: Any) -> Any:
        raise NotImplementedError  # refused before: `looks` is false

    def image_to_predict(self, tool: Reconstructor, decode: DecodeImage) -> Tensor:
        return tool.prepare(decode(2 * tool.settings.image))

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image}

    def about_tool(self, tool: Reconstructor) -> dict[str, Any]:
        config = tool.model.config
        return {"codes": config.codes, "grid": config.grid}


def codes_table(one: Reconstructed) -> dict[str, Any]:
    """An image as codes, for JSON."""
    flat = one.codes.flatten().tolist()
    return {"text": " ".join(map(str, flat)), "codes": one.codes.tolist(), "psnr": one.psnr}


def served_table(one: Reconstructed) -> dict[str, Any]:
    """The same with what the codes stand for, a PNG as text."""
    png = base64.b64encode(png_bytes(pillow_image(one.pixels))).decode()
    return {**codes_table(one), "image": f"data:image/png;base64,{png}"}

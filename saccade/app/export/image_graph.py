"""A classifier as one ONNX graph: images as they are kept in, scores out."""

import copy
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.app.export.onnx import quiet_exporter, save_program
from saccade.errors import ConfigError
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.vary import Vary

ROWS = 3  # of the example: no size of a model


class ImageGraph(nn.Module):
    """Bring pixels to their mean and deviation, then score the classes."""

    def __init__(self, model: nn.Module, settings: ClassificationSettings) -> None:
        super().__init__()
        self.model = model
        self.vary = Vary(
            settings.vary, image=settings.image, kept=settings.kept, pixels=settings.pixels
        )

    def forward(self, images: UInt8[Tensor, "B 3 K K"]) -> Float[Tensor, "B C"]:
        return self.model(self.vary.plain(images))


def write_image_graph(model: nn.Module, settings: ClassificationSettings, path: Path) -> None:
    """Write the graph; rows are a free size, images have the size that they are kept in."""
    module = ImageGraph(copy.deepcopy(model).float().cpu(), settings).eval()
    example = torch.zeros(ROWS, 3, settings.kept, settings.kept, dtype=torch.uint8)
    try:
        with torch.no_grad(), quiet_exporter():
            module(example)  # constants are made once, and not while it is traced
            program = torch.onnx.export(
                module,
                (example,),
                input_names=["images"],
                output_names=["scores"],
                dynamic_shapes=({0: "rows"},),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise ConfigError(f"{type(model).__name__} cannot be written as ONNX") from error
    save_program(program, module, path)

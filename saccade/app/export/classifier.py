"""Classifiers for other libraries and engines: transformers, timm, ONNX."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save_file

from saccade.app.export import huggingface, timm
from saccade.app.export.counterpart import Counterpart, counterpart
from saccade.app.export.image_graph import write_image_graph
from saccade.app.export.image_readme import huggingface_readme, onnx_readme, timm_readme
from saccade.app.kinds.base import Exporter, LoadedRun
from saccade.app.kinds.run_classes import classes_of
from saccade.models.names import LIBRARIES
from saccade.models.names.table import to_theirs
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.task import ASSET
from saccade.tasks.classification.vary import NORMS
from saccade.train.recipe import Recipe

BICUBIC = 3  # as Pillow numbers its filters


class Preprocessing(NamedTuple):
    """How an image becomes pixels that the model is given.

    Its shorter side becomes `short`, or both do where it is squeezed; then the middle, `side` ×
    `side`, is cut out.
    """

    side: int
    short: int
    fit: str
    mean: list[float]
    deviation: list[float]

    @classmethod
    def of(cls, settings: ClassificationSettings) -> "Preprocessing":
        norm, cut = NORMS[settings.pixels], settings.vary.crop == "box"
        short = settings.kept if cut else settings.image
        return cls(settings.image, short, settings.fit, [*norm.mean], [*norm.deviation])

    @property
    def remarks(self) -> list[str]:
        """What an image that is read so is not, compared with ours."""
        if self.fit == "pad":
            return ["It cuts out the middle of an image where Saccade fills it up with grey."]
        return []


def _settings(recipe: Recipe) -> ClassificationSettings:
    assert isinstance(recipe.task, ClassificationSettings)
    return recipe.task


def _check(library: Any, recipe: Recipe) -> None:
    found: Counterpart = counterpart(library.FAMILIES, recipe.model, library.LIBRARY)
    found.settings(recipe.model, _settings(recipe).image)
    found.name(recipe.model)


def _write(run: LoadedRun, names: str, found: Counterpart, folder: Path, table: Any) -> None:
    """The weights under their names, and what is to be known of them."""
    state = found.state(run.recipe.model, dict(run.network.state_dict()))
    theirs = to_theirs(LIBRARIES[type(run.network)][names], state)
    tensors = {name: tensor.contiguous() for name, tensor in theirs.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", table)


def write_json(path: Path, table: Any) -> None:
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False), encoding="utf-8")


def _fill_huggingface(run: LoadedRun, folder: Path, quantization: str) -> str:
    config, task, classes = run.recipe.model, _settings(run.recipe), classes_of(run)
    found, read = (
        counterpart(huggingface.FAMILIES, config, huggingface.LIBRARY),
        Preprocessing.of(task),
    )
    several = "multi_label" if classes.several else "single_label"
    table = {
        **dict(found.more),
        "num_channels": 3,
        **found.settings(config, task.image),
        "id2label": {str(number): name for number, name in enumerate(classes.names)},
        "label2id": {name: number for number, name in enumerate(classes.names)},
        "problem_type": f"{several}_classification",
        "dtype": "float32",
    }
    _write(run, "huggingface", found, folder, table)
    square = {"height": read.short, "width": read.short}
    processor = {
        "image_processor_type": "BitImageProcessor",  # resizes, cuts, brings to mean and deviation
        "do_convert_rgb": True,
        "do_resize": True,
        "size": square if read.fit == "squeeze" else {"shortest_edge": read.short},
        "resample": BICUBIC,
        "do_center_crop": True,
        "crop_size": {"height": read.side, "width": read.side},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": read.mean,
        "image_std": read.deviation,
    }
    write_json(folder / "preprocessor_config.json", processor)
    return huggingface_readme(run.name, several=classes.several, remarks=read.remarks)


def _fill_timm(run: LoadedRun, folder: Path, quantization: str) -> str:
    config, task, classes = run.recipe.model, _settings(run.recipe), classes_of(run)
    found, read = counterpart(timm.FAMILIES, config, timm.LIBRARY), Preprocessing.of(task)
    modes = {"crop": "center", "squeeze": "squash", "pad": "border"}
    table = {
        "architecture": found.name(config),
        "num_classes": len(classes.names),
        "label_names": list(classes.names),
        "model_args": found.settings(config, task.image),
        "pretrained_cfg": {
            "input_size": [3, read.side, read.side],
            "interpolation": "bicubic",
            "crop_pct": read.side / read.short,
            "crop_mode": modes[read.fit],
            "mean": read.mean,
            "std": read.deviation,
            **dict(found.more),
        },
    }
    _write(run, "timm", found, folder, table)
    return timm_readme(run.name, several=classes.several)


def _check_onnx(recipe: Recipe) -> None:
    """Any classifier."""


def _fill_onnx(run: LoadedRun, folder: Path, quantization: str) -> str:
    task, classes = _settings(run.recipe), classes_of(run)
    write_image_graph(run.network, task, folder / "classifier.onnx")
    return onnx_readme(run.name, task.kept, several=classes.several)


EXPORTS: dict[str, Exporter] = {
    "huggingface": Exporter(
        check=partial(_check, huggingface), fill=_fill_huggingface, assets=(ASSET,)
    ),
    "timm": Exporter(check=partial(_check, timm), fill=_fill_timm, assets=(ASSET,)),
    "onnx": Exporter(
        check=_check_onnx, fill=_fill_onnx, assets=(ASSET,), packages=("onnx", "onnxscript")
    ),
}

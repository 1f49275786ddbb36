"""The Python API: load a run, predict with it, look at what it looked at."""

from pathlib import Path
from typing import Any, get_args

from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.make import check_exportable, export_run
from saccade.app.kinds import kind_for
from saccade.app.kinds.base import Engine, LoadedRun
from saccade.errors import ConfigError, RunError
from saccade.train.distributed import choose_device
from saccade.train.folder import RunFolder


def load(
    run: str | Path,
    *,
    device: str = "auto",
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
) -> Any:
    """The best weights of a run, ready to use: a model of the run's own kind.

    With engine="ctranslate2" they are exported into the run's folder if no fresh export is there,
    and that engine decodes; `engine_precision` is how it holds the weights.
    """
    for name, value, known in (
        ("engine", engine, get_args(Engine)),
        ("engine_precision", engine_precision, get_args(Quantization)),
    ):
        if value not in known:
            raise ConfigError(f"{name}={value!r} is not one of {', '.join(known)}")
    if engine == "saccade" and engine_precision != "float32":
        raise ConfigError(
            f"engine_precision={engine_precision!r} is for engine='ctranslate2'; our own decoder "
            "has precision"
        )
    folder = RunFolder(Path(run))
    if not folder.path.is_dir():
        raise RunError(f"there is no run at {run}; `saccade train NAME` makes one")
    recipe = folder.load_recipe()
    kind = kind_for(recipe.task)
    if engine == "ctranslate2" and kind.with_engine is None:
        raise ConfigError(
            f"engine='ctranslate2' decodes text alone, and this run is of {kind.name}; leave the "
            "engine out"
        )
    if engine == "ctranslate2":
        check_exportable(recipe.model, "ctranslate2")  # before weights are read
    network = folder.load_model(choose_device(device))
    model = kind.load(LoadedRun(folder, recipe, network))
    if engine == "saccade" or kind.with_engine is None:
        return model
    exported, _ = export_run(folder, "ctranslate2", quantization=engine_precision, model=network)
    return kind.with_engine(model, exported)

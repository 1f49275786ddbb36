"""Every recipe by its name. Those that were measured on real data need data of such a kind."""

from dataclasses import replace
from pathlib import Path

from saccade.config import ModelConfig
from saccade.errors import ConfigError, perhaps
from saccade.models import PRESETS
from saccade.printable import printable
from saccade.tasks.base import TaskSettings
from saccade.train.recipe import Recipe, load_recipe
from saccade.train.recipes import captioning as recipes_captioning
from saccade.train.recipes import classification as recipes_classification
from saccade.train.recipes import detection as recipes_detection
from saccade.train.recipes import generation as recipes_generation
from saccade.train.recipes import joint as recipes_joint
from saccade.train.recipes import pretraining as recipes_pretraining
from saccade.train.recipes import text as recipes_text
from saccade.train.recipes import understanding as recipes_understanding

MEASURED: dict[str, Recipe] = {
    **recipes_text.MEASURED,
    **recipes_captioning.MEASURED,
    **recipes_classification.MEASURED,
    **recipes_understanding.MEASURED,
    **recipes_detection.MEASURED,
    **recipes_joint.MEASURED,
    **recipes_generation.MEASURED,
}
RECIPES: dict[str, Recipe] = {
    **recipes_text.BUILT_IN,
    **recipes_captioning.BUILT_IN,
    **recipes_classification.BUILT_IN,
    **recipes_detection.BUILT_IN,
    **recipes_joint.BUILT_IN,
    **recipes_generation.BUILT_IN,
    **recipes_pretraining.BUILT_IN,
    **recipes_understanding.BUILT_IN,
    **MEASURED,
}


def recipe(name: str) -> Recipe:
    """A recipe by its name, of a model preset, or from a TOML file."""
    if name.endswith(".toml"):
        return load_recipe(Path(name))
    if name in RECIPES:
        return RECIPES[name]
    if name in PRESETS:
        return _of_preset(name)
    if Path(name).is_dir():
        raise ConfigError(_why_no_folder(name))
    if "/" in name:
        raise ConfigError(
            f"there is no recipe and no folder {printable(name)}; `saccade list` has the recipes"
        )
    if near := perhaps(name, [*RECIPES, *PRESETS]):
        raise ConfigError(f"no recipe '{printable(name)}'{near}; `saccade list` has all of them")
    raise ConfigError(
        f"no recipe '{printable(name)}'; there are: {', '.join(RECIPES)} (or a model preset: "
        f"{', '.join(PRESETS)}; or a .toml of your own)"
    )


def _why_no_folder(name: str) -> str:
    path = printable(name)
    if not (Path(name) / "config.json").is_file():
        return f"{path} is a folder, neither a recipe nor a run; `saccade list` has the recipes"
    return (
        f"{path} is a run, not a recipe; it goes on by the command that it was started with, and "
        f"`saccade describe {path} --toml` writes its recipe; --init {path} starts another run "
        "from its weights"
    )


def _of_preset(name: str) -> Recipe:
    """A model preset with the task and the training of the recipe whose model is most like it."""
    model = PRESETS[name]
    alike = [
        one
        for one in RECIPES.values()
        if type(one.model) is type(model) and _learns(one.task.sized_for(model), model)
    ]
    base = max(alike, key=lambda one: len(vars(one.model).items() & vars(model).items()))
    about = f"{base.about}, of the size {name}"
    return replace(base, about=about, model=model, task=base.task.sized_for(model))


def _learns(task: TaskSettings, model: ModelConfig) -> bool:
    try:
        task.check(model)
    except ConfigError:
        return False
    return True

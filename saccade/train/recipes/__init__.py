"""Every recipe by its name. Those for photographs need data; no other needs any argument."""

from pathlib import Path

from saccade.errors import ConfigError
from saccade.train.recipe import Recipe, load_recipe
from saccade.train.recipes import captioning as recipes_captioning
from saccade.train.recipes import text as recipes_text

RECIPES: dict[str, Recipe] = {**recipes_text.RECIPES, **recipes_captioning.RECIPES}


def recipe(name: str) -> Recipe:
    """A recipe by its name, or from a TOML file."""
    if name.endswith(".toml"):
        return load_recipe(Path(name))
    if name not in RECIPES:
        raise ConfigError(
            f"no recipe {name!r}; there are: {', '.join(RECIPES)} (or a .toml file of your own)"
        )
    return RECIPES[name]

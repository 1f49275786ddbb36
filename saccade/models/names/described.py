"""The sizes of a model that a folder's config.json tells; nothing from it is run."""

import json
from pathlib import Path
from typing import Any

from saccade.config import ModelConfig, from_dict
from saccade.errors import ConfigError
from saccade.models import FAMILIES
from saccade.printable import printable
from saccade.regular import regular_file


def described(folder: Path) -> ModelConfig | None:
    """What config.json tells of a run of ours; None where it is silent, or another's."""
    path = folder / "config.json"
    if not path.exists():
        return None
    regular_file(path, ConfigError)
    try:
        table: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{printable(path)} is not JSON ({printable(error)}); restore it, or name the file of "
            "weights itself"
        ) from error
    match table:
        case {"model": {"family": str(name), **sizes}} if name in FAMILIES:
            return from_dict(FAMILIES[name], sizes, where=f"{printable(path)}: model")
        case _:
            return None

"""What a run's weights have scored on held-out data, kept beside them for later comparison."""

import json
from pathlib import Path
from typing import Any, cast

from saccade.errors import CheckpointError, ConfigError, RunError
from saccade.printable import printable
from saccade.train.storage.files import finite, read_json, replace_file, sha256
from saccade.train.storage.folder import RunFolder


def keep_scores(run: RunFolder, split: str, found: dict[str, Any]) -> None:
    """Keep the figures of a split, with the SHA-256 of the weights that they are of."""
    figures = {name: value for name, value in found.items() if type(value) in (int, float)}
    content = {"weights": sha256(run.weights), "scores": finite(figures)}
    replace_file(_path(run, split), json.dumps(content, ensure_ascii=False, indent=1).encode())


def kept_scores(run: RunFolder, split: str) -> dict[str, Any]:
    """The figures of a split; refuses those of other weights than are there now."""
    path = _path(run, split)
    again = f"`saccade eval {printable(run.path)} --split {printable(split)} --keep` keeps them"
    if not path.is_file():
        raise RunError(f"{printable(run.path)} has no scores of {printable(split)!r}; {again}")
    try:
        table = read_json(path)
    except CheckpointError as error:
        raise RunError(f"{error}; {again}") from error
    match table:
        case {"weights": str(weights), "scores": dict(scores)}:
            if run.weights.is_file() and weights == sha256(run.weights):
                return cast(dict[str, Any], scores)
            raise RunError(f"{printable(path)} is of other weights than the run has now; {again}")
        case _:
            raise RunError(f"{printable(path)} holds no scores; {again}")


def _path(run: RunFolder, split: str) -> Path:
    if Path(split).name != split:
        raise ConfigError(f"split={printable(split)!r} is no name of a split; leave out any /")
    return run.path / f"scores-{split}.json"

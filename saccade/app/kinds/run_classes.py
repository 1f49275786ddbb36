"""The names of a run's classes, as it has kept them."""

from collections.abc import Callable
from typing import TypeVar

from saccade.app.kinds.base import LoadedRun
from saccade.errors import RunError
from saccade.printable import printable
from saccade.tasks.classification.data import Classes
from saccade.tasks.classification.task import ASSET, read_classes_asset
from saccade.tasks.detection.task import read_names_asset

Read = TypeVar("Read")


def classes_of(run: LoadedRun) -> Classes:
    """Refuses those of another run."""
    return _kept(run, read_classes_asset, lambda classes: len(classes.names))


def object_names(run: LoadedRun) -> tuple[str, ...]:
    """Those of the classes of objects."""
    return _kept(run, read_names_asset, len)


def _kept(run: LoadedRun, read: Callable[[bytes], Read], count: Callable[[Read], int]) -> Read:
    path = run.asset(ASSET)
    try:
        classes = read(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{printable(path)} does not name the classes of the run ({printable(error)}); copy "
            "the run again as a whole"
        ) from None
    wanted = vars(run.recipe.model)["classes"]
    if count(classes) != wanted:
        raise RunError(
            f"{printable(path)} names {count(classes):,} classes, and the model tells "
            f"{wanted:,} apart: it belongs to another run; copy the run again as a whole"
        )
    return classes

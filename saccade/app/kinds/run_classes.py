"""The names of a run's classes, as it has kept them."""

from saccade.app.kinds.base import LoadedRun
from saccade.errors import RunError
from saccade.printable import printable
from saccade.tasks.classification.data import Classes
from saccade.tasks.classification.task import ASSET, read_classes_asset


def classes_of(run: LoadedRun) -> Classes:
    """Refuses those of another run."""
    path = run.asset(ASSET)
    try:
        classes = read_classes_asset(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{printable(path)} does not name the classes of the run ({printable(error)}); copy "
            "the run again as a whole"
        ) from None
    wanted = vars(run.recipe.model)["classes"]
    if len(classes.names) != wanted:
        raise RunError(
            f"{printable(path)} names {len(classes.names):,} classes, and the model tells "
            f"{wanted:,} apart: it belongs to another run; copy the run again as a whole"
        )
    return classes

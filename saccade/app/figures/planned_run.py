"""A run that a claim needs: the command that trains it, and whether it is there."""

import hashlib
import json
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from saccade.app.cli.train import parse_options, run_training
from saccade.app.compare.runs import check_finished
from saccade.errors import RunError
from saccade.train.recipe import to_table
from saccade.train.recipes import recipe
from saccade.train.stopping import Stopped
from saccade.train.storage.folder import RunFolder


@dataclass(frozen=True)
class PlannedRun:
    """A recipe, the options of the command line that it is trained with, and its folder."""

    recipe: str
    options: tuple[str, ...]
    out: Path

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the command that a reader can type."""
        return "train", self.recipe, *self.options, "--out", str(self.out)

    @property
    def command(self) -> str:
        return shlex.join(["saccade", *self.arguments])

    @property
    def finished(self) -> bool:
        run = RunFolder(self.out)
        with suppress(RunError):
            check_finished(run, run.load_recipe(), run.newest_state())
            return run.has_weights
        return False

    @property
    def done(self) -> int:
        """Updates so far, as the log tells."""
        return _logged(self.out / "metrics.jsonl", "step")

    @property
    def updates(self) -> int:
        """How many it will have, if nothing ends it sooner."""
        given = dict(zip(self.options, self.options[1:])).get("--train.steps")
        return recipe(self.recipe).train.steps if given is None else int(given)

    def follows(self, other: "PlannedRun") -> bool:
        """Whether it begins with the other's weights."""
        return str(other.out) in self.options

    def train(self, device: str) -> None:
        """Here and now; one that was stopped goes on where it was."""
        where = [*self.arguments[2:], "--train.device", device]
        chosen, _ = parse_options(self.recipe, recipe(self.recipe), where)
        outcome = run_training(chosen, self.out)
        if outcome.signal:
            raise Stopped(outcome.signal)


def planned_run(folder: Path, name: str, options: tuple[str, ...], seed: int) -> PlannedRun:
    """Its folder is called by the recipe, the seed and a digest of all settings."""
    given = *options, "--train.seed", str(seed)
    table = to_table(recipe(name))  # another one where the recipe is another
    text = json.dumps([table, *given], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return PlannedRun(name, given, folder / f"{name}-seed{seed}-{digest}")


def _logged(log: Path, name: str) -> int:
    """The last number of this name in a log of JSON lines; 0 where there is none."""
    with suppress(OSError):
        for line in reversed(log.read_text(errors="replace").splitlines()):
            with suppress(ValueError, LookupError, TypeError):
                return int(json.loads(line)[name])
    return 0

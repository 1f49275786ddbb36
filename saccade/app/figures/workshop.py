"""Where claims are measured: the folder, the seeds, the device, and how runs are trained there.

A run is trained once, by the command that a reader can type; stopped, it goes on where it was.
"""

import hashlib
import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from saccade.app.cli.train import parse_options, run_training
from saccade.app.compare.runs import check_finished
from saccade.errors import RunError
from saccade.train.folder import RunFolder
from saccade.train.recipe import to_table
from saccade.train.recipes import recipe
from saccade.train.stopping import Stopped

LEAST = 2  # of anything that is counted, however small the budget


@dataclass(frozen=True)
class Workshop:
    """What a claim is measured with; `ran` are the commands that its runs are trained by.

    A `budget` below 1 is that share of updates and of items: sooner there, and less sure.
    """

    folder: Path
    seeds: tuple[int, ...] = (0, 1)
    device: str = "auto"
    budget: float = 1.0
    ran: list[str] = field(default_factory=list[str])

    def share(self, full: int) -> int:
        """How many of something the budget allows."""
        return max(LEAST, round(full * self.budget))

    def train(self, name: str, *options: str | int | float, seed: int) -> Path:
        """The finished run of a recipe with options of the command line.

        Its folder is called by the recipe, the seed and a digest of all settings.
        """
        arguments = [*map(str, options), "--train.seed", str(seed)]
        out = self.folder / "runs" / f"{name}-seed{seed}-{_digest(name, arguments)}"
        arguments += ["--out", str(out)]
        self.ran.append(shlex.join(["saccade", "train", name, *arguments]))
        if not _finished(out):
            where = [*arguments, "--train.device", self.device]
            chosen, _ = parse_options(name, recipe(name), where)
            outcome = run_training(chosen, out)
            if outcome.signal:
                raise Stopped(outcome.signal)
        return out


def _digest(name: str, arguments: Sequence[str]) -> str:
    """Another one where the recipe or an option is another."""
    table = to_table(recipe(name))
    text = json.dumps([table, *arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _finished(path: Path) -> bool:
    run = RunFolder(path)
    with suppress(RunError):
        check_finished(run, run.load_recipe(), run.newest_state())
        return run.has_weights
    return False

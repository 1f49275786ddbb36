"""`saccade train transformer --data my-corpus/`: train a recipe, or go on with a run."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Generic, TypeVar

import tyro

from saccade.app.cli.options import parse, value_of
from saccade.app.cli.output import say, show_help
from saccade.app.cli.pace import duration
from saccade.app.cli.progress import training_shown
from saccade.app.cluster.connect import RaySettings
from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.tasks.base import TaskSettings
from saccade.tasks.images import keep_in
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES, recipe
from saccade.train.resume import move_aside
from saccade.train.run import TrainingOutcome, train
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted

M = TypeVar("M", bound=ModelConfig)
T = TypeVar("T", bound=TaskSettings)
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]
NARROW = 80  # columns
HELP_ASKED = {"-h", "--help"}

HELP = """usage: saccade train RECIPE [OPTIONS]

Train a model. Without --data it learns the built-in data; without --out the
run is runs/RECIPE. Stopped or killed, the same command goes on where it was,
to the same numbers. --change goes on with other --train.… settings, and
--start-over moves the run aside and trains anew.

  saccade train transformer                   the built-in corpus
  saccade train transformer --data corpus/ --source en --target de
  saccade train gpt --data book.txt --level characters --unit stream
  saccade train show-attend-tell              captions of the built-in shapes
  saccade train show-attend-tell-photos --data photos/ --model.weights net.pth
  saccade train vit-b-16 --data photos/ --init vit.safetensors
                                              weights of others, or of a run
  saccade train gpt --data book.txt --init runs/gpt --train.lora 8
                                              a run goes on with other data
  saccade train my-recipe.toml                see `saccade describe NAME --toml`
  saccade train gpt2 --data book.txt          a model preset, with the settings
                                              of the recipe most like it
  torchrun --nproc-per-node 4 -m saccade train transformer
                                              many processes; without dropout
                                              equal to one but for rounding;
                                              --train.shard 0 splits the weights
                                              over them, --max-restarts 3 brings
                                              back a run that lost a process
  saccade train transformer --ray --ray-workers 4
                                              the same by Ray (docs/scale.md)

recipes:
{recipes}

`saccade train RECIPE --help` lists the options of a recipe with their values."""


@dataclass(frozen=True)
class Options(Generic[M, T]):
    """Options of a recipe; every value shown is the recipe's own."""

    task: Annotated[T, tyro.conf.arg(name="")]
    model: M
    train: TrainSettings
    out: str
    """Folder of the run."""
    init: str = ""
    """Start from another run, a Hugging Face or timm folder, hf:owner/name, or a weights file."""
    change: Flag = False
    """Go on with a run whose --train.… settings are now others; the run keeps a record of it."""
    cache: str = ""
    """Folder for tokens and decoded images, kept between runs; else SACCADE_CACHE names it."""
    start_over: Flag = False
    """Move what is in --out aside (to OUT.1, OUT.2, …) and train anew."""
    ray: Annotated[RaySettings, tyro.conf.arg(name="")] = field(default_factory=RaySettings)
    """Processes of a Ray cluster."""


def train_command(arguments: list[str]) -> int:
    """Train the recipe that the first argument names, with the options that follow."""
    if not arguments or arguments[0] in ("-h", "--help"):
        show_help(HELP.format(recipes="\n".join(map(_in_short, RECIPES))))
        return 0 if arguments else 2
    name = arguments[0]
    if name.startswith("-"):
        raise ConfigError(f"name a recipe first: saccade train RECIPE {' '.join(arguments)}")
    chosen, options = parse_options(name, recipe(name), arguments[1:])
    keep_in(options.cache)
    if options.ray.ray:
        return _train_on_ray(chosen, options)
    over = {"change": options.change, "start_over": options.start_over}
    outcome = run_training(chosen, run_folder(options.out), **over)
    return 128 + outcome.signal if outcome.signal else 0


def _train_on_ray(chosen: Recipe, options: Options[Any, Any]) -> int:
    """The same training by workers of Ray, which tell how it goes in the run's own metrics."""
    from saccade.app.cluster.training import train_on_ray

    out = run_folder(options.out)
    if options.start_over and (aside := move_aside(out)) is not None:
        say(f"what was in {out} is now in {aside}")
    say(f"training with {options.ray.ray_workers} Ray workers; {out}/metrics.jsonl has the losses")
    train_on_ray(chosen, out, options.ray, change=options.change)
    say(f"trained: {out}")
    return 0


def run_folder(out: str) -> Path:
    """Where a run is to lie."""
    if not out.strip():
        raise ConfigError("--out names no folder; give one, such as runs/mine, or leave it out")
    return Path(out)


def _in_short(name: str) -> str:
    """A recipe's name and what it is, in lines for the narrowest terminal."""
    column = max(map(len, RECIPES)) + 4
    return fill(
        RECIPES[name].about,
        NARROW,
        initial_indent=f"  {name}".ljust(column),
        subsequent_indent=" " * column,
    )


def parse_options(
    name: str, chosen: Recipe, arguments: list[str]
) -> tuple[Recipe, Options[Any, Any]]:
    """A recipe with the user's options put into it, and all that was given.

    The sizes that --init tells are there before the options, which may change them.
    """
    out = value_of("--out", arguments) or str(Path("runs") / Path(name).stem)
    chosen = replace(chosen, init=value_of("--init", arguments) or chosen.init)
    if not HELP_ASKED & set(arguments):
        anew = "--start-over" in [one.replace("_", "-") for one in arguments]
        chosen = adopted(chosen, run_folder(out), start_over=anew)
    kind: Any = Options[type(chosen.model), type(chosen.task)]  # type: ignore[misc]
    parts: dict[str, Any] = {"task": chosen.task, "model": chosen.model, "train": chosen.train}
    default = Options(**parts, out=out, init=chosen.init)
    options = parse(
        kind,
        arguments,
        default=default,
        prog=f"saccade train {name}",
        description=f"{chosen.about} ({chosen.system}: {chosen.lecture}).",
    )
    given = {"model": options.model, "task": options.task, "train": options.train}
    return replace(chosen, **given, init=options.init), options


def run_training(chosen: Recipe, out: Path, **over: bool) -> TrainingOutcome:
    """Train with progress shown, and say what to do next."""
    with training_shown(chosen) as watch:
        outcome = train(chosen, out, watch, **over)
    if not outcome.first:
        return outcome
    if outcome.signal:
        say(f"stopped at step {outcome.step:,}; the same command goes on from there")
    else:
        took = f"in {duration(outcome.training)}, after {duration(outcome.preparing)} of preparing"
        next_step = f"  (saccade eval {outcome.folder})" if sys.stderr.isatty() else ""
        say(f"trained: {outcome.folder} {took}{next_step}")
    return outcome

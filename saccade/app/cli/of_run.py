"""`saccade predict|eval|look RUN …`: work and options are those of the run's kind."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from textwrap import indent

from saccade.app.cli.options import call, value_of
from saccade.app.cli.output import show_help
from saccade.app.kinds import HOMES, kind_for, kind_named
from saccade.app.kinds.base import Kind
from saccade.errors import ConfigError, RunError
from saccade.tasks.images import keep_in
from saccade.train.storage.folder import RunFolder

RAY = "--ray"
HELP = """usage: saccade {verb} RUN … [OPTIONS]

{about}

{kinds}

`saccade {verb} RUN --help` lists the options of that run's kind with their values.{more}"""
WITH_RAY = """
With --ray the workers of a Ray cluster answer files (docs/scale.md)."""


def predict(arguments: list[str]) -> int:
    """Use a trained model."""
    if RAY in arguments and not {"-h", "--help"} & set(arguments):
        from saccade.app.cluster.predicting import predict_with_ray

        call(predict_with_ray, arguments, prog="saccade predict")
        return 0
    return _of_run("predict", "Use a trained model.", arguments, lambda kind: kind.predict)


def evaluate(arguments: list[str]) -> int:
    """Score a trained model."""
    about = "Score a run on data that it was not trained on."
    keep_in(value_of("--cache", arguments))
    return _of_run("eval", about, arguments, lambda kind: kind.evaluate)


def look(arguments: list[str]) -> int:
    """See where a trained model looks."""
    return _of_run("look", "Show where a model looks.", arguments, lambda kind: kind.look)


def _of_run(
    verb: str, about: str, arguments: list[str], command: Callable[[Kind], Callable[..., None]]
) -> int:
    run = _named_run(arguments)
    if run is None:
        if arguments and not {"-h", "--help"} & set(arguments):
            raise ConfigError(f"name a run first: saccade {verb} RUN {' '.join(arguments)}")
        kinds = "\n\n".join(
            f"{name}:\n{indent(_teaching(command(kind_named(name))), '  ')}" for name in HOMES
        )
        more = WITH_RAY if verb == "predict" else ""
        show_help(HELP.format(verb=verb, about=about, kinds=kinds, more=more))
        return 0 if arguments else 2
    kind = kind_for(RunFolder(run).load_recipe().task)
    call(command(kind), arguments, prog=f"saccade {verb}")
    return 0


def _named_run(arguments: list[str]) -> Path | None:
    """The first argument that is a run's folder; else the first that is no option must be one."""
    for one in arguments:
        with suppress(OSError, ValueError):  # too long for a name: a text
            if (Path(one) / "config.json").is_file():
                return Path(one)
    if not arguments or arguments[0].startswith("-"):
        return None
    path = Path(arguments[0])
    with suppress(OSError, ValueError):
        if path.is_dir():
            return path
    raise RunError(f"there is no run at {arguments[0][:200]}; `saccade train NAME` makes one")


def _teaching(command: Callable[..., None]) -> str:
    """What a command's docstring says before its options."""
    lines = (command.__doc__ or "").partition("Args:")[0].strip().splitlines()
    return "\n".join(line.strip() for line in lines)

"""The command line: a literal dict of commands, and one place where errors become one line."""

import os
import sys
from collections.abc import Callable

from saccade.errors import SaccadeError

USAGE = """usage: saccade COMMAND …

Train attention models on your own data, use them, and see where they look.

  train RECIPE     train a recipe, or go on with a run that was stopped
  eval RUN         scores on held-out data
  predict RUN …    translate, go on writing, or say what is on images
  look RUN …       where the model looked for each word: in a text, or on images
  export RUN       the model for CTranslate2 or ONNX
  serve RUN …      the page and an HTTP interface, on this machine
  demo             all of it on the built-in corpus, in minutes
  list             every recipe: what it is, its lecture, its size
  describe NAME    settings and size of a recipe or a model preset
  bench WHAT       what training, decoding and looking cost beside other programs, in one run

`saccade COMMAND --help` tells more."""


def _run(name: str, arguments: list[str]) -> int:
    """Run a command; each is imported only when it is asked for."""
    if name == "train":
        from saccade.app.cli.train import train_command

        return train_command(arguments)
    if name == "bench":
        from saccade.app.cli.bench import bench_command

        return bench_command(arguments)
    import tyro

    tyro.cli(
        _command(name),
        args=arguments,
        prog=f"saccade {name}",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return 0


def _command(name: str) -> Callable[..., None]:
    if name == "eval":
        from saccade.app.cli.evaluate import eval_command as command
    elif name == "predict":
        from saccade.app.cli.predict import predict_command as command
    elif name == "look":
        from saccade.app.cli.look import look_command as command
    elif name == "export":
        from saccade.app.cli.export import export_command as command
    elif name == "serve":
        from saccade.app.cli.serve import serve_command as command
    elif name == "demo":
        from saccade.app.cli.demo import demo_command as command
    elif name == "list":
        from saccade.app.cli.listing import list_command as command
    else:
        from saccade.app.cli.listing import describe_command as command
    return command


COMMANDS = (
    "train",
    "eval",
    "predict",
    "look",
    "export",
    "serve",
    "demo",
    "list",
    "describe",
    "bench",
)


def main() -> None:
    """What the `saccade` command runs."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        from saccade import __version__

        print(f"saccade {__version__}")
        sys.exit(0)
    name, *rest = arguments
    if name not in COMMANDS:
        _fail(f"there is no command {name!r}; there are: {', '.join(COMMANDS)}", 2)
    try:
        sys.exit(_run(name, rest))
    except SaccadeError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _fail(message: str, code: int) -> None:
    print(f"saccade: {message}", file=sys.stderr)
    sys.exit(code)

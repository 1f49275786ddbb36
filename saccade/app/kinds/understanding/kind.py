"""Understanding: texts in, and out what is true of them, and what in them that came from."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from saccade.app.api import load
from saccade.app.cli.inputs import (
    check_file,
    check_out,
    input_lines,
    is_page,
    one_text,
    say_written,
    with_zoom,
)
from saccade.app.cli.options import Output, RunArgument, TextArguments
from saccade.app.cli.output import (
    busy,
    counting,
    print_json,
    say,
    show_table,
    tell,
    warnings_said,
)
from saccade.app.cli.scores.classes import draw_confusion, print_by_class
from saccade.app.cli.scores.tags import tell_tags
from saccade.app.cli.text_look import look_at_text
from saccade.app.export.text.write import UNDERSTANDING
from saccade.app.kinds.base import HeldOut, Kind, check_zoom, load_alike
from saccade.app.kinds.text_lines import Rows, predict_lines
from saccade.app.kinds.understanding.model import UnderstandingModel, load_understanding
from saccade.app.kinds.understanding.serve import (
    UnderstandingServing,
    answer_table,
    line_document,
)
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.readers.labelled_texts.read import labelled_text_splits
from saccade.errors import ConfigError
from saccade.tasks.base import Progress
from saccade.tasks.understanding.classifier import BEST, PAIR, TextAnswer, TextClassifier, Texts
from saccade.tasks.understanding.evaluate import evaluate_texts
from saccade.tasks.understanding.figures import TITLES

UNLABELLED = "take --split valid"
LEADERBOARD = "write GLUE's leaderboard its file: --submission FILE.tsv"


def predict_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    second: str | None = None,
    best: int = BEST,
    skip_bad: int = 0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Say what is true of texts, or of pairs of them.

    Texts come from the command line, from a file that is named there, or with - from standard
    input, one a line. The two texts of a pair have a tab between them, or the second is given by
    --second for all. One text on the command line gives its best classes, each with its
    probability; otherwise a line for each has the class, a tab, and its probability. Tags stand
    below the words of one text, and in a line of their own for each of many.

    Args:
        run: folder of the run.
        texts: texts, or a file of them.
        text: texts that are no file, whatever they look like.
        second: the second text of every pair.
        best: how many classes are told of one text, and in the JSON.
        skip_bad: this many lines that cannot be read are answered with a blank one; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    if best < 1:
        raise ConfigError(f"best={best} must be at least 1")
    lines = input_lines(texts, text, skip_bad=skip_bad)
    with busy("loading"):
        model: UnderstandingModel = load(run, device=device)
    tool = model.tool

    def parted(line: str) -> Texts:
        return tool.parted(with_second(model, line, second))

    def predict(some: list[str], first: int, progress: Progress) -> list[Rows]:
        found = tool.answers(list(map(parted, some)), best=best, progress=progress)
        _say_cut(tool, found)
        return [[answer_table(one)] for one in found]

    predict_lines(
        lines,
        predict,
        blank=[{"text": ""}],
        check=parted,
        doing="reading",
        json=json,
        show=partial(_show, alone=lines.total == 1),
    )


def with_second(model: UnderstandingModel, line: str, second: str | None) -> str:
    """A pair as a line has it."""
    if second is not None and not model.tool.labels.pairs:
        raise ConfigError(f"--second is of pairs, and {model.name} reads one text; leave it out")
    return line if second is None else f"{line}{PAIR}{second}"


def _show(row: dict[str, Any], *, alone: bool) -> None:
    """Of one text all there is, of many a line each."""
    guesses = [(one["label"], f"{one['probability']:.4f}") for one in row.get("guesses", [])]
    if alone and "tags" in row:
        tell_tags(row["words"], row["tags"])
    elif alone and guesses:
        for guess in guesses:
            tell(*guess)
    elif guesses and len(row["labels"]) == 1:
        tell(row["text"], guesses[0][1])
    else:
        tell(row["text"])


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    text: str = "",
    second: str = "",
    label: str = "",
    submission: Path | None = None,
    confusion: Path | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score a run on texts that it was not trained on.

    The figures of its task: accuracy, F1, Matthews, Pearson or Spearman; of each class how many of
    those taken for it were (precision) and how many were found (recall); which classes are taken
    for one another. Of a split without labels, as GLUE's test splits are, only a submission.

    Args:
        run: folder of the run, such as runs/bert-classify.
        held_out: which data to score on; MNLI also has valid_mismatched and test_mismatched, and
            lingua compositional.
        text: the column of the text, or of the first of two, where --data call it otherwise.
        second: the column of the second text, likewise.
        label: the column of the label, likewise.
        submission: write the predictions as GLUE's leaderboard takes them, into this .tsv file; in
            a folder it gets the leaderboard's name, such as MNLI-mm.tsv.
        confusion: draw the confusion matrix into this .png or .svg file.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    _check_files(submission, confusion)
    model: UnderstandingModel = load(run, device=device)
    labels = model.tool.labels
    if confusion is not None and labels.kind not in ("classes", "tags"):
        raise ConfigError(f"{model.name} tells no single class apart; leave --confusion out")
    if submission is not None and not labels.task:
        raise ConfigError(f"{model.name} was not trained on a task of GLUE; leave --submission out")
    columns = {"text": text, "second": second, "label": label}
    asked = held_out.settings(model.tool.settings, **_named_columns(columns, held_out))
    split = held_out.choose(asked, partial(labelled_text_splits, columns=asked.columns))
    with counting("reading") as progress:
        found = evaluate_texts(model.tool, asked, split, submission=submission, progress=progress)
    if "submission" in found:
        say_written(Path(found["submission"]))
    held_out.kept(run, found)
    print_json(found) if json else _print_scores(found, of_glue=bool(labels.task))
    if confusion is not None and "confusion" in found:
        title = f"{model.name}: what is true in {found['split']}, and what it was taken for"
        with warnings_said():
            say_written(draw_confusion(found, confusion, title))


def _say_cut(tool: TextClassifier, answers: Sequence[TextAnswer]) -> None:
    if cut := sum(one.cut for one in answers):
        say(f"cut: {cut:,} of the texts, of which the run reads {tool.longest:,} tokens")


def _named_columns(columns: dict[str, str], held_out: HeldOut) -> dict[str, str]:
    """Those that were named, of other data than the run's own."""
    given = {name: column for name, column in columns.items() if column}
    if given and not held_out.data:
        raise ConfigError(f"--{next(iter(given))} is a column of --data; name that, too")
    return given


def _check_files(submission: Path | None, confusion: Path | None) -> None:
    """Refuse what cannot be written before anything is read."""
    if confusion is not None:
        if confusion.suffix not in (".png", ".svg"):
            raise ConfigError(f"--confusion {confusion.name} must end in .png or .svg")
        check_file(confusion)
    if submission is not None and not submission.is_dir():
        if submission.suffix != ".tsv":
            raise ConfigError(
                f"--submission {submission.name} must end in .tsv, or be a folder that is there"
            )
        check_file(submission)


def _print_scores(found: dict[str, Any], *, of_glue: bool) -> None:
    rate = found["texts"] / max(found["seconds"], 1e-9)
    tell(
        f"{found['split']}: {found['texts']:,} texts, {found['seconds']:.1f} s "
        f"({rate:,.0f} texts/s)"
    )
    if "loss" not in found:
        way_out = f"; {UNLABELLED}, or {LEADERBOARD}" if of_glue else f"; {UNLABELLED}"
        way_out = "" if "submission" in found else way_out
        tell(f"what is true of them is not known, so there is nothing to score{way_out}")
        return
    if found["unlabelled"]:
        tell(f"{found['unlabelled']:,} of them have no label, and do not count below")
    tell("")
    names = {**TITLES, "loss": "loss"}
    show_table([(label, f"{found[name]:.4f}") for name, label in names.items() if name in found])
    if "by_class" in found:
        print_by_class(found, unit=found["counted"])


def look_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    second: str | None = None,
    out: Output = None,
    of: str | None = None,
    flow: bool = False,
    select: Selection = Selection(),  # noqa: B008
    compare: str | None = None,
    zoom: tuple[str, ...] = (),
    budget: int = LookSettings.budget,
    skip_bad: int = 0,
    device: str = "auto",
) -> None:
    """Say what is true of a text or a pair, and what in it that came from.

    What the first token looks at in each layer and head, from which a class is read; attention
    followed through all layers (rollout); and weighed by the gradient of the class's score
    (relevance). Where words have tags, of each word. With --out it goes to a file: .html is a page
    that works without a network, for a pair with the flow between its texts; .png and .svg are
    pictures for papers; .json has the numbers.

    Args:
        run: folder of the run.
        texts: the text, or a pair with a tab between, a file of it, or - for standard input.
        text: a text that is no file, whatever it looks like.
        second: the second text of a pair.
        out: a .html, .png, .svg or .json file.
        of: ask for the traces of this class or tag, whatever the model says.
        flow: of a pair, print or draw where the words of the second text look in the first.
        select: which maps are printed or drawn; without, both kinds and the mean of each layer.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        zoom: heads to keep exactly on the page, as encoder.3.self:7; the sharpest by default.
        budget: bytes that the arrays of a page may take, as text.
        skip_bad: this many lines of a file that are no text are left out; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out, compare)
    how = with_zoom(LookSettings(budget=budget, of=of), zoom)
    line = one_text(texts, text, skip_bad=skip_bad)
    if flow and is_page(out):
        raise ConfigError("--flow chooses what is printed or drawn; a page has it: leave it out")
    models = load_alike(run, compare, device)
    check_zoom(models, how, out)
    line = with_second(models[0], line, second)
    look_at_text(models, line, how, out, line_document, select, writes=not is_page(out), flow=flow)
    if not is_page(out):  # which says so itself
        tool: TextClassifier = models[0].tool
        _say_cut(tool, tool.answers([tool.parted(line)]))


KIND = Kind(
    name="understanding",
    load=load_understanding,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=UnderstandingServing(),
    exports=UNDERSTANDING,
)

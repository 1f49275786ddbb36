"""Questions about images: an image and a question in, answers out."""

from functools import partial
from typing import Any

from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import show_table, tell
from saccade.app.kinds.base import Kind, LoadedRun
from saccade.app.kinds.joint.commands import (
    Answered,
    PairLookOptions,
    PairOptions,
    SplitTruth,
    answer_fields,
    look_at_pairs,
    predict_pairs,
)
from saccade.app.kinds.joint.model import joint_loader
from saccade.app.kinds.joint.regions import HeldOutPairs
from saccade.app.kinds.joint.scores import evaluate, tell_pace
from saccade.app.kinds.joint.serve import JointServing
from saccade.app.look.joint.subject import PairTruth
from saccade.data.answers import AnswerSet
from saccade.data.readers.images.asked.forms import QUESTIONS
from saccade.data.readers.images.asked.read import asked_splits
from saccade.errors import RunError
from saccade.printable import printable
from saccade.tasks.joint.answering import ASSET, read_answers_asset, read_questions
from saccade.tasks.joint.evaluate import evaluate_answers
from saccade.tasks.joint.pairs import BEST
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.joint.tools import AnswerTool


def predict_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    best: int = BEST,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Answer questions about images: saccade predict RUN photo.jpg "what colour is the cross?"

    Images are files, folders, .tar and .zip archives, or patterns in quotes; the question comes
    last, or several by --text. A .jsonl file has an image and a question a line, and - reads them
    from standard input with a tab between. One question about one image gives the best answers,
    each with its probability; otherwise each has a line with the best. Answers are likely by
    themselves: several may be.

    Args:
        run: folder of the run.
        given: images, and the question.
        asked: what is asked, and who says where regions are.
        best: how many answers are told of one question, and in the JSON.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    predict_pairs(run, given, asked, Answered(show=answer_fields, best=best), device, json=json)


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOutPairs = HeldOutPairs(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score answers to questions that the run was not trained on.

    An answer is as right as people say so: that of three of ten is. Of shapes also by what a
    question takes: to look, to count, to find, or to relate.

    Args:
        run: folder of the run, such as runs/vilbert-questions.
        held_out: which data to score on; shapes also have the splits compositional and many.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    splits = partial(asked_splits, form=QUESTIONS)
    evaluate(run, held_out, splits, _score, _print_scores, device, json=json)


def _score(tool: AnswerTool, **more: Any) -> dict[str, Any]:
    return evaluate_answers(tool.joint, tool.known, **more)


def _print_scores(found: dict[str, Any]) -> None:
    tell_pace(found, "questions")
    rows = [("accuracy", f"{found['accuracy']:.4f}")]
    rows += [(f"  to {name}", f"{value:.4f}") for name, value in found["by_kind"].items()]
    show_table(rows)
    if unknown := found["unknown_answers"]:
        tell(f"to {unknown:,} of the questions the run knows no right answer")


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    of: str | None = None,
    options: PairLookOptions = PairLookOptions(),  # noqa: B008
) -> None:
    """Answer a question about an image, and show which regions each word looked at.

    With --out it goes to a file: .html is a page that works without a network, with every layer and
    head, what each region looked at, and what the answer would be without it; .png and .svg are
    images for papers; .json has the numbers. A page may hold many, and of a split whether they are
    right: saccade look RUN --split test --rows 24 -o page.html

    Args:
        run: folder of the run.
        given: the image, and the question.
        asked: what is asked, and who says where regions are.
        of: on a page, ask what speaks for this answer, whatever the model says.
        options: what is looked at, and where that goes.
    """
    look_at_pairs(run, given, asked, options, SplitTruth(read_questions, _truth), of)


def _truth(said: Any) -> PairTruth:
    return PairTruth(answers=said.answers)


def answers_of(run: LoadedRun) -> AnswerSet:
    """The answers that a run has kept; refuses those of another."""
    path, wanted = run.asset(ASSET), vars(run.recipe.model)["labels"]
    try:
        answers = read_answers_asset(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{printable(path)} does not say what the run answers ({printable(error)}); copy the "
            "run again as a whole"
        ) from None
    if len(answers) != wanted:
        raise RunError(
            f"{printable(path)} has {len(answers):,} answers, and the model tells {wanted:,} apart:"
            " it belongs to another run; copy the run again as a whole"
        )
    return answers


def _tool(joint: JointTool, run: LoadedRun) -> AnswerTool:
    return AnswerTool(joint, answers_of(run))


KIND = Kind(
    name="answering",
    load=joint_loader(_tool),
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=JointServing("answers questions"),
)

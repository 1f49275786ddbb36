"""Sentences about images: an image and several sentences in, the one that fits out."""

from functools import partial
from typing import Any

from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import show_table
from saccade.app.kinds.base import Kind
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
from saccade.app.kinds.joint.scores import evaluate, of_joint, tell_pace
from saccade.app.kinds.joint.serve import JointServing
from saccade.app.look.joint.subject import PairTruth
from saccade.data.readers.images.asked.forms import CHOICES
from saccade.data.readers.images.asked.read import asked_splits
from saccade.tasks.joint.choosing import Offered, read_choices
from saccade.tasks.joint.evaluate import evaluate_choices
from saccade.tasks.joint.tools import ChoosingTool


def predict_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Choose the sentence that fits: saccade predict RUN photo.jpg --text "a dog" --text "a cat"

    Images are files, folders, .tar and .zip archives, or patterns in quotes. One image gives all
    sentences, the likeliest first, each with its probability among them; of several images each has
    a line with the best. A .jsonl file has an image and a list of sentences a line, and - reads
    them from standard input with tabs between; each gives one line.

    Args:
        run: folder of the run.
        given: images.
        asked: the sentences, and who says where regions are.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    predict_pairs(run, given, asked, Answered(show=answer_fields, together=True), device, json=json)


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOutPairs = HeldOutPairs(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score how often the likeliest of several sentences is the right one.

    Args:
        run: folder of the run, such as runs/vilbert-choices.
        held_out: which data to score on; shapes also have the splits compositional and many.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    splits = partial(asked_splits, form=CHOICES)
    score = of_joint(evaluate_choices)
    evaluate(run, held_out, splits, score, _print_scores, device, json=json)


def _print_scores(found: dict[str, Any]) -> None:
    tell_pace(found, "choices", f" among {found['sentences']:,} sentences")
    show_table([(name, f"{found[name]:.4f}") for name in ("accuracy", "chance")])


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    of: str | None = None,
    options: PairLookOptions = PairLookOptions(),  # noqa: B008
) -> None:
    """Choose among sentences, and show which regions the words of each looked at.

    With --out it goes to a file: .html is a page that works without a network, with every sentence,
    layer and head, and how likely it would be chosen without a region; .png and .svg are images for
    papers; .json has the numbers: these three are of the sentence that was chosen. A page may hold
    many, and of a split which is right: saccade look RUN --split test --rows 24 -o page.html

    Args:
        run: folder of the run.
        given: the image.
        asked: the sentences, and who says where regions are.
        of: look at this one of the sentences, whichever is chosen; a page has them all.
        options: what is looked at, and where that goes.
    """
    look_at_pairs(run, given, asked, options, SplitTruth(read_choices, _truth, together=True), of)


def _truth(said: Offered) -> PairTruth:
    return PairTruth(sentence=said.texts[said.right])


KIND = Kind(
    name="choosing",
    load=joint_loader(lambda joint, run: ChoosingTool(joint)),
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=JointServing("chooses a sentence", chooses=True),
)

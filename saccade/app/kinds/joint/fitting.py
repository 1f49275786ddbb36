"""Sentences and images: which of them belong together."""

from typing import Any

from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import tell
from saccade.app.kinds.base import Kind
from saccade.app.kinds.image_files import Fields
from saccade.app.kinds.joint.commands import (
    Answered,
    PairLookOptions,
    PairOptions,
    Row,
    SplitTruth,
    caption_truth,
    look_at_pairs,
    predict_pairs,
)
from saccade.app.kinds.joint.model import joint_loader
from saccade.app.kinds.joint.regions import HeldOutPairs
from saccade.app.kinds.joint.scores import evaluate, of_joint, print_points, show_recalls
from saccade.app.kinds.joint.serve import JointServing
from saccade.data.readers.images.read import image_splits
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.evaluate import evaluate_fitting
from saccade.tasks.joint.tools import FittingTool


def predict_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Rank images by a sentence, or sentences by an image, the best first.

    Which of a folder's images is meant: saccade predict RUN photos/ "a dog on grass". Which of
    several sentences fits: saccade predict RUN photo.jpg --text "a dog" --text "a cat". A .jsonl
    file has an image and a sentence a line, and - reads them from standard input with a tab
    between. Each line has what there are several of, and how likely they fit.

    Args:
        run: folder of the run.
        given: images, and the sentence.
        asked: what is asked, and who says where regions are.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    predict_pairs(run, given, asked, Answered(show=_lines, ranks=True), device, json=json)


def _lines(row: Row, alone: bool) -> Fields:
    return [(f"{row['fits']:.4f}",)]


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOutPairs = HeldOutPairs(),  # noqa: B008
    pointing: bool = False,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score how often the right image is among the first found for a sentence, and the other way.

    R@5 is the share of sentences whose image is among the best five of all in the split. With a
    shortlist, only so many that seem alike beforehand are looked at together.

    Args:
        run: folder of the run, such as runs/vilbert-retrieval.
        held_out: which data to score on; shapes also have the splits compositional and many.
        pointing: on shapes, also how often nouns look at the very region that they mean.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    score = of_joint(evaluate_fitting, pointed=pointing)
    evaluate(run, held_out, image_splits, score, _print_scores, device, json=json)


def _print_scores(found: dict[str, Any]) -> None:
    tell(
        f"{found['split']}: {found['sentences']:,} sentences about {found['images']:,} images, "
        f"{found['seconds']:.1f} s"
    )
    if found["shortlist"]:
        tell(f"of all, the {found['shortlist']} that seem most alike were looked at together")
    tell("")
    show_recalls(found)
    print_points(found)


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    options: PairLookOptions = PairLookOptions(),  # noqa: B008
) -> None:
    """Say whether a sentence fits an image, and show which regions each word looked at.

    With --out it goes to a file: .html is a page that works without a network, with every layer and
    head, and how well the sentence would fit without a region; .png and .svg are images for papers;
    .json has the numbers. A page may hold many: saccade look RUN --split test -o page.html

    Args:
        run: folder of the run.
        given: the image, and the sentence.
        asked: what is asked, and who says where regions are.
        options: what is looked at, and where that goes.
    """
    look_at_pairs(run, given, asked, options, SplitTruth(read_captions, caption_truth))


KIND = Kind(
    name="fitting",
    load=joint_loader(lambda joint, run: FittingTool(joint)),
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=JointServing("says what fits"),
)

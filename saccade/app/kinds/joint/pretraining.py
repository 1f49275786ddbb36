"""Pre-trained on images and captions: a sentence with blanks about an image in, words out."""

from collections.abc import Iterator
from typing import Any

from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import print_scores
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
from saccade.app.kinds.joint.scores import POINTING, evaluate, of_joint, print_points
from saccade.app.kinds.joint.serve import JointServing
from saccade.data.readers.images.read import image_splits
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.evaluate import evaluate_pretraining
from saccade.tasks.joint.pairs import BEST
from saccade.tasks.joint.tools import FillingTool


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
    """Fill the blanks of a sentence about an image: saccade predict RUN photo.jpg "a ___ on grass"

    A blank is written as ___ or [MASK]; a sentence without any is only told how well it fits.
    Images are files, folders, .tar and .zip archives, or patterns in quotes; the sentence comes
    last, or several by --text. A .jsonl file has an image and a sentence a line, and - reads them
    from standard input with a tab between. Each gives the sentence, a tab, and how likely it is
    about the image; of one alone, the best words for each blank stand below it.

    Args:
        run: folder of the run.
        given: images, and the sentence.
        asked: what is asked, and who says where regions are.
        best: how many words are told for each blank.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    predict_pairs(run, given, asked, Answered(show=_lines, best=best), device, json=json)


def _lines(row: Row, alone: bool) -> Fields:
    yield row["text"], f"{row['fits']:.4f}"
    if alone:
        yield from _blanks(row)


def _blanks(row: Row) -> Iterator[tuple[str]]:
    for words in row.get("blanks", []):
        yield ("  " + ", ".join(f"{one['word']} {one['probability']:.3f}" for one in words),)


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOutPairs = HeldOutPairs(),  # noqa: B008
    pointing: bool = False,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score hidden words and regions, and what fits, on captions that it was not trained on.

    The same words are hidden each time, so that runs with one tokenizer can be compared.

    Args:
        run: folder of the run, such as runs/vilbert.
        held_out: which data to score on; shapes also have the splits compositional and many.
        pointing: on shapes, also how often nouns look at the very region that they mean.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    score = of_joint(evaluate_pretraining, pointed=pointing)
    evaluate(run, held_out, image_splits, score, _print_scores, device, json=json)


def _print_scores(found: dict[str, Any]) -> None:
    print_scores({name: value for name, value in found.items() if name != POINTING})
    print_points(found)


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    options: PairLookOptions = PairLookOptions(),  # noqa: B008
) -> None:
    """Fill the blanks of a sentence about an image, and show which regions each word looked at.

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
    name="joint",
    load=joint_loader(lambda joint, run: FillingTool(joint)),
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=JointServing("fills blanks"),
)

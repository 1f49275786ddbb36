"""Phrases about images: an image and a phrase in, the box of what it means out."""

from functools import partial
from pathlib import Path
from typing import Any

from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import show_table
from saccade.app.kinds.base import Kind
from saccade.app.kinds.found_files import free_stem, make_folder, quick_png
from saccade.app.kinds.image_files import Fields
from saccade.app.kinds.joint.commands import (
    Answered,
    PairLookOptions,
    PairOptions,
    Row,
    SplitTruth,
    look_at_pairs,
    predict_pairs,
)
from saccade.app.kinds.joint.model import PairPrediction, joint_loader
from saccade.app.kinds.joint.regions import HeldOutPairs
from saccade.app.kinds.joint.scores import evaluate, of_joint, tell_pace
from saccade.app.kinds.joint.serve import JointServing
from saccade.app.look.draw.boxes import DrawnBox, draw_boxes
from saccade.app.look.draw.figure import write
from saccade.app.look.joint.subject import PairTruth
from saccade.data.images.given import pixels_of
from saccade.data.readers.images.asked.forms import REFERRING
from saccade.data.readers.images.asked.read import asked_splits
from saccade.tasks.joint.evaluate import evaluate_referring
from saccade.tasks.joint.referring import read_phrases
from saccade.tasks.joint.tools import ReferringTool


def predict_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    draw: Path | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Find what phrases mean in images: saccade predict RUN photo.jpg "the dog on the left"

    Images are files, folders, .tar and .zip archives, or patterns in quotes; the phrase comes
    last, or several by --text. A .jsonl file has an image and a phrase a line, and - reads them
    from standard input with a tab between. Each gives a line: left, top, right and bottom in
    pixels, and how likely that region is meant, with tabs between them.

    Args:
        run: folder of the run.
        given: images, and the phrase.
        asked: what is asked, and who says where regions are.
        draw: a folder for the images with the boxes drawn on them.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    if draw is not None:
        make_folder(draw)
    take = None if draw is None else DrawnPhrases(draw).take
    predict_pairs(run, given, asked, Answered(show=_lines, take=take), device, json=json)


def _lines(row: Row, alone: bool) -> Fields:
    return [(*(f"{x:.1f}" for x in row["box"]), f"{row['score']:.4f}")]


class DrawnPhrases:
    """A folder for images, each with the box of what a phrase means."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._names = folder, set[str]()

    def take(self, one: PairPrediction) -> None:
        """Draw it, under a name that no other has."""
        assert one.answer.box is not None
        image = one.source
        box = DrawnBox(one.answer.box, f"{one.given} {one.score:.2f}", 0)
        pixels = pixels_of(image.image, name=image.name, short=max(image.size))
        stem = free_stem(Path(one.name).stem, self._names)
        self._names.add(stem)
        write(self._folder / f"{stem}.png", quick_png(draw_boxes(pixels, [box])))


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOutPairs = HeldOutPairs(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score how often the region that is found for a phrase shares half of the true box.

    Args:
        run: folder of the run, such as runs/vilbert-referring.
        held_out: which data to score on; shapes also have the splits compositional and many.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    splits = partial(asked_splits, form=REFERRING)
    score = of_joint(evaluate_referring)
    evaluate(run, held_out, splits, score, _print_scores, device, json=json)


def _print_scores(found: dict[str, Any]) -> None:
    tell_pace(found, "phrases")
    rows = [("accuracy at IoU 0.5", f"{found['accuracy']:.4f}")]
    if found["chance"] is not None:
        rows.append(("by chance", f"{found['chance']:.4f}"))
    show_table(rows)


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    asked: PairOptions = PairOptions(),  # noqa: B008
    options: PairLookOptions = PairLookOptions(),  # noqa: B008
) -> None:
    """Find what a phrase means in an image, and show which regions each word looked at.

    With --out it goes to a file: .html is a page that works without a network, with every layer and
    head, how likely each region is meant, and how likely the chosen one were without another; .png
    and .svg are images for papers; .json has the numbers. A page may hold many, and of a split
    whether they are right: saccade look RUN --split test --rows 24 -o page.html

    Args:
        run: folder of the run.
        given: the image, and the phrase.
        asked: what is asked, and who says where regions are.
        options: what is looked at, and where that goes.
    """
    look_at_pairs(run, given, asked, options, SplitTruth(read_phrases, _truth))


def _truth(box: Any) -> PairTruth:
    return PairTruth(box=box)


KIND = Kind(
    name="referring",
    load=joint_loader(lambda joint, run: ReferringTool(joint)),
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=JointServing("finds what phrases mean"),
)

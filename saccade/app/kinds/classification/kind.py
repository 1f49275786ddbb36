"""Classification: images in, classes out, and what of the image a class came from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from saccade.app.api import load
from saccade.app.cli.image_look import check_asked, look_at_images
from saccade.app.cli.inputs import check_out, say_written
from saccade.app.cli.options import ImageArguments, Output, RunArgument
from saccade.app.cli.output import busy, counting, print_json, warnings_said
from saccade.app.cli.scores.classes import draw_confusion, print_class_scores
from saccade.app.export.classifier import EXPORTS
from saccade.app.kinds.base import HeldOut, Kind, load_alike
from saccade.app.kinds.classification.model import BEST, ClassificationModel, load_classifier
from saccade.app.kinds.classification.serve import ClassificationServing, guesses_table
from saccade.app.kinds.image_files import Fields, Row, check_images, guess_fields, predict_images
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.classification import Subject, class_document, class_look
from saccade.app.look.document import LookDocument
from saccade.app.look.images import ShownImage, evenly
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.readers.images.labels import label_splits
from saccade.errors import ConfigError
from saccade.models.inference.scores import ScorePrecision
from saccade.tasks.base import Progress
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.data import read_split
from saccade.tasks.classification.evaluate import evaluate_classifier


def predict_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    best: int = BEST,
    precision: ScorePrecision = "auto",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Say what images show.

    Images are files, folders of them, .tar and .zip archives, patterns in quotes ("*.jpg"), or -
    for an image or names of files on standard input. One file gives its best classes, each with its
    probability; otherwise each line has the file's name, a tab, the class, a tab, its probability.
    What cannot be read is told on standard error and passed over; the exit code is then 1.

    Args:
        run: folder of the run.
        images: files, folders, archives and patterns.
        best: how many classes are told of one image, and in the JSON.
        precision: of the arithmetic; auto is bfloat16 on a GPU and float32 elsewhere.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print all of them with their probabilities, as JSON.
    """
    check_images(images)
    if best < 1:
        raise ConfigError(f"best={best} must be at least 1")
    with busy("loading"):
        model: ClassificationModel = load(run, device=device)

    def classify(prepared: list[Tensor]) -> list[Row]:
        found = model.predict(prepared, best=best, precision=precision)
        return [guesses_table(one.labels, one.guesses) for one in found]

    predict_images(
        model.tool, images, classify, doing="classifying", json=json, fields=_lines(model.tool)
    )


def _lines(tool: ImageClassifier) -> Any:
    """Of one image all guesses; else the best, and of several classes those that are there."""

    def lines(row: Row, alone: bool) -> Fields:
        guesses = guess_fields(row["guesses"], alone)
        if alone:
            return guesses
        return [(row["text"], guesses[0][1])] if not tool.classes.several else [(row["text"],)]

    return lines


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    confusion: Path | None = None,
    pointing: bool = False,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score a classifier on images that it was not trained on.

    The share of images whose class is the best guess (top-1) or among the best five; of each class
    how many of those taken for it were (precision) and how many were found (recall); how far the
    model's confidence is from how often it is right (calibration error); which classes are taken
    for one another. Where images have several labels: the mean average precision.

    Args:
        run: folder of the run, such as runs/vit.
        held_out: which data to score on; shapes also have the splits compositional and many.
        confusion: draw the confusion matrix into this .png or .svg file.
        pointing: on shapes, where the truth is known, also how often each kind of map points at the
            object that decides the class.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    if confusion is not None and confusion.suffix not in (".png", ".svg"):
        raise ConfigError(f"--confusion {confusion.name} must end in .png or .svg")
    model: ClassificationModel = load(run, device=device)
    if confusion is not None and model.tool.classes.several:
        raise ConfigError(f"{model.name} gives several classes to an image; leave --confusion out")
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, lambda data: label_splits(data, asked.columns))
    if pointing and asked.data:
        raise ConfigError("--pointing is of shapes, of which the truth is known; leave it out")
    with counting("reading") as reading, counting("classifying") as progress:
        where: dict[str, Any] = {"split": split, "settings": asked}
        more: dict[str, Any] = {"points": progress} if pointing else {}
        told: dict[str, Any] = {"reading": reading, "progress": progress, **more}
        found = evaluate_classifier(model.tool, **where, **told)
    held_out.kept(run, found)
    print_json(found) if json else print_class_scores(found)
    if confusion is not None:
        title = f"{model.name}: what images of {found['split']} are, and were taken for"
        with warnings_said():
            say_written(draw_confusion(found, confusion, title))


def look_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    out: Output = None,
    of: str | None = None,
    select: Selection = Selection(),  # noqa: B008
    compare: str | None = None,
    split: str | None = None,
    rows: int | None = None,
    cells: bool = False,
    budget: int = LookSettings.budget,
    device: str = "auto",
) -> None:
    """Say what images show, and what in each the class came from.

    Where attention falls in each layer and head; attention followed through all layers (rollout);
    weighed by the gradient of the class's score (relevance); and Grad-CAM, which models without
    attention have too. With --out it goes to a file: .html is a page that works without a network;
    .png and .svg are images for papers; .json has the numbers. A page may hold many images, to be
    sorted by confidence or by mistakes, and filtered by class:
    saccade look RUN --split test --rows 100 -o page.html

    Args:
        run: folder of the run.
        images: files of images.
        out: a .html, .png, .svg or .json file.
        of: ask for the traces of this class, whatever the model says.
        select: which maps are printed or drawn; without, all kinds and the mean of each layer.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        split: look at images of this split of the run's data.
        rows: how many of them, evenly from all; 60 by default.
        cells: in a .png or .svg, leave the cells of the maps square.
        budget: bytes that the maps of a page may take, as text.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out, compare)
    check_asked(split, rows, named=bool(images))
    models = load_alike(run, compare, device)
    subjects = _subjects(models[0].tool, images, split, 60 if rows is None else rows)

    def document(progress: Progress) -> LookDocument:
        how = LookSettings(budget=budget, of=of)
        return class_document(models, subjects, how, progress=progress)

    def look(subject: Subject) -> ImageLook:
        return class_look(models[0], subject, LookSettings(of=of), select)

    look_at_images(subjects, document, look, out, select, cells=cells)


def _subjects(
    tool: ImageClassifier, files: tuple[str, ...], split: str | None, rows: int
) -> list[Subject]:
    """The images that were named, or some of a split, spread evenly over it."""
    if split is None:
        return [Subject(ShownImage.of(file, tool)) for file in files]
    with counting("reading") as progress:
        read = read_split(tool.settings, split, progress, tool.classes)
    found: list[Subject] = []
    for number in evenly(len(read), rows):
        label = read.labels[number]
        there = label.nonzero()[:, 0].tolist() if label.dim() else [int(label)]
        truth = tuple(tool.classes.names[one] for one in there)
        if read.scenes:
            shown = ShownImage.of_scene(read.scenes[number], f"{split} {number}")
            shown = replace(shown, references=())
        else:
            shown = ShownImage.of(read.rows[number].image, tool)
        found.append(Subject(shown, truth))
    return found


KIND = Kind(
    name="classification",
    load=load_classifier,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=ClassificationServing(),
    exports=EXPORTS,
)

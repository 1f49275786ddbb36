"""Detection: images in, objects with their boxes out, and where the model looked for each."""

from dataclasses import replace
from pathlib import Path

from saccade.app.api import load
from saccade.app.cli.image_look import check_asked, look_at_images
from saccade.app.cli.inputs import check_out, say_written
from saccade.app.cli.options import ImageArguments, Output, RunArgument
from saccade.app.cli.output import (
    busy,
    counting,
    print_json,
    say,
    warnings_said,
)
from saccade.app.cli.scores.detection import (
    draw_box_confusion,
    draw_precision_recall,
    print_detection_scores,
)
from saccade.app.export.detector import EXPORTS
from saccade.app.kinds.base import HeldOut, Kind, load_alike
from saccade.app.kinds.detection.model import (
    DetectionModel,
    PreparedImage,
    check_threshold,
    load_detector,
)
from saccade.app.kinds.detection.serve import DetectionServing, objects_table
from saccade.app.kinds.found_files import FoundFiles, FoundFormat, check_targets
from saccade.app.kinds.image_files import (
    Fields,
    Row,
    check_images,
    predict_images,
)
from saccade.app.look.detection import BoxedImage, object_document, object_look
from saccade.app.look.images import ShownImage, evenly
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.images.given import AnyImage
from saccade.data.readers.images.annotated import box_splits
from saccade.errors import ConfigError
from saccade.tasks.detection.data import read_split
from saccade.tasks.detection.detector import LIKELY, ObjectDetector
from saccade.tasks.detection.evaluate import evaluate_detector

ROWS = 24  # images of a split on a page


def predict_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    threshold: float = LIKELY,
    format: FoundFormat = "text",  # noqa: A002
    out: Output = None,
    draw: Path | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Find the objects of images.

    Images are files, folders of them, .tar and .zip archives, patterns in quotes ("*.jpg"), or -
    for an image or names of files on standard input. Each object is a line: the file's name, a tab,
    the class, the score, and left, top, right and bottom in pixels, with tabs between them. What
    cannot be read is told on standard error and passed over; the exit code is then 1.

    Args:
        run: folder of the run.
        images: files, folders, archives and patterns.
        threshold: objects of a lower score are left out.
        format: text is printed; coco is one .json file and yolo a folder of texts, by --out.
        out: where to: x.json for coco, a folder for yolo.
        draw: a folder for the images with the boxes drawn on them.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print all of it as JSON.
    """
    check_images(images)
    check_threshold(threshold)
    check_targets(format, out, draw, json=json)
    with busy("loading"):
        model: DetectionModel = load(run, device=device)
    files = FoundFiles(model.classes, format, out, draw)
    try:
        _find_all(model, images, files, threshold, json=json)
    finally:  # some could not be read: the others are kept all the same
        if (written := files.finish()) is not None:
            say_written(written)


def _find_all(
    model: DetectionModel,
    images: tuple[str, ...],
    files: FoundFiles,
    threshold: float,
    *,
    json: bool,
) -> None:
    """Print what is found, or put it where it belongs."""
    objects = 0

    def detect(prepared: list[PreparedImage]) -> list[Row]:
        nonlocal objects
        found = model.predict_prepared(prepared, threshold=threshold)
        for one in found:
            files.take(one)
            objects += len(one.objects)
        return [objects_table(one.objects, one.size) for one in found]

    predict_images(
        ImagesOfModel(model),
        images,
        detect,
        doing="finding",
        json=json,
        fields=_lines,
        prints=files.form == "text",
    )
    if files.form == "text" and not json and not objects:
        say(f"no object has a score of {threshold:g} or more; a lower --threshold shows others")


class ImagesOfModel:
    """Implements `ImageTool`: images keep the size that they came with."""

    def __init__(self, model: DetectionModel) -> None:
        self.model, self.batch = model, model.tool.batch

    def prepare(self, image: AnyImage, *, name: str = "") -> PreparedImage:
        return self.model.prepare(image, name=name)


def _lines(row: Row, alone: bool) -> Fields:
    """One for each object."""
    file = (row["file"],) if alone else ()
    for one in row["objects"]:
        yield (*file, one["label"], f"{one['score']:.4f}", *(f"{x:.1f}" for x in one["box"]))


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    curves: Path | None = None,
    confusion: Path | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score a detector on images that it was not trained on.

    Average precision and recall as COCO counts them, of all classes and of each; the confidence
    that gives the best F1; which classes are taken for one another there, missed, or seen where
    nothing is.

    Args:
        run: folder of the run, such as runs/detr.
        held_out: which data to score on; shapes also have the splits compositional and many.
        curves: draw precision over recall into this .png or .svg file.
        confusion: draw which classes are confused into this .png or .svg file.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    for option, path in (("--curves", curves), ("--confusion", confusion)):
        if path is not None and path.suffix not in (".png", ".svg"):
            raise ConfigError(f"{option} {path.name} must end in .png or .svg")
    model: DetectionModel = load(run, device=device)
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, box_splits)
    with counting("reading") as reading, counting("finding") as progress:
        found = evaluate_detector(
            model.tool, split=split, settings=asked, reading=reading, progress=progress
        )
    held_out.kept(run, found)
    print_json(found) if json else print_detection_scores(found)
    with warnings_said():
        if curves is not None:
            title = f"{model.name}: precision over recall on {found['split']}"
            say_written(draw_precision_recall(curves, found, title))
        if confusion is not None:
            title = f"{model.name}: what objects of {found['split']} are, and were taken for"
            say_written(draw_box_confusion(confusion, found, title))


def look_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    out: Output = None,
    threshold: float = LIKELY,
    select: Selection = Selection(),  # noqa: B008
    compare: str | None = None,
    split: str | None = None,
    rows: int | None = None,
    cells: bool = False,
    budget: int = LookSettings.budget,
    device: str = "auto",
) -> None:
    """Find the objects of images, and show where the model looked for each.

    Each object's query looks at the image, in every layer and head of the decoder; queries look at
    one another; and in the encoder every point of the image looks at the others. With --out it goes
    to a file: .html is a page that works without a network, with all of these; .png and .svg are
    images for papers; .json has the numbers. A page may hold many images, and of a split what is
    missed, too: saccade look RUN --split test --rows 24 -o page.html

    Args:
        run: folder of the run.
        images: files of images.
        out: a .html, .png, .svg or .json file.
        threshold: objects of a lower score are not told of; a page may go lower.
        select: which layer and head is printed or drawn; without, the last, the mean of its heads.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        split: look at images of this split of the run's data, where the truth is known.
        rows: how many of them, evenly from all; 24 by default.
        cells: in a .png or .svg, leave the cells of the maps square.
        budget: bytes that the maps of a page may take, as text.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out, compare)
    check_threshold(threshold)
    check_asked(split, rows, named=bool(images))
    models = load_alike(run, compare, device)
    subjects = _subjects(models[0].tool, images, split, ROWS if rows is None else rows)
    how = LookSettings(budget=budget, threshold=threshold)
    look_at_images(
        subjects,
        lambda progress: object_document(models, subjects, how, progress=progress),
        lambda subject: object_look(models[0], subject, how, select),
        out,
        select,
        cells=cells,
    )


def _subjects(
    tool: ObjectDetector, files: tuple[str, ...], split: str | None, rows: int
) -> list[BoxedImage]:
    """The images that were named, or some of a split, spread evenly over it."""
    if split is None:
        return [BoxedImage(ShownImage.in_full(file)) for file in files]
    with counting("reading") as progress:
        read = read_split(tool.settings, split, progress, tool.classes)
    found: list[BoxedImage] = []
    for number in evenly(len(read), rows):
        if read.scenes:
            scene = ShownImage.of_scene(read.scenes[number], f"{split} {number}")
            shown = replace(scene, boxes=(), references=())
        else:
            shown = ShownImage.in_full(read.rows[number].image)
        found.append(BoxedImage(shown, read.objects[number]))
    return found


KIND = Kind(
    name="detection",
    load=load_detector,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=DetectionServing(),
    exports=EXPORTS,
)

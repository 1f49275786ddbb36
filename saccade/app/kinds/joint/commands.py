"""`saccade predict|look RUN …` for models of images and texts: what all kinds have alike."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from saccade.app.api import load
from saccade.app.cli.image_look import check_asked, refuse_several, write_page
from saccade.app.cli.inputs import check_out, is_page, save_look
from saccade.app.cli.options import Output
from saccade.app.cli.output import (
    busy,
    counting,
    json_list,
    say,
    tell,
    tell_drawing,
)
from saccade.app.kinds.base import load_alike
from saccade.app.kinds.image_files import Fields, SomeFailedError, guess_fields, one_field
from saccade.app.kinds.joint.inputs import AskedPair, AskedPairs, asked_pairs
from saccade.app.kinds.joint.model import JointModel, PairPrediction, pair_table
from saccade.app.kinds.joint.regions import Regions, given_regions, regions_by
from saccade.app.look.draw.terminal import terminal
from saccade.app.look.joint.document import pair_document
from saccade.app.look.joint.drawn import pair_look
from saccade.app.look.joint.subject import PairSubject, PairTruth, split_subjects
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.images.given import size_of
from saccade.errors import ConfigError, DataError
from saccade.tasks.base import Progress
from saccade.tasks.joint.pairs import TAB, PairImage, PairTool, RegionBoxes
from saccade.tasks.joint.task import TextsOfImages

ROWS = 24  # texts of a split on a page
PAIR = 'an image and a text to look at, photo.jpg "TEXT"'

Row = dict[str, Any]
Show = Callable[[Row, bool], Fields]  # the lines of a row, which may be alone
ReadSplit = Callable[[Any, str | None, Progress], TextsOfImages]


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """What is asked, and who says where regions are.

    Args:
        text: what to ask, once or more; else it is the last argument.
        detector: a run that finds objects, which become the regions; of models that look at boxes.
        boxes: a file that says where they are: .jsonl with image and boxes in pixels, or COCO's.
    """

    text: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    detector: str | None = None
    boxes: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """How a kind's predictions are printed: in their order, or the likeliest first.

    `together` are all texts where one of them is chosen.
    """

    show: Show
    best: int = 5
    ranks: bool = False
    together: bool = False
    take: Callable[[PairPrediction], None] | None = None


def answer_fields(row: Row, alone: bool) -> Fields:
    """The best answer with its probability; of one text about one image all of them."""
    return guess_fields(row["answers"], alone)


def predict_pairs(
    run: str,
    given: tuple[str, ...],
    options: PairOptions,
    how: Answered,
    device: str,
    *,
    json: bool,
) -> None:
    """Print what a model says of each text about each image."""
    if how.best < 1:
        raise ConfigError(f"best={how.best} must be at least 1")
    asked = asked_pairs(given, options.text, together=how.together)
    with busy("loading"):
        model: JointModel = load(run, device=device)
        regions = _regions(model, options, asked, device)
    if not asked.lines:  # texts of the command line: a mistake is one for all
        for text in dict.fromkeys(pair.text for pair in asked.pairs):
            model.tool.read_text(text)
    ranks = how.ranks and len(asked.pairs) > 1
    failed = 0
    with (
        counting("reading", shown=ranks or not sys.stdout.isatty()) as progress,
        json_list(wanted=json) as add,
    ):
        rows = _rows(model, asked, regions, how, progress)
        for row in sorted(rows, key=_likeliest) if ranks else rows:
            failed += "error" in row
            if json:
                add(row)
            elif "error" not in row:
                _tell(row, asked, how.show)
    if failed:
        raise SomeFailedError(f"{failed:,} of {len(asked.pairs):,} could not be read")


def _likeliest(row: Row) -> float:
    return -row.get("fits", -1.0)


def _regions(model: JointModel, options: PairOptions, asked: AskedPairs, device: str) -> Regions:
    """Who says where they are; nobody need where every line does."""
    named = options.detector is not None or options.boxes is not None
    if not named and all(pair.boxes is not None for pair in asked.pairs) and model.tool.wants_boxes:
        return lambda image, name: None
    return regions_by(model.name, model.tool, options.detector, options.boxes, device)


def _tell(row: Row, asked: AskedPairs, show: Show) -> None:
    """The file and the text only where there are several."""
    of = (one_field(row["file"]),) if asked.images else ()
    said = (one_field(row["asked"]),) if asked.texts else ()
    for line in show(row, asked.alone and not asked.texts):
        tell(*of, *said, *line)


def _rows(
    model: JointModel, asked: AskedPairs, regions: Regions, how: Answered, progress: Progress
) -> Iterator[Row]:
    """What is said of each; what cannot be read is told, and passed over unless it is all."""
    images, pairs, done = dict[str, PairImage | DataError](), asked.pairs, 0
    for first in range(0, len(pairs), model.tool.batch):
        some = pairs[first : first + model.tool.batch]
        images = {pair.name: _sighted(model, pair, regions, images) for pair in some}
        read = [(pair, _readable(model.tool, pair, images[pair.name])) for pair in some]
        good = [(one, pair.text) for pair, one in read if isinstance(one, PairImage)]
        said = iter(model.predict_pairs(good, best=how.best))
        for pair, one in read:
            row: Row = {"file": pair.name, "asked": pair.text}
            if how.together:
                row["asked"] = pair.text.split(TAB)
            if isinstance(one, DataError):
                if len(pairs) == 1:
                    raise one
                say(str(one))
                yield {**row, "error": str(one)}
                continue
            found = next(said)
            if how.take is not None:
                how.take(found)
            yield {**row, **pair_table(found.answer, one.size)}
        done += len(some)
        progress(done, len(pairs))


def _sighted(
    model: JointModel,
    pair: AskedPair,
    regions: Regions,
    known: dict[str, PairImage | DataError],
) -> PairImage | DataError:
    """An image as the model wants it, or why there is none; the last ones are at hand."""
    if pair.name in known and pair.boxes is None:
        return known[pair.name]
    if isinstance(pair.image, DataError):
        return pair.image
    try:
        found = _of_pair(model.tool, pair, regions)
        return model.tool.sight(pair.image, found, name=pair.name)
    except DataError as error:
        return error


def _of_pair(tool: PairTool, pair: AskedPair, regions: Regions) -> RegionBoxes | None:
    if pair.boxes is None or not tool.wants_boxes:
        return regions(pair.image, pair.name)
    return given_regions(pair.boxes, size_of(pair.image, name=pair.name))


def _readable(
    tool: PairTool, pair: AskedPair, image: PairImage | DataError
) -> PairImage | DataError:
    try:
        tool.read_text(pair.text)
    except DataError as error:
        return DataError(f"{pair.name}: {error}")
    return image


@dataclass(frozen=True, kw_only=True)
class PairLookOptions:
    """What is looked at, and where that goes.

    Args:
        out: a .html, .png, .svg or .json file.
        select: which layer and head is printed or drawn; without, the last, the mean of its heads.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        split: look at texts and images of this split of the run's data, where the truth is known.
        rows: how many of them, evenly from all; 24 by default.
        cells: in a .png or .svg, leave the cells of the maps square.
        budget: bytes that the maps of a page may take, as text.
        device: cpu, cuda …; auto takes the fastest there is.
    """

    out: Output = None
    select: Selection = field(default_factory=Selection)
    compare: str | None = None
    split: str | None = None
    rows: int | None = None
    cells: bool = False
    budget: int = LookSettings.budget
    device: str = "auto"


@dataclass(frozen=True)
class SplitTruth:
    """How a kind reads a split of its data, and what is known of each text there."""

    read: ReadSplit
    truth: Callable[[Any], PairTruth]
    together: bool = False  # whether all texts of a command are sentences to choose from


def caption_truth(said: Any) -> PairTruth:
    """A caption is about its image."""
    return PairTruth(fits=True)


def look_at_pairs(
    run: str,
    given: tuple[str, ...],
    asked: PairOptions,
    options: PairLookOptions,
    known: SplitTruth,
    of: str | None = None,
) -> None:
    """Print or draw one, or put any number on a page."""
    out = options.out
    check_out(out, options.compare)
    _check_look(given, asked, options)
    models: list[JointModel] = load_alike(run, options.compare, options.device)
    how = LookSettings(budget=options.budget, of=of)
    if options.split is None:
        pairs = asked_pairs(given, asked.text, together=known.together)
        subjects = _asked_subjects(models[0], pairs, asked, options.device)
    else:
        with counting("reading") as progress:
            read = known.read(models[0].tool.settings, options.split, progress)
            read = read.located(models[0].tool.joint.places, progress)
        rows = ROWS if options.rows is None else options.rows
        subjects = split_subjects(read, rows, options.split, known.truth)
    if is_page(out):
        write_page(
            lambda progress: pair_document(models, subjects, how, progress=progress),
            out,
            options.select,
        )
        return
    refuse_several(len(subjects), out, "text")
    for subject in subjects:
        sentences = models[0].tool.read_text(subject.text).sentences
        every = of is None and out is None and len(sentences) > 1
        for sentence in [one.text for one in sentences] if every else [of]:
            _print(models[0], subject, how, options, sentence)


def _check_look(given: tuple[str, ...], asked: PairOptions, options: PairLookOptions) -> None:
    check_asked(options.split, options.rows, named=bool(given or asked.text), what=PAIR)
    if options.split is not None and (asked.detector is not None or asked.boxes is not None):
        raise ConfigError("a --split has regions of its own; leave --detector and --boxes out")


def _asked_subjects(
    model: JointModel, asked: AskedPairs, options: PairOptions, device: str
) -> list[PairSubject]:
    regions = _regions(model, options, asked, device)
    made = list[PairSubject]()
    for pair in asked.pairs:
        if isinstance(pair.image, DataError):
            raise pair.image
        found = _of_pair(model.tool, pair, regions)
        made.append(PairSubject.of(model.tool, pair.image, pair.text, found, Path(pair.name).name))
    return made


def _print(
    model: JointModel,
    subject: PairSubject,
    how: LookSettings,
    options: PairLookOptions,
    of: str | None,
) -> None:
    with busy("looking"):
        look = pair_look(
            model, subject, options.select, lambda: pair_document([model], [subject], how), of
        )
    tell(look.caption)
    tell_drawing(look.text(**terminal()))
    save_look(look.save, options.out, cells=options.cells)

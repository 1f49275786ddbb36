"""`saccade look` at an image and texts: where in either their likeness came from."""

from dataclasses import replace
from pathlib import Path

import tyro

from saccade.app.cli.image_look import check_asked, look_at_images
from saccade.app.cli.inputs import check_out, is_page
from saccade.app.cli.options import MixedArguments, Output, RunArgument
from saccade.app.cli.output import counting
from saccade.app.cli.text_look import look_at_text
from saccade.app.kinds.base import load_alike
from saccade.app.kinds.joint.commands import PAIR, ROWS, caption_truth
from saccade.app.kinds.joint.inputs import images_and_texts
from saccade.app.kinds.matching.model import MatchingModel
from saccade.app.kinds.understanding.serve import line_document
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.classification import Subject, class_document, class_look
from saccade.app.look.document import LookDocument
from saccade.app.look.images import ShownImage
from saccade.app.look.joint.subject import split_subjects
from saccade.app.look.settings import LookSettings, Selection
from saccade.errors import ConfigError
from saccade.tasks.base import Progress
from saccade.tasks.matching.data import read_matches
from saccade.tasks.matching.tool import MatchingTool

Texts = tyro.conf.UseAppendAction[tuple[str, ...]]


def look_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    text: Texts = (),
    words: bool = False,
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
    """Show where in an image its likeness to a text came from, or with --words in the text.

    Of several texts to the likeliest, with probabilities among them. Where attention of the image
    encoder falls, rollout and relevance, if it has attention; Grad-CAM of the likeness, which all
    have. With --words, which words of the text count, by relevance and rollout, for the likeliest
    of the images. With --out it goes to a file: .html is a page that works without a network, .png
    and .svg are images for papers, .json has the numbers. Captions of a split, each to be told from
    the others on the page: saccade look RUN --split test -o page.html

    Args:
        run: folder of the run.
        given: images, and the text unless --text has it.
        text: texts, once or more.
        words: look into the text, not into the image.
        out: a .html, .png, .svg or .json file.
        of: ask for the traces of this text, whatever is likeliest; with --words of this image.
        select: which maps are printed or drawn; without, all kinds and the mean of each layer.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        split: look at images of this split of the run's data, with their captions as texts.
        rows: how many of them, evenly from all; 24 by default.
        cells: in a .png or .svg, leave the cells of the maps square.
        budget: bytes that the maps of a page may take, as text.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out, compare)
    check_asked(split, rows, named=bool(given or text), what=PAIR)
    if words and split is not None:
        raise ConfigError("--words is of a text that you name; leave --split or --words out")
    models: list[MatchingModel] = load_alike(run, compare, device)
    how = LookSettings(budget=budget, of=of)
    if words:
        _look_at_words(models, *images_and_texts(given, text), how, out, select)
        return
    if split is not None:
        subjects, texts = _of_split(models[0], split, ROWS if rows is None else rows)
    else:
        names, texts = images_and_texts(given, text)
        subjects = [Subject(ShownImage.of(name, models[0].tool)) for name in names]
    _look_at_images(models, subjects, texts, how, out, select, cells=cells)


def _of_split(model: MatchingModel, split: str, rows: int) -> tuple[list[Subject], tuple[str, ...]]:
    """Some captions of a split, each with its image."""
    with counting("reading") as progress:
        read = read_matches(model.tool.settings, split, progress)
    pairs = split_subjects(read, rows, split, caption_truth)
    return [Subject(one.shown, (one.text,)) for one in pairs], tuple(one.text for one in pairs)


def _look_at_images(
    models: list[MatchingModel],
    subjects: list[Subject],
    texts: tuple[str, ...],
    how: LookSettings,
    out: Path | None,
    select: Selection,
    *,
    cells: bool,
) -> None:
    classifiers = [model.classifier(texts) for model in models]

    def document(progress: Progress) -> LookDocument:
        return class_document(classifiers, subjects, how, progress=progress)

    def look(subject: Subject) -> ImageLook:
        found = class_look(classifiers[0], subject, how, select)
        if len(classifiers[0].classes) > 1:
            return found
        return _with_similarity(found, models[0].tool, subject, texts[0])  # certain among itself

    look_at_images(subjects, document, look, out, select, cells=cells)


def _with_similarity(look: ImageLook, tool: MatchingTool, subject: Subject, text: str) -> ImageLook:
    (cosine,) = tool.similarity(subject.shown.seen_by(tool)[None], text).tolist()
    return replace(look, caption=f"{text}: cosine {cosine:.3f}")


def _look_at_words(
    models: list[MatchingModel],
    images: tuple[str, ...],
    texts: tuple[str, ...],
    how: LookSettings,
    out: Path | None,
    select: Selection,
) -> None:
    text, *others = texts
    if others:
        raise ConfigError(f"{len(texts)} texts: --words looks into one; give one")
    models[0].tool.reading(text)
    readers = [model.reader([Path(name) for name in images]) for model in models]
    look_at_text(readers, text, how, out, line_document, select, writes=not is_page(out))

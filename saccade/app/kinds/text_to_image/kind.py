"""Text to image: a prompt in, images out, and which words and cells each cell looked at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.app.api import load
from saccade.app.cli.inputs import (
    InputLines,
    check_out,
    input_lines,
    is_page,
    one_text,
    save_look,
    say_written,
)
from saccade.app.cli.options import Output, RunArgument, TextArguments
from saccade.app.cli.output import (
    busy,
    counting,
    json_list,
    print_json,
    print_scores,
    show_table,
    tell,
    tell_drawing,
    warnings_said,
)
from saccade.app.kinds.base import HeldOut, Kind
from saccade.app.kinds.text_to_image.files import DrawnFiles
from saccade.app.kinds.text_to_image.model import (
    ImagePrediction,
    ImageTextMatcher,
    TextToImageModel,
    check_count,
    load_drawer,
    matcher_of,
)
from saccade.app.kinds.text_to_image.serve import TextToImageServing
from saccade.app.look.draw.figure import save_document
from saccade.app.look.draw.terminal import terminal
from saccade.app.look.settings import LookSettings, Selection, refuse_selection
from saccade.app.look.text_to_image import drawn_document, drawn_look
from saccade.data.readers import image_splits
from saccade.errors import ConfigError
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.text_to_image.data import read_texts
from saccade.tasks.text_to_image.drawer import Drawing
from saccade.tasks.text_to_image.evaluate import evaluate_drawer
from saccade.tasks.text_to_image.judged import check_judged, judged

LONG = 40  # words whose maps are still printed


@dataclass(frozen=True, kw_only=True)
class BegunImage:
    """An image whose upper part is kept.

    Args:
        complete: an image; its upper part is kept, and the rest drawn.
        rows: how many rows of its cells are kept; half of them by default.
    """

    complete: Path | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.complete is None and self.rows is not None:
            raise ConfigError(
                f"--rows {self.rows} are those of an image to complete; name that with "
                "--complete photo.png"
            )


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Whether images are drawn and judged.

    Args:
        judged: draw for so many texts of shapes, and read what the images show; 0: do not.
        rerank: a run that tells how well an image fits a text; its choice is judged as well.
        best_of: how many images it chooses from.
    """

    judged: int = 0
    rerank: str | None = None
    best_of: int = 16

    def __post_init__(self) -> None:
        if self.judged < 0 or self.best_of < 1:
            raise ConfigError(
                f"judged={self.judged} must be 0 or more, and best_of={self.best_of} at least 1"
            )
        if self.rerank is not None and not self.judged:
            raise ConfigError(
                f"--rerank {self.rerank} chooses among images that are judged; add --judged 200"
            )


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Which of several images come first.

    Args:
        rerank: a run that tells how well an image fits a text; the best come first.
        best: write only so many of them.
    """

    rerank: str | None = None
    best: int | None = None


def predict_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    out: Output = None,
    count: int = 1,
    drawing: Drawing = Drawing(),  # noqa: B008
    begun: BegunImage = BegunImage(),  # noqa: B008
    ranking: Ranking = Ranking(),  # noqa: B008
    skip_bad: int = 0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Draw images for prompts.

    Prompts come from the command line, from a file that is named there, or with - from standard
    input, one a line. The images of a prompt go on one sheet under it: with --out x.png into that
    file, of several prompts into x-1.png, x-2.png …; without, into images.png, or the first such
    name that is free. Any other --out is a folder, where each image is a file with its very pixels.
    The names of the files are printed.

    Args:
        run: folder of the run.
        texts: prompts, or a file of them.
        text: prompts that are no file, whatever they look like.
        out: a .png file, or a folder.
        count: how many images are drawn for each prompt.
        drawing: how the next code is chosen.
        begun: an image whose upper part is kept.
        ranking: which of several images come first.
        skip_bad: this many lines that are no text are answered with a blank one; one more stops.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print codes and log-probabilities as well, as JSON.
    """
    check_count(count, ranking.best, reranked=ranking.rerank is not None)
    lines = input_lines(texts, text, skip_bad=skip_bad)
    with busy("loading"):
        model: TextToImageModel = load(run, device=device)
        judge = None if ranking.rerank is None else load(ranking.rerank, device=device)
        if judge is not None:
            matcher_of(judge)
    if begun.complete is not None:
        model.begin(begun.complete, begun.rows)  # refuses what cannot be, before a file is named
    files = DrawnFiles(out, several=lines.total != 1)
    options: dict[str, Any] = {**vars(drawing), **vars(begun), "count": count, "rerank": judge}
    options["best"] = ranking.best
    with (
        counting("drawing") as progress,
        json_list(wanted=json) as add,
        warnings_said(),
    ):
        for found in _drawn(model, lines, options, progress):
            images = _written(found, files)
            if json:
                add({"prompt": found[0].prompt if found else "", "images": images})
            else:
                tell(*dict.fromkeys(one["file"] for one in images))


def _drawn(
    model: TextToImageModel,
    lines: InputLines,
    options: dict[str, Any],
    progress: Callable[[int, int | None], None],
) -> Iterator[list[ImagePrediction]]:
    """The images of each prompt in turn, none for a blank one; as many prompts at once as fit."""
    count, done = int(options["count"]), 0
    total = None if lines.total is None else lines.total * count
    kept = count if options["best"] is None else int(options["best"])
    at_once = max(1, model.tool.batch // count)
    for batch in lines.batches(model.tool.read):
        for first in range(0, len(batch), at_once):
            some = batch[first : first + at_once]
            texts = [line for line in some if line is not None]
            start = done
            found = model.predict(
                texts, **options, progress=lambda n, _, start=start: progress(start + n, total)
            )
            done += len(some) * count
            progress(done, total)
            for line in some:
                yield found[:kept] if line is not None else []
                found = found[kept:] if line is not None else found


def _written(found: Sequence[ImagePrediction], files: DrawnFiles) -> list[dict[str, Any]]:
    """Into files; a table of each image."""
    paths = list(map(str, files.take(found)))
    images: list[dict[str, Any]] = []
    for number, one in enumerate(found):
        figures = {"codes": one.codes, "log_probability": one.log_probability}
        fits = {} if one.similarity is None else {"similarity": one.similarity}
        images.append({"file": paths[min(number, len(paths) - 1)], **figures, **fits})
    return images


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    judging: Judging = Judging(),  # noqa: B008
    drawing: Drawing = Drawing(),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Loss and perplexity per word and per code, on texts and images that the run has not learnt.

    The loss per code is also measured with the text hidden: the difference is what the text tells
    of the image. Of the built-in shapes, --judged 200 also draws an image for each of so many
    texts and tells how many show what the text says.

    Args:
        run: folder of the run, such as runs/dalle.
        held_out: which data to score on; shapes also have the splits compositional and many.
        judging: whether images are drawn and judged.
        drawing: how they are drawn.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    with busy("loading"):
        model: TextToImageModel = load(run, device=device)
        judge = None if judging.rerank is None else matcher_of(load(judging.rerank, device=device))
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, image_splits)
    with counting("reading") as reading:
        read = read_texts(asked, split, reading)
    if judging.judged:
        check_judged(read, judging.judged)
    with counting("coding") as coding, counting("scoring") as progress:
        found = evaluate_drawer(model.tool, read, coding=coding, progress=progress)
    found = held_out.kept(run, {"split": split or Path(asked.data).name, **found})
    if judging.judged:
        found["judged"] = _judged(model, read, judging, drawing, judge)
    if json:
        print_json(found)
        return
    print_scores({name: value for name, value in found.items() if name != "judged"})
    if judging.judged:
        print_judged(found["judged"])


def _judged(
    model: TextToImageModel,
    read: Captioned,
    judging: Judging,
    drawing: Drawing,
    judge: ImageTextMatcher | None,
) -> dict[str, Any]:
    with counting("drawing") as progress:
        return judged(
            model.tool,
            read,
            count=judging.judged,
            how=drawing,
            best_of=1 if judge is None else judging.best_of,
            similarity=None if judge is None else judge.similarity,
            progress=progress,
        )


JUDGED = {
    "drawn": "drawn",
    "best": "the likest",
    "real": "the scenes themselves",
    "again": "those, as codes and back",
    "shuffled": "drawn for another prompt",
}


def print_judged(found: dict[str, Any]) -> None:
    """How many images show what their prompt says, as a table."""
    tell("")
    tell(f"of {found['prompts']:,} images, how many show what the prompt says")
    names = {**JUDGED, "best": f"the likest of {found.get('best_of')}"}
    rows = [
        (name, *(_share(found[key][part]) for part in ("all", "objects", "relations")))
        for key, name in names.items()
        if key in found
    ]
    show_table(rows, head=("", "all of it", "objects", "relations"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def look_command(
    run: RunArgument,
    texts: TextArguments = (),
    /,
    *,
    text: tuple[str, ...] = (),
    out: Output = None,
    drawing: Drawing = Drawing(),  # noqa: B008
    begun: BegunImage = BegunImage(),  # noqa: B008
    select: Selection = Selection(),  # noqa: B008
    budget: int = LookSettings.budget,
    device: str = "auto",
) -> None:
    """Draw an image for a prompt, and show which words and which earlier cells each cell looked at.

    With --out it goes to a file: .html is a page that paints the image cell by cell, with every
    layer and head, and works without a network; .png and .svg are images for papers; .json has the
    numbers. The image is the one that `saccade predict` draws first with the same options.

    Args:
        run: folder of the run.
        texts: the prompt, or a file of it.
        text: a prompt that is no file, whatever it looks like.
        out: a .html, .png, .svg or .json file.
        drawing: how the next code is chosen.
        begun: an image whose upper part is kept.
        select: which weights are printed or drawn.
        budget: bytes that the weights of a page may take, as text.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out)
    how, prompt = LookSettings(budget=budget), one_text(texts, text)
    if is_page(out):
        refuse_selection(select)
    with busy("loading"):
        model: TextToImageModel = load(run, device=device)
    with busy("drawing"):
        (one,) = model.predict(prompt, **vars(drawing), **vars(begun))
    if is_page(out):
        with busy("looking"):
            document = drawn_document(model, one.subject, how)
        say_written(save_document(document, out))
        return
    with busy("looking"):
        look = drawn_look(model, one.subject, how, select)
    if len(look.words) <= LONG:
        tell_drawing(look.text(colour=terminal()["colour"]))
    save_look(look.save, out)


KIND = Kind(
    name="text-to-image",
    load=load_drawer,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=TextToImageServing(),
)

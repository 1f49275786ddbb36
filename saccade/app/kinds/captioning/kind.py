"""Captioning: images in, captions out, and where on the image each word looked."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import torch
from jaxtyping import UInt8
from torch import Tensor

from saccade.app.api import load
from saccade.app.cli.image_look import refuse_several
from saccade.app.cli.inputs import check_out, is_page, save_look, say_written
from saccade.app.cli.options import ImageArguments, Output, RunArgument
from saccade.app.cli.output import busy, counting, print_json, tell, tell_drawing
from saccade.app.cli.scores.captions import print_caption_scores
from saccade.app.export.words import EXPORTS
from saccade.app.kinds.base import (
    OF_WRITING,
    HeldOut,
    Kind,
    LoadedRun,
    TrainedModel,
    load_alike,
    make_decoding,
    one_given,
    refuse_settings,
)
from saccade.app.kinds.captioning.serve import CaptioningServing
from saccade.app.kinds.image_files import check_images, predict_images
from saccade.app.kinds.many_images import NamedImage, in_batches
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.look.captioning.document import caption_document, caption_look
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.draw.figure import save_document
from saccade.app.look.draw.terminal import terminal
from saccade.app.look.images import SIDE, ShownImage, split_images
from saccade.app.look.settings import (
    LookSettings,
    Selection,
    make_selection,
    refuse_selection,
)
from saccade.attention.look.glance import Glance
from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.readers import image_splits
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.tasks.base import Progress, silent
from saccade.tasks.captioning.captioner import (
    ImageCaptioner,
    WrittenCaption,
)
from saccade.tasks.captioning.data import CaptioningSettings, read_captioned
from saccade.tasks.captioning.evaluate import evaluate_captions


@dataclass(frozen=True)
class CaptionPrediction:
    """What was said of an image: text, score, the rest of the n-best list, and where it looked.

    `image` is the image as the model saw it; `name` is its file's, or its number.
    """

    name: str
    image: AnyImage
    pixels: UInt8[Tensor, "3 H W"]
    text: str
    score: float
    others: tuple["CaptionPrediction", ...]
    _described: WrittenCaption
    _model: "CaptioningModel"
    _how: Decoding

    @property
    def attention(self) -> dict[str, Glance]:
        """What each site that looks at the image saw, a row per token and one for the end."""
        return self.written.attention

    @property
    def written(self) -> WrittenCaption:
        """The caption with its attention."""
        return self._model.tool.looked(self.pixels, self._described)

    def look(self, **select: Any) -> ImageLook:
        """Where on the image the model looked for each word; `select` has fields of `Selection`."""
        model = self._model
        how = LookSettings(beam=self._how.beam, length_penalty=self._how.length_penalty)
        # Shown as large as it is, not as small as the model saw it.
        image = pixels_of(self.image, name=self.name, short=2 * SIDE)
        shown = ShownImage.of(image, model.tool, name=self.name)
        shown = replace(shown, seen_by=self._seen_by)
        chosen = make_selection(select)
        return caption_look(model, self.written, shown, how, chosen, decoding=self._how)

    def _seen_by(self, captioner: ImageCaptioner) -> UInt8[Tensor, "3 H W"]:
        """The very pixels that were captioned: a file comes in other ones at another size."""
        return self.pixels

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"CaptionPrediction({self.name!r}, {self.text!r}, score={self.score:.4g})"


class CaptioningModel(TrainedModel[ImageCaptioner]):
    """A trained captioner."""

    @overload
    def predict(
        self, image: AnyImage, *, look: bool = ..., **decoding: Any
    ) -> CaptionPrediction: ...
    @overload
    def predict(
        self, image: list[Any], *, look: bool = ..., progress: Progress = ..., **decoding: Any
    ) -> list[CaptionPrediction]: ...
    def predict(
        self, image: Any, *, look: bool = False, progress: Progress = silent, **decoding: Any
    ) -> CaptionPrediction | list[CaptionPrediction]:
        """Caption an image or many: files, their bytes, Pillow images, arrays or tensors of uint8.

        `decoding` are the fields of `Decoding`, such as beam=1.
        """
        how = make_decoding(decoding)
        made: list[CaptionPrediction] = []
        for some in in_batches(image, self.tool.batch, self.tool.prepare, progress):
            pixels = torch.stack([one.prepared for one in some])
            found = dict(self.tool.caption(pixels, how, look=look))
            made += [self._prediction(given, found[row], how) for row, given in enumerate(some)]
        return made if isinstance(image, list) else made[0]

    def look(
        self, image: AnyImage, settings: LookSettings | None = None, **select: Any
    ) -> ImageLook:
        """Caption an image and show where the model looked for each word."""
        how = settings or LookSettings()
        refuse_settings(how, f"{self.name} captions, and ends by itself", *OF_WRITING)
        return self.predict(
            one_given(image), look=True, beam=how.beam, length_penalty=how.length_penalty
        ).look(**select)

    def _prediction(
        self, given: NamedImage, one: WrittenCaption, how: Decoding
    ) -> CaptionPrediction:
        others = tuple(self._prediction(given, other, how) for other in one.others)
        return CaptionPrediction(*given, one.text, one.score, others, one, self, how)


def _load(run: LoadedRun) -> CaptioningModel:
    settings = run.recipe.task
    assert isinstance(settings, CaptioningSettings)
    tool = ImageCaptioner(run.network, load_vocabulary(run), settings)
    return CaptioningModel(run.name, run.recipe, tool)


def predict_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    decoding: Decoding = Decoding(beam=5),  # noqa: B008
    device: str = "auto",
    json: bool = False,
) -> None:
    """Say what is on images.

    Images are files, folders of them, .tar and .zip archives, patterns in quotes ("*.jpg"), or -
    for an image or names of files on standard input. One file gives its caption;
    otherwise each line has the file's name, a tab, and the caption. What cannot be read is told on
    standard error and passed over; the exit code is then 1.

    Args:
        run: folder of the run.
        images: files, folders and archives.
        decoding: how the next word is chosen.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    check_images(images)
    how = vars(make_decoding(vars(decoding)))
    with busy("loading"):
        model = load(run, device=device)

    def caption(prepared: list[Tensor]) -> list[dict[str, Any]]:
        return [_as_table(one) for one in model.predict(prepared, **how)]

    predict_images(model.tool, images, caption, doing="captioning", json=json)


def _as_table(found: CaptionPrediction) -> dict[str, Any]:
    others = [{"text": other.text, "score": other.score} for other in found.others]
    return {"text": found.text, "score": found.score, **({"others": others} if others else {})}


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    groups: tuple[str, ...] = (),
    beam: int = 5,
    length_penalty: float = 1.0,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score captions of images that the run was not trained on.

    BLEU-1 to 4, CIDEr-D and ROUGE-L of its own captions against all references, METEOR where nltk
    and WordNet are there, perplexity. On shapes the share of captions that say only what is so
    (exact) and leave out nothing (complete). Where the data say where things are, how often
    attention points at them; where they say who is of which group, how each fares.

    Args:
        run: folder of the run, such as runs/show-attend-tell.
        held_out: which data to score on; shapes also have the splits compositional, many,
            biased-test and balanced-test.
        groups: for captions of people, the words of each group: man,boy woman,girl.
        beam: hypotheses kept while decoding; 1 is greedy.
        length_penalty: 0 ranks by probability alone, more favours longer sentences.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    how = Decoding(beam=beam, length_penalty=length_penalty)
    model = load(run, device=device)
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, image_splits)
    with counting("captioning") as progress:
        where: dict[str, Any] = {"split": split, "settings": asked, "groups": groups}
        found = evaluate_captions(model.tool, **where, how=how, progress=progress)
    held_out.kept(run, found)
    print_json(found) if json else print_caption_scores(found)


def look_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    out: Output = None,
    settings: LookSettings = LookSettings(),  # noqa: B008
    select: Selection = Selection(),  # noqa: B008
    compare: str | None = None,
    split: str | None = None,
    rows: int | None = None,
    cells: bool = False,
    skip_bad: int | None = None,
    device: str = "auto",
) -> None:
    """Caption images and show where on each the model looked for each word.

    With --out it goes to a file: .html is a page with every layer and head that works without a
    network; .png and .svg are images for papers; .json has the numbers. A page may hold many
    images, such as the first of a split: saccade look RUN --split test --rows 10 -o page.html

    Args:
        run: folder of the run.
        images: files of images.
        out: a .html, .png, .svg or .json file.
        settings: what to look at, and how large a page may become.
        select: which weights are printed or drawn.
        compare: a second run, to be looked at beside the first; needs --out x.html.
        split: look at images of this split of the run's data.
        rows: how many of them; 10 by default.
        cells: in a .png or .svg, leave the cells of the maps square.
        skip_bad: this many bad rows of a split are skipped; the run's own number by default.
        device: cpu, cuda …; auto takes the fastest there is.
    """
    check_out(out, compare)
    of_split = {"rows": rows, "skip_bad": skip_bad}
    _check_asked(images, split, {k: v for k, v in of_split.items() if v is not None})
    if cells and (out is None or out.suffix not in (".png", ".svg")):
        raise ConfigError("--cells is of images; name one with --out x.png or x.svg")
    models = load_alike(run, compare, device)
    model: CaptioningModel = models[0]
    refuse_settings(settings, f"{model.name} captions, and ends by itself", *OF_WRITING)
    shown = _images_to_look_at(model, images, split, HeldOut(skip_bad=skip_bad), rows)
    if is_page(out):
        refuse_selection(select)
        _write_page(models, shown, settings, out)
        return
    refuse_several(len(shown), out)
    for one in shown:
        _print(model, one, settings, select, out, cells=cells)


def _check_asked(images: tuple[str, ...], split: str | None, of_split: dict[str, int]) -> None:
    """Images or a split, and what is of a split only with one."""
    if split is not None and images:
        raise ConfigError("name images or a --split, not both")
    for name, value in of_split.items() if split is None else ():
        raise ConfigError(f"{name}={value} is of a split; name that with --split test, too")
    if split is None and not images:
        raise ConfigError("name an image to look at, or a split of the data with --split test")


def _images_to_look_at(
    model: CaptioningModel,
    files: tuple[str, ...],
    split: str | None,
    held_out: HeldOut,
    rows: int | None,
) -> list[ShownImage]:
    """The images that were named, or the first ones of a split."""
    if split is not None:
        captioned = read_captioned(held_out.settings(model.tool.settings), split)
        return split_images(captioned, 10 if rows is None else rows, model.tool, split)
    return [ShownImage.of(file, model.tool) for file in files]


def _write_page(
    models: list[CaptioningModel], shown: list[ShownImage], how: LookSettings, out: Path
) -> None:
    with busy("looking"):
        document = caption_document(models, shown, how)
    if len(models) == 1:
        for look in document.looks:
            if look.label == "best":
                tell(look.text)
    say_written(save_document(document, out))


def _print(
    model: CaptioningModel,
    shown: ShownImage,
    how: LookSettings,
    select: Selection,
    out: Path | None,
    *,
    cells: bool,
) -> None:
    if not model.tool.looks:
        raise ConfigError(
            f"{model.name} saw the image once, as a whole: it has no attention to look at"
        )
    with busy("looking"):
        pixels = shown.seen_by(model.tool)
        (prediction,) = model.predict(
            [pixels], look=True, beam=how.beam, length_penalty=how.length_penalty
        )
    tell(prediction.text)
    look = caption_look(model, prediction.written, shown, how, select)
    tell_drawing(look.text(colour=terminal()["colour"]))
    save_look(look.save, out, cells=cells)


KIND = Kind(
    name="captioning",
    load=_load,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=CaptioningServing(),
    exports=EXPORTS,
)

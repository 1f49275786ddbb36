"""Images and texts compared: which text an image shows, and which image a text means."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.app.api import load
from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import busy, counting, json_list, print_json, say, tell
from saccade.app.cli.scores.classes import print_class_scores
from saccade.app.kinds.base import HeldOut, Kind
from saccade.app.kinds.classification.model import BEST
from saccade.app.kinds.classification.serve import guesses_table
from saccade.app.kinds.image_files import (
    Fields,
    Row,
    SomeFailedError,
    given_images,
    guess_fields,
    one_field,
    predict_images,
)
from saccade.app.kinds.joint.inputs import images_and_texts
from saccade.app.kinds.joint.scores import evaluate, show_recalls
from saccade.app.kinds.matching.look import Texts, look_command
from saccade.app.kinds.matching.model import MatchingModel, load_matching
from saccade.app.kinds.matching.serve import MatchingServing
from saccade.data.readers.images.labels import label_splits
from saccade.data.readers.images.read import image_splits
from saccade.errors import ConfigError, DataError
from saccade.tasks.base import Progress
from saccade.tasks.matching.evaluate import (
    PHOTOGRAPHS,
    SHAPES,
    check_template,
    evaluate_classes,
    evaluate_matching,
)
from saccade.tasks.matching.tool import MatchingTool

BUILT_IN = "shapes"  # names the built-in scenes where classes are asked for


def predict_command(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    text: Texts = (),
    best: int = BEST,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Say which of some texts an image shows, or rank images by a text.

    With several texts, saccade predict RUN photo.jpg --text "a dog" --text "a cat": how likely each
    is of the image, among these texts. With one, saccade predict RUN photos/ "a red circle": all
    images, the most alike first, with the cosine between image and text. Images are files, folders
    of them, .tar and .zip archives, patterns in quotes, or - for standard input.

    Args:
        run: folder of the run.
        given: images, and the text unless --text has it.
        text: texts, once or more.
        best: how many texts are told of one image, and in the JSON.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    if best < 1:
        raise ConfigError(f"best={best} must be at least 1")
    images, texts = images_and_texts(given, text)
    with busy("loading"):
        model: MatchingModel = load(run, device=device)
    if len(dict.fromkeys(texts)) == 1:
        _rank(model.tool, images, texts[0], json=json)
        return
    classifier = model.classifier(texts)

    def classify(prepared: list[Tensor]) -> list[Row]:
        found = classifier.predict(prepared, best=best)
        return [guesses_table(one.labels, one.guesses) for one in found]

    predict_images(model.tool, images, classify, doing="comparing", json=json, fields=_lines)


def _lines(row: Row, alone: bool) -> Fields:
    return guess_fields(row["guesses"], alone)


def _rank(tool: MatchingTool, images: tuple[str, ...], text: str, *, json: bool) -> None:
    """The most alike first; what cannot be read is told, and passed over unless it is all."""
    tool.reading(text)  # a mistake in it is one for all
    with (
        counting("comparing", shown=not sys.stdout.isatty()) as progress,
        json_list(wanted=json) as add,
    ):
        rows = list(_alike(tool, list(given_images(images)), text, progress))
        for row in sorted(rows, key=lambda row: -row.get("similarity", -2.0)):
            if json:
                add(row)
            elif "error" not in row:
                tell(*([one_field(row["file"])] * (len(rows) > 1)), f"{row['similarity']:.4f}")
    if failed := sum("error" in row for row in rows):
        raise SomeFailedError(f"{failed:,} of {len(rows):,} images could not be read")


def _alike(
    tool: MatchingTool, images: list[tuple[str, Any]], text: str, progress: Progress
) -> Iterator[Row]:
    for first in range(0, len(images), tool.batch):
        read = list[tuple[str, Tensor]]()
        for name, image in images[first : first + tool.batch]:
            try:
                if isinstance(image, DataError):
                    raise image
                read.append((name, tool.prepare(image, name=name)))
            except DataError as error:
                if len(images) == 1:
                    raise
                say(str(error))
                yield {"file": name, "asked": text, "error": str(error)}
        if read:
            found = tool.similarity(torch.stack([pixels for _, pixels in read]), text).tolist()
            for (name, _), similarity in zip(read, found):
                yield {"file": name, "asked": text, "similarity": round(similarity, 6)}
        progress(min(first + tool.batch, len(images)), len(images))


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    classes: str = "",
    template: str = "",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score how often the right image is among the first found for a sentence, and the other way.

    R@5 is the share of sentences whose own image is among the best five of all in the split. With
    --classes, instead how often the text of the right class is the likeliest (top-1) or among the
    best five, of classes that nobody has learnt: saccade eval RUN --classes pets/

    Args:
        run: folder of the run, such as runs/clip.
        held_out: which data to score on; shapes also have the splits compositional and many.
        classes: images with classes, in the forms that classifiers read; shapes are the built-in
            scenes with one object, by its kind.
        template: how a class becomes a text; {} stands for its name.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    if template and not classes:
        raise ConfigError("--template is of --classes; name images with classes, or leave it out")
    if classes:
        _eval_classes(run, held_out, classes, template, device, json=json)
        return
    evaluate(run, held_out, image_splits, evaluate_matching, _print_recalls, device, json=json)


def _print_recalls(found: dict[str, Any]) -> None:
    tell(
        f"{found['split']}: {found['sentences']:,} sentences about {found['images']:,} images, "
        f"{found['seconds']:.1f} s"
    )
    tell("")
    show_recalls(found)
    if found["shared"]:
        tell("")
        tell(f"{found['shared']:,} sentences were said of several images; if any of these is right")
        show_recalls(found, "recall_or_same")


def _eval_classes(
    run: str, held_out: HeldOut, classes: str, template: str, device: str, *, json: bool
) -> None:
    for option in (name for name in ("data", "keep") if vars(held_out)[name]):
        raise ConfigError(
            f"--{option} is of sentences, and --classes has data of its own; leave one of them out"
        )
    data = "" if classes == BUILT_IN else classes
    template = template or (PHOTOGRAPHS if data else SHAPES)
    check_template(template)
    model: MatchingModel = load(run, device=device)
    asked = model.tool.class_settings(data, held_out.skip_bad or 0)
    with counting("reading") as reading, counting("comparing") as progress:
        found = evaluate_classes(
            model.tool,
            split=_class_split(data, held_out.split),
            settings=asked,
            template=template,
            reading=reading,
            progress=progress,
        )
    if json:
        print_json(found)
        return
    tell(f"classes as texts: {template}; top-1 by chance {found['chance']:.4f}")
    if found["unknown"]:
        some = ", ".join(found["unknown"][:5]) + ", …" * (len(found["unknown"]) > 5)
        tell(f"{len(found['unknown']):,} of them have words that the model does not know: {some}")
    print_class_scores(found)


def _class_split(data: str, split: str) -> str | None:
    """The one that is named, else test; all of data without splits, for none was learnt from."""
    if split or not data:
        return split or "test"
    known = label_splits(Path(data))
    return "test" if "test" in known else None if known == ["train"] else known[-1]


KIND = Kind(
    name="matching",
    load=load_matching,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=MatchingServing(),
)

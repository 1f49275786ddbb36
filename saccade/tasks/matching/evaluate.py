"""Scoring a CLIP: what it finds among held-out images and texts, and classes without training."""

import time
from dataclasses import replace
from typing import Any

from saccade.errors import ConfigError, DataError
from saccade.printable import printable
from saccade.tasks.base import LengthBound, Progress, silent
from saccade.tasks.classification.data import ClassificationSettings, read_split
from saccade.tasks.classification.evaluate import classifier_figures
from saccade.tasks.joint.batch import SightedTexts
from saccade.tasks.kept_texts import KeptTexts
from saccade.tasks.matching.data import MatchingSettings, read_matches
from saccade.tasks.matching.retrieval import lenient_recalls, recalls, shared, vectors
from saccade.tasks.matching.tool import MatchingTool

NAME = "{}"  # stands for a class in a template
PHOTOGRAPHS, SHAPES = "a photo of a {}", "the picture shows a {}"  # templates, unless told


def evaluate_matching(
    tool: MatchingTool,
    *,
    split: str | None,
    settings: MatchingSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Images found by sentences, and sentences by images, each among all of the split."""
    read = read_matches(settings, split, reading)
    bound = LengthBound(tool.model.config.longest, "--model.longest")
    texts = KeptTexts(read.texts)
    data, _, kept = SightedTexts.of(read.sighted, texts, tool.vocabulary, bound, "sentences")
    said, begun = [read.truth[i] for i in kept.tolist()], time.perf_counter()
    found = vectors(tool.model, data, said, tool.device, progress=progress)
    figures = {"recall": recalls(found), "recall_or_same": lenient_recalls(found)}
    return {
        "split": split or "all",
        "left_out": len(read.truth) - len(kept),
        "images": len(found.images),
        "sentences": len(found.texts),
        "shared": shared(found),
        "seconds": time.perf_counter() - begun,
        **{
            f"{way}_{name}": {f"R@{k}": x for k, x in some.items()}
            for name, ways in figures.items()
            for way, some in ways.items()
        },
    }


def check_template(template: str) -> None:
    """Refuse one that would say the same of all classes."""
    if NAME not in template:
        raise ConfigError(
            f"template={printable(template)!r} has no {NAME} where the name of a class goes; write "
            f"one, as in '{PHOTOGRAPHS}'"
        )


def spelt(template: str, name: str) -> str:
    """A class as a text; folders have _ for blanks."""
    return template.replace(NAME, name.replace("_", " "))


def evaluate_classes(
    tool: MatchingTool,
    *,
    split: str | None,
    settings: ClassificationSettings,
    template: str,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """How often the text of the right class is the likeliest: classes that nobody has learnt.

    Without data: scenes with a single object, by its kind.
    """
    check_template(template)
    single = replace(settings.shapes, fewest=1, most=1)  # no doubt what these show
    asked = settings if settings.data else replace(settings, shapes=single)
    read = read_split(asked, split, reading)
    if read.classes.several:
        raise DataError(
            f"{read.report}: some images have several labels or none, and texts are told apart as "
            "one class to an image; give images with one each, such as folders of classes"
        )
    names = read.classes.names
    texts = [spelt(template, name) for name in names]
    found = classifier_figures(tool.classifier(texts, names), read, split, progress=progress)
    unknown = [name for name, text in zip(names, texts) if tool.unknown(text)]
    return {**found, "template": template, "chance": 1 / len(names), "unknown": unknown}

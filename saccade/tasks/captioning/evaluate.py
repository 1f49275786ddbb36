"""Scores of a captioner on held-out images: its own captions against all references."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.data import shapes
from saccade.data.shapes import Scene
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.metrics.captioning import caption_scores
from saccade.metrics.meteor import MISSING, nltk_meteor
from saccade.tasks.base import Progress, silent
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import Captioned, CaptioningSettings, read_captioned
from saccade.tasks.captioning.pointing import Pointed, can_point, point, pointed, write_captions
from saccade.tasks.captioning.reasons import has_groups, reasons, worlds
from saccade.tasks.captioning.task import encode, mean_loss
from saccade.tasks.figures import loss_figures


def evaluate_captions(
    tool: ImageCaptioner,
    *,
    split: str | None = "test",
    settings: CaptioningSettings | None = None,
    how: Decoding = Decoding(),  # noqa: B008
    progress: Progress = silent,
    groups: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Every score by name; on shapes also whether what is said is so, and read from there.

    Where the data say who is of which group, also how each group fares; of the shapes' biased world
    on its biased and balanced tests alike, whichever split was asked for. `settings` name other
    data, of which a `split` of None is all; `groups` are other ones than those that the run was
    trained with.
    """
    tool = _asked_about(tool, settings or tool.settings, groups)
    captioned = _asked_of(tool, split, groups)
    further = can_point(tool, captioned)  # work that takes about as long again
    whole = len(captioned) * (2 if further else 1)
    begun = time.perf_counter()
    captions, game = captions_of(tool, captioned, how, progress, whole, look=further)
    seconds = time.perf_counter() - begun
    references = [list(some) for some in captioned.captions]
    meteor = nltk_meteor(captions, references)
    encoded, _ = encode(captioned, tool.vocabulary, longest=10 * tool.settings.longest)
    network: Any = tool.model
    loss = mean_loss(network, encoded, tool.vocabulary.special, tool.device)
    found: dict[str, Any] = {
        "split": split or Path(tool.settings.data).name,
        "images": len(captioned),
        "references": sum(map(len, references)),
        **caption_scores(captions, references),
        **({} if meteor is None else {"meteor_by_nltk": meteor}),
        **loss_figures(loss),
        "different_captions": len(set(captions)),
        "seconds": seconds,
        "beam": how.beam,
    }
    if captioned.scenes:
        found |= content_scores(captions, captioned.scenes)
    if further:
        found |= point(tool, captioned, game)
    if has_groups(captioned, tool.settings):
        found["reasons"] = worlds(tool, how) if captioned.scenes else reasons(tool, captioned, how)
    progress(whole, whole)
    return found | ({"note": MISSING} if meteor is None else {})


def _asked_about(
    tool: ImageCaptioner, settings: CaptioningSettings, groups: tuple[str, ...]
) -> ImageCaptioner:
    if groups:
        settings = replace(settings, equalizer=replace(settings.equalizer, groups=groups))
    return ImageCaptioner(tool.model, tool.vocabulary, settings)


def _asked_of(tool: ImageCaptioner, split: str | None, groups: tuple[str, ...]) -> Captioned:
    captioned = read_captioned(tool.settings, split)
    if groups and not has_groups(captioned, tool.settings):
        raise ConfigError(
            f"groups={' '.join(groups)}: the data do not say who is of which group; leave them out"
        )
    return captioned


def captions_of(
    tool: ImageCaptioner,
    captioned: Captioned,
    how: Decoding,
    progress: Progress,
    whole: int,
    *,
    look: bool,
) -> tuple[list[str], list[Pointed]]:
    """The captions of all images, in their order, and where each word pointed if asked."""
    captions, game = [""] * len(captioned), list[Pointed]()
    for done, (number, one) in enumerate(write_captions(tool, captioned, how, look=look), start=1):
        captions[number] = one.text
        game += pointed(tool, captioned, number, one) if look else []
        progress(done, whole)
    return captions, game


def content_scores(captions: list[str], scenes: Sequence[Scene]) -> dict[str, Any]:
    """How many captions say only what is so, and how many of them all there is.

    `exact`: a sentence of the shapes' grammar of which every word is true of the scene, objects,
    colours, sizes and relations. `complete`: also, no object is left out. A caption need not name
    all objects; neither do the references.
    """
    exact = [shapes.is_right(caption, scene) for caption, scene in zip(captions, scenes)]
    complete = [_complete(caption, scene) for caption, scene in zip(captions, scenes)]
    counts = [len(scene.objects) for scene in scenes]
    return {
        "exact": sum(exact) / len(exact),
        "complete": sum(complete) / len(complete),
        "exact_by_objects": _by(counts, exact),
        "complete_by_objects": _by(counts, complete),
    }


def _complete(caption: str, scene: Scene) -> bool:
    said = shapes.parse(caption)
    return said is not None and shapes.complete(said, scene)


def _by(counts: list[int], right: list[bool]) -> dict[str, float]:
    """The share of what is right, by number of objects."""
    groups = {count: [r for c, r in zip(counts, right) if c == count] for count in set(counts)}
    return {str(count): sum(groups[count]) / len(groups[count]) for count in sorted(groups)}

"""Scores of a captioner on held-out pictures: its own captions against all references."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from saccade.app.api import CaptioningModel
from saccade.data import shapes
from saccade.data.shapes import Scene
from saccade.decode.engine import Decoding
from saccade.metrics.captioning import caption_scores
from saccade.metrics.meteor import MISSING, nltk_meteor
from saccade.tasks.captioning.captioner import Describer
from saccade.tasks.captioning.data import Captioned, read_captioned
from saccade.tasks.captioning.pointing import Pointed, can_point, point, pointed, tell
from saccade.tasks.captioning.reasons import has_groups, reasons, worlds
from saccade.tasks.captioning.task import encode, mean_loss

Progress = Callable[[int, int], None]


def evaluate_captions(
    model: CaptioningModel,
    *,
    split: str,
    data: str,
    how: Decoding,
    progress: Progress,
    groups: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Every score by name; on shapes also whether what is said is so, and read from there.

    Where the data say who is of which group, also how each group fares; of the shapes' biased world
    on its biased and balanced tests alike, whichever split was asked for. `groups` are other ones
    than those that the run was trained with.
    """
    tool = _asked_about(model.tool, groups) if groups else model.tool
    told = read_captioned(replace(tool.settings, data=data) if data else tool.settings, split)
    further = can_point(tool, told)  # work that takes about as long again
    whole = len(told) * (2 if further else 1)
    begun = time.perf_counter()
    captions, game = described(tool, told, how, lambda done: progress(done, whole), look=further)
    seconds = time.perf_counter() - begun
    references = [list(some) for some in told.captions]
    meteor = nltk_meteor(captions, references)
    encoded, _ = encode(told, tool.vocabulary, longest=10 * tool.settings.longest)
    loss = mean_loss(tool.model, encoded, tool.device)
    found: dict[str, Any] = {
        "split": split,
        "pictures": len(told),
        "references": sum(map(len, references)),
        **caption_scores(captions, references),
        **({} if meteor is None else {"meteor_by_nltk": meteor}),
        "loss": loss,
        "perplexity": float(torch.tensor(loss).exp()),
        "different_captions": len(set(captions)),
        "seconds": seconds,
        "beam": how.beam,
    }
    if told.scenes:
        found |= content_scores(captions, told.scenes)
    if further:
        found |= point(tool, told, game)
    if has_groups(told, tool.settings):
        found["reasons"] = worlds(tool, how) if told.scenes else reasons(tool, told, how)
    progress(whole, whole)
    return found | ({"note": MISSING} if meteor is None else {})


def _asked_about(tool: Describer, groups: tuple[str, ...]) -> Describer:
    equalizer = replace(tool.settings.equalizer, groups=groups)
    return Describer(tool.model, tool.vocabulary, replace(tool.settings, equalizer=equalizer))


def described(
    tool: Describer,
    told: Captioned,
    how: Decoding,
    progress: Callable[[int], None],
    *,
    look: bool,
) -> tuple[list[str], list[Pointed]]:
    """The captions of all pictures, in their order, and where each word pointed if asked."""
    captions, game = [""] * len(told), list[Pointed]()
    for done, (number, one) in enumerate(tell(tool, told, how, look=look), start=1):
        captions[number] = one.text
        game += pointed(tool, told, number, one) if look else []
        progress(done)
    return captions, game


def content_scores(captions: list[str], scenes: list[Scene]) -> dict[str, Any]:
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

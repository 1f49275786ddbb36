"""The pointing game: at a word, does a captioner look at what the word means?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.data.images.lattice import Lattice
from saccade.data.tokens.words import words
from saccade.decode.engine import Decoding
from saccade.metrics.outcomes import read_groups
from saccade.metrics.pointing import mass_inside, points_at, widened
from saccade.tasks.captioning.captioner import ImageCaptioner, WrittenCaption
from saccade.tasks.captioning.data import Captioned, CaptioningSettings
from saccade.tasks.captioning.regions import Meaning, in_row, in_scene

AT_ONCE = 512  # images held at a time


@dataclass(frozen=True)
class Pointed:
    """One word of one caption: whether the highest point of its map lay in the box, near it (with
    the game's margin) or on the very pixels, how much of the map lay in the box, and how large that
    was (the hits of blind chance).
    """

    word: str
    box: bool
    near: bool
    pixels: bool
    mass: float
    area: float


def can_point(captioner: ImageCaptioner, data: Captioned) -> bool:
    """Whether the model looks, and anything says where things are."""
    return captioner.looks and knows(data)


def point(captioner: ImageCaptioner, data: Captioned, own: Iterable[Pointed]) -> dict[str, Any]:
    """The game at every word whose meaning is known: its `own` captions', and given ones'."""
    given = pointed_given(captioner, data, [captions[0] for captions in data.captions])
    return {"pointing": summed(own), "pointing_given": summed(given)}


def write_captions(
    captioner: ImageCaptioner, data: Captioned, how: Decoding, *, look: bool
) -> Iterator[tuple[int, WrittenCaption]]:
    """The model's own captions, with where it looked, a few images at a time."""
    for rows in torch.arange(len(data)).split(AT_ONCE):
        for row, one in captioner.caption(data.images[rows], how, look=look):
            yield int(rows[row]), one


def pointed(
    captioner: ImageCaptioner, data: Captioned, number: int, said: WrittenCaption
) -> Iterator[Pointed]:
    """The game at every word of a caption that the model made."""
    maps, meant = captioner.words_looked_at(said), meaning(data, number, captioner.settings)
    assert said.cells is not None  # else nobody watched, and that was said
    said_words = words(said.text, captioner.vocabulary.spans_of(said.tokens))
    yield from at_words(said_words, maps, said.cells.lattice, meant)


def pointed_given(
    captioner: ImageCaptioner, data: Captioned, captions: list[str]
) -> Iterator[Pointed]:
    """The game at every word of given captions, one to an image, while the model reads them."""
    for rows in torch.arange(len(data)).split(AT_ONCE):
        some = [captions[row] for row in rows.tolist()]
        for row, maps, lattice in captioner.read_captions(data.images[rows], some):
            meant = meaning(data, int(rows[row]), captioner.settings)
            said_words = words(some[row], captioner.vocabulary.spans(some[row]))
            yield from at_words(said_words, maps, lattice, meant)


def meaning(data: Captioned, number: int, settings: CaptioningSettings) -> Meaning:
    """What words mean in an image."""
    if data.scenes:
        return in_scene(data.scenes[number], settings.image)
    groups = read_groups(settings.equalizer.groups)
    return in_row(data.rows[number], groups, settings.image, settings.fit)


def at_words(
    said: Sequence[str], maps: Float[Tensor, "words h w"], lattice: Lattice, meant: Meaning
) -> Iterator[Pointed]:
    """The game at every word of a caption that means something."""
    for place in range(len(said)):
        region = meant(said, place)
        if region is None:
            continue
        one, box, pixels = maps[place][None], region.box[None], region.pixels[None]
        yield Pointed(
            region.word,
            bool(points_at(one, box, lattice)),
            bool(points_at(one, widened(box), lattice)),
            bool(points_at(one, pixels, lattice)),
            float(mass_inside(one, box, lattice)),
            float(box.float().mean()),
        )


def summed(game: Iterable[Pointed]) -> dict[str, Any]:
    """Shares of all, and of each word."""
    every = list(game)
    by_word: dict[str, list[Pointed]] = {}
    for one in every:
        by_word.setdefault(one.word, []).append(one)
    return {**_shares(every), "by_word": {word: _shares(by_word[word]) for word in sorted(by_word)}}


def _shares(game: list[Pointed]) -> dict[str, Any]:
    if not game:
        return {"count": 0}
    count = len(game)
    return {
        "count": count,
        "hits": sum(one.box for one in game) / count,
        "hits_near": sum(one.near for one in game) / count,
        "hits_on_pixels": sum(one.pixels for one in game) / count,
        "mass": sum(one.mass for one in game) / count,
        "chance": sum(one.area for one in game) / count,
    }


def knows(data: Captioned) -> bool:
    """Whether anything says where things are."""
    marks = {"boxes", "mask_file_name"}
    return bool(data.scenes) or any(marks & set(row.extras) for row in data.rows)

"""The look document of captions: each word over the picture that it was said of."""

from typing import Any, Protocol, cast, runtime_checkable

from jaxtyping import UInt8
from torch import Tensor

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import laid, text_axis
from saccade.app.look.captioning.images import Shown
from saccade.app.look.captioning.look import PictureLook
from saccade.app.look.captioning.sites import KEEP, Room, caption_sites
from saccade.app.look.settings import FORMAT, Looker, LookSettings, place_name
from saccade.app.look.telling import choices_of, history, rounded
from saccade.attention.axes import Axis
from saccade.data.vocabulary import END, START
from saccade.data.words import words
from saccade.decode.beam import Beam
from saccade.decode.engine import Decoding
from saccade.decode.protocol import Candidate
from saccade.tasks.captioning.captioner import Described, Describer
from saccade.tasks.captioning.teacher_forced import reread_caption
from saccade.tasks.language.teacher_forced import Reread


@runtime_checkable
class Predicted(Protocol):
    """What was said of a picture, as `saccade.load(run).predict(image)` gives it."""

    @property
    def name(self) -> str: ...
    @property
    def picture(self) -> UInt8[Tensor, "3 H W"]: ...
    @property
    def described(self) -> Described: ...


def caption_look(
    model: Looker,
    prediction: Predicted,
    settings: LookSettings | None = None,
    *,
    shown: Shown | None = None,
) -> PictureLook:
    """Where a model looked for each word; `shown` is a better picture than the one it saw."""
    describer, how = cast(Describer, model.tool), settings or LookSettings()
    one = prediction.described
    maps = describer.words_looked_at(one)
    assert one.cells is not None  # else nobody watched, and that was said
    if shown is None:
        shown = Shown.of(prediction.picture, describer, name=prediction.name)
    return PictureLook(
        rows=words(one.text),
        maps=maps,
        lattice=one.cells.lattice,
        picture=shown.picture,
        title=f"{model.name}: attention to {shown.name}, mean over layers and heads",
        caption=one.text,
        document=lambda: caption_document([model], [shown], how),
        hard=is_hard(describer),
        boxes=shown.boxes,
    )


def caption_document(
    lookers: list[Looker], shown: list[Shown], settings: LookSettings
) -> dict[str, Any]:
    """Describe pictures with one model or two, and tell where they looked for each word.

    One picture by one model comes with the n-best list and the history of the search.
    """
    blobs = Blobs()
    alone = len(lookers) == len(shown) == 1
    many = settings.beam if alone else 1
    room = Room(settings.budget // (len(lookers) * len(shown) * many))
    looks: list[dict[str, Any]] = []
    for one in lookers:
        describer = cast(Describer, one.tool)
        for number, picture in enumerate(shown):
            found = _described(describer, picture, settings, many)
            for place, look in enumerate(_looks(describer, picture, found, room, blobs)):
                looks.append(
                    {"run": one.name, "label": place_name(place), "picture": number} | look
                )
    seen = max(cast(Describer, one.tool).settings.image for one in lookers)
    what = shown[0].name if len(shown) == 1 else f"{len(shown)} pictures"
    return {
        "format": FORMAT,
        "kind": "caption",
        "title": f"{' and '.join(one.name for one in lookers)} · {what}",
        "notes": list(dict.fromkeys(room.notes)),
        "pictures": [picture.entry(seen) for picture in shown],
        "looks": looks,
        "blobs": blobs.texts,
    }


def _described(
    describer: Describer, shown: Shown, settings: LookSettings, many: int
) -> tuple[Described, list[list[dict[str, Any]]] | None]:
    """What is said of a picture, and the history of the search for it."""
    steps: list[list[Candidate]] = []

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        steps.extend(step.values())
        return []

    how = Decoding(
        beam=settings.beam,
        n_best=min(many, settings.beam),
        length_penalty=settings.length_penalty,
    )
    picture = shown.seen_by(describer)
    ((_, best),) = describer.describe(picture[None], how, on_step=tell)
    if many == 1 or settings.beam == 1:
        return best, None
    beam = Beam(size=settings.beam, length_penalty=settings.length_penalty)
    return best, history(describer.vocabulary, steps, beam)


def _looks(
    describer: Describer,
    shown: Shown,
    found: tuple[Described, list[list[dict[str, Any]]] | None],
    room: Room,
    blobs: Blobs,
) -> list[dict[str, Any]]:
    """A look for each hypothesis; the best carries the history."""
    best, beam = found
    picture = shown.seen_by(describer)
    looks: list[dict[str, Any]] = []
    for one in (best, *best.others):
        seen = reread_caption(describer, picture, one.tokens, finished=one.finished, keep=KEEP)
        looks.append(
            {
                "text": one.text,
                "score": one.score,
                "log_probability": one.log_probability,
                "finished": one.finished,
                "hard": is_hard(describer),
                "axes": _axes(describer, one, seen),
                "sites": caption_sites(seen, room, blobs),
                "beam": beam if one is best else None,
            }
        )
    return looks


def is_hard(describer: Describer) -> bool:
    """Whether it looks at one cell at a time."""
    return getattr(describer.model.config, "glance", "soft") == "hard"


def _axes(describer: Describer, one: Described, seen: Reread) -> dict[str, Any]:
    vocabulary = describer.vocabulary
    said = [*one.tokens, *([END] if one.finished else [])]
    chosen = {"log_p": rounded(seen.log_p), "choices": choices_of(vocabulary, seen.choices)}
    axes = {
        "target": text_axis(vocabulary, said) | chosen,
        "past": text_axis(vocabulary, [START, *said[:-1]]),
        "source": _grid(Axis("source", "grid", 1, 1)),  # for a model that looks at all at once
    }
    for pair in seen.axes.values():
        axes |= {axis.name: _grid(axis) for axis in pair if axis.kind == "grid"}
    return axes


def _grid(axis: Axis) -> dict[str, Any]:
    """Cells have no words; where they lie is their name."""
    return {
        "kind": "grid",
        "tokens": [],
        "words": [],
        "prompt": 0,
        "log_p": None,
        "choices": None,
        "grid": laid(axis.lattice) | {"special": axis.special},
    }

"""The look document of texts about images: which regions each word looked at, which words each
region, and what would be said without a region.
"""

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from saccade.app.look.arrays import Blobs, Kind
from saccade.app.look.document import (
    AxisEntry,
    ClassEntry,
    LookDocument,
    LookEntry,
    RegionsEntry,
    SiteEntry,
)
from saccade.app.look.images import image_entries
from saccade.app.look.joint.seen import WORDS, SeenPair, seen_sentences
from saccade.app.look.joint.subject import PairSubject, PairTruth
from saccade.app.look.settings import LookSettings, NamedModel
from saccade.app.look.site import EIGHT_BITS, site_entry
from saccade.attention.look.glance import Glance
from saccade.data.answers import soft_scores
from saccade.data.boxes import iou
from saccade.tasks.base import Progress, silent
from saccade.tasks.guesses import Guess
from saccade.tasks.joint.pairs import TAB, PairTool
from saccade.tasks.joint.referring import MEANT
from saccade.tasks.joint.tools import DOES_NOT, FITS

GUESSES = 5
HALF = 0.5  # from which score on an answer is taken for right
MOST_EMPTIED = 128  # regions: of more it is not asked what would be said without each
TEXT_BYTES = 2 * 4 / 3  # characters to a weight of 16 bits
MEAN_OF_HEADS = "the heads of each layer are shown as their mean, for they do not fit the budget"
NOT_AMONG = "where words look at words, and regions at regions, does not fit the budget"
NO_BOXES = "there are no boxes to look at, so the whole image is the only region"
TOO_MANY = f"what would be said without a region is asked for up to {MOST_EMPTIED} of them"


def pair_document(
    models: Sequence[NamedModel[PairTool]],
    subjects: Sequence[PairSubject],
    how: LookSettings,
    *,
    progress: Progress = silent,
) -> LookDocument:
    """What one model or two say of texts about images, and where both streams looked."""
    blobs, looks, done = Blobs(), list[LookEntry](), 0
    room = how.budget / (len(models) * len(subjects))
    for model in models:
        for number, subject in enumerate(subjects):
            every = seen_sentences(model.tool, subject, best=GUESSES)
            own = room / len(every)
            looks += [_entry(model, subject, seen, how, own, blobs, number) for seen in every]
            done += 1
            progress(done, len(models) * len(subjects))
    entries = image_entries([one.shown for one in subjects], [model.tool for model in models])
    only = subjects[0]
    text = only.text.replace(TAB, " | ")
    name = f"{only.shown.name} · {text}" if len(subjects) == 1 else f"{len(subjects)} texts"
    return LookDocument.of("joint", [one.name for one in models], name, looks, blobs, entries)


def _entry(
    model: NamedModel[PairTool],
    subject: PairSubject,
    seen: SeenPair,
    how: LookSettings,
    room: float,
    blobs: Blobs,
    number: int,
) -> LookEntry:
    tool, answer = model.tool, seen.answer
    axes = seen.axes(tool)
    if answer.blanks:
        axes[WORDS] = _with_choices(axes[WORDS], seen)
    if tool.wants_boxes and len(seen.boxes) == 1:
        blobs.note(NO_BOXES)
    of = seen.text.text if answer.sentences else how.of
    aim = tool.aim(answer, of)
    without = list[float]()
    if len(seen.boxes) <= MOST_EMPTIED:
        without = tool.without(seen.image, seen.whole, aim)
    else:
        blobs.note(TOO_MANY)
    target = of or answer.text
    with_all = tool.with_all(seen.image, seen.whole, aim)
    return LookEntry(
        run=model.name,
        label="best",
        text=answer.text,
        score=round(answer.score, 6),
        log_probability=None,
        finished=None,
        axes=axes,
        sites=_sites(seen, room, blobs),
        image=number,
        classes=_classes(seen, subject.truth, target, with_all),
        regions=_regions(tool, seen, subject, without, with_all),
    )


def _with_choices(axis: AxisEntry, seen: SeenPair) -> AxisEntry:
    """The best words for each blank."""
    assert seen.text.blanks is not None
    best = dict(zip(seen.text.blanks.at, seen.answer.blanks))
    choices = [
        [(one.word, round(one.probability, 4)) for one in best.get(place, ())]
        for place in range(len(axis.tokens))
    ]
    return replace(axis, choices=choices)


def _classes(seen: SeenPair, truth: PairTruth, target: str, with_all: float) -> ClassEntry:
    """What was said, as answers with their likelihoods."""
    answer, labels = seen.answer, seen.labels
    if answer.guesses:
        guesses, said, true = list(answer.guesses), answer.text, _right(answer.text, truth)
    elif answer.chances:
        order = sorted(range(len(labels)), key=lambda n: -answer.chances[n])[:GUESSES]
        guesses = [Guess(labels[n], answer.chances[n]) for n in order]
        said = target = guesses[0].label
        true = _meant(seen, truth)
    else:
        fits = answer.fits or 0.0
        guesses = sorted([Guess(FITS, fits), Guess(DOES_NOT, 1 - fits)], key=lambda one: -one[1])
        said = target = guesses[0].label
        with_all, true = (
            guesses[0].probability,
            [FITS if truth.fits else DOES_NOT] * (truth.fits is not None),
        )
    return ClassEntry(
        said=[said],
        guesses=[(label, round(p, 6)) for label, p in guesses],
        truth=true,
        target=target,
        probability=round(with_all, 6),
    )


def _right(said: str, truth: PairTruth) -> list[str]:
    """What is said, if it is more right than wrong by what people answered; else the best of it."""
    if truth.sentence is not None:
        return [truth.sentence]
    scores = soft_scores(truth.answers)
    if scores.get(said, 0.0) >= HALF:
        return [said]
    return sorted(scores, key=lambda one: (-scores[one], one))[:1]


def _meant(seen: SeenPair, truth: PairTruth) -> list[str]:
    """The region that is meant: the one that shares most with the true box, and half at least. If
    the likeliest does, it is right as well.
    """
    if truth.box is None:
        return []
    shared = iou(seen.boxes, truth.box.expand_as(seen.boxes))[0]
    said = seen.answer.region
    if said is not None and shared[said] >= MEANT:
        return [seen.labels[said]]
    best = int(shared.argmax())
    return [seen.labels[best] if shared[best] >= MEANT else "none of the regions"]


def _regions(
    tool: PairTool,
    seen: SeenPair,
    subject: PairSubject,
    without: list[float],
    with_all: float,
) -> RegionsEntry:
    true = subject.truth.box
    return RegionsEntry(
        asked=seen.text.text,
        among=list(seen.answer.sentences),
        boxes=[_rounded(box) for box in seen.boxes.tolist()],
        of_what=tool.of_what,
        with_all=round(with_all, 6),
        without=_rounded(without),
        chances=_rounded(seen.answer.chances),
        meant=seen.answer.region,
        truth=None if true is None else _rounded(true.tolist()),
        named=bool(tool.names),
    )


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 5) for number in numbers]


def _sites(seen: SeenPair, room: float, blobs: Blobs) -> list[SiteEntry]:
    """Between the streams first; within them where there is room for it."""
    across = {n: one for n, one in seen.sites.items() if seen.sides[n][0] != seen.sides[n][1]}
    within = {name: one for name, one in seen.sites.items() if name not in across}
    sites = [
        _mean_entry(name, one, seen.sides[name], blobs)
        if _bytes(across) / 2 > room
        else site_entry(name, one, seen.sides[name], _kind(across, room, blobs), blobs)
        for name, one in across.items()
    ]
    left = room - _bytes(across)
    if _bytes(within) / 2 > left:
        blobs.note(NOT_AMONG)
        return sites
    kind = _kind(within, left, blobs)
    return sites + [site_entry(n, one, seen.sides[n], kind, blobs) for n, one in within.items()]


def _kind(sites: dict[str, Glance], room: float, blobs: Blobs) -> Kind:
    if _bytes(sites) <= room:
        return "f16"
    blobs.note(EIGHT_BITS)
    return "u8"


def _bytes(sites: dict[str, Glance]) -> float:
    return sum(_weights(one).numel() for one in sites.values()) * TEXT_BYTES


def _weights(one: Glance) -> Float[Tensor, "1 N T S"]:
    assert one.weights is not None
    return one.weights


def _mean_entry(name: str, one: Glance, sides: tuple[str, str], blobs: Blobs) -> SiteEntry:
    blobs.note(MEAN_OF_HEADS)
    return SiteEntry(
        name=name,
        rows=sides[0],
        columns=sides[1],
        heads=1,
        causal=False,
        reach=None,
        cell=[1, 1],
        arrays={"weights": blobs.add(_weights(one)[0].mean(dim=0, keepdim=True), "u8")},
    )

"""The look document of captions: each word over the image that it was said of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from saccade.app.look.arrays import Blobs
from saccade.app.look.axis import grid_axis
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.captioning.sites import KEEP, caption_sites
from saccade.app.look.document import LookDocument, LookEntry
from saccade.app.look.images import ShownImage
from saccade.app.look.matrix import one_matrix, site_named
from saccade.app.look.search import as_predicted, hypothesis_entry, run_search, written_axes
from saccade.app.look.settings import LookSettings, NamedModel, Selection
from saccade.attention.axes import Axis
from saccade.data.tokens.words import word_spans, words
from saccade.decode.engine import Decoding
from saccade.metrics.alignment import merge_rows
from saccade.models.caption.captioner import CaptionerConfig
from saccade.tasks.captioning.captioner import ImageCaptioner, WrittenCaption
from saccade.tasks.captioning.teacher_forced import teacher_forced_caption

WHOLE = Axis("source", "grid", 1, 1)  # for a model that looks at all at once


def caption_look(
    model: NamedModel[ImageCaptioner],
    one: WrittenCaption,
    image: ShownImage,
    how: LookSettings,
    select: Selection,
    *,
    decoding: Decoding | None = None,
) -> ImageLook:
    """Where a model looked on an image for each word of a caption that was watched.

    Layers are those that look at the image, all of which are shown together by default.
    """
    assert one.cells is not None  # else nobody watched, and that was said
    names, seen = list(one.attention), one.attention
    what = f"attention to {image.name}"
    if select.layer is not None:
        site = site_named(select.layer, names, names)
        seen, what = {site: seen[site]}, f"{what}, {site}"
    weights, which = one_matrix(seen, select)
    maps, vocabulary = weights[:, one.cells.special :], model.tool.vocabulary
    spans, rows = vocabulary.spans_of(one.tokens), vocabulary.pieces(one.tokens)
    if select.units == "pieces":
        maps = maps[: len(rows)]
    else:
        rows = words(one.text, spans)
        maps = merge_rows(maps, pieces=spans, words=word_spans(one.text, spans))
    select.check_rows(len(rows))
    return ImageLook(
        rows=rows,
        maps=maps.unflatten(1, (one.cells.height, one.cells.width)),
        lattice=one.cells.lattice,
        image=image.pixels,
        title=f"{model.name}: {what}, {which}",
        caption=one.text,
        document=lambda: caption_document([model], [image], how, decoding=decoding, predicted=one),
        hard=_is_hard(model.tool),
        boxes=image.boxes,
    )


def caption_document(
    models: Sequence[NamedModel[ImageCaptioner]],
    images: Sequence[ShownImage],
    how: LookSettings,
    *,
    decoding: Decoding | None = None,
    predicted: WrittenCaption | None = None,
) -> LookDocument:
    """Caption images with one model or two, and show where they looked for each word.

    One image by one model comes with the n-best list and the history of the search. What was
    `predicted` of it is shown whatever another search finds.
    """
    blobs, looks = Blobs(), list[LookEntry]()
    n_best = how.beam if len(models) == len(images) == 1 else 1
    search = how.search(n_best, decoding)
    size = how.budget // (len(models) * len(images) * n_best)
    for model in models:
        for number, image in enumerate(images):
            found = _looks(model, image, search, size, blobs, predicted)
            looks += [replace(look, image=number) for look in found]
    seen = max(model.tool.settings.image for model in models)
    subject = images[0].name if len(images) == 1 else f"{len(images)} images"
    entries = [image.entry(seen) for image in images]
    return LookDocument.of("caption", [one.name for one in models], subject, looks, blobs, entries)


def _looks(
    model: NamedModel[ImageCaptioner],
    image: ShownImage,
    search: Decoding,
    size: int,
    blobs: Blobs,
    predicted: WrittenCaption | None,
) -> list[LookEntry]:
    """The n-best list of one search; each hypothesis is then run teacher-forced and watched."""
    captioner, vocabulary = model.tool, model.tool.vocabulary
    pixels = image.seen_by(captioner)
    best, beam = run_search(
        lambda on_step: captioner.caption(pixels[None], search, on_step=on_step),
        search,
        vocabulary,
    )
    best, beam = as_predicted(best, beam if search.n_best > 1 else None, predicted)
    looks: list[LookEntry] = []
    for place, one in enumerate((best, *best.others)):
        seen = teacher_forced_caption(
            captioner, pixels, one.tokens, finished=one.finished, keep=KEEP
        )
        axes = {**written_axes(vocabulary, one, seen), "source": grid_axis(WHOLE)}
        for pair in seen.axes.values():
            axes |= {axis.name: grid_axis(axis) for axis in pair if axis.kind == "grid"}
        sites = caption_sites(seen, size, blobs)
        entry = hypothesis_entry(model.name, place, one, axes, sites, beam)
        looks.append(replace(entry, hard=_is_hard(captioner)))
    return looks


def _is_hard(captioner: ImageCaptioner) -> bool:
    return cast(CaptionerConfig, captioner.model.config).hard

"""The look document of captions says what the model saw, and fits on a page."""

import base64
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.app.kinds.captioning.kind import CaptioningModel
from saccade.app.look.captioning.document import caption_document
from saccade.app.look.document import AxisEntry, LookDocument, LookEntry, SiteEntry, to_json
from saccade.app.look.html import page_html
from saccade.app.look.images import ShownImage
from saccade.app.look.settings import LookSettings
from saccade.data import shapes
from saccade.decode.engine import Decoding
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.train.recipes import RECIPES
from tests.app.look.captioners import CONFIGS, SCENES, captioner, shown
from tests.app.look.reading import values

LOOKING = [kind for kind in CONFIGS if kind != "blind"]


def size(document: LookDocument) -> int:
    return sum(map(len, document.blobs))


def site(look: LookEntry, name: str) -> SiteEntry:
    (found,) = [one for one in look.sites if one.name == name]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOKING)
def test_what_a_row_looks_at_sums_to_one_at_every_site(kind: str) -> None:
    document = caption_document([captioner(kind)], shown(), LookSettings(beam=2))
    assert json.loads(to_json(document))["kind"] == "caption"
    for look in document.looks:
        for entry in look.sites:
            weights = values(document.blobs, entry.arrays["weights"]).astype(float)
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=5e-3)
            for side, many in zip(("rows", "columns"), weights.shape[1:]):
                assert length(look.axes[getattr(entry, side)]) == many


@pytest.mark.parametrize(("kind", "middle"), [("soft", 0.5), ("vit", 4.0)])
def test_cells_lie_where_the_encoder_sees_from(kind: str, middle: float) -> None:
    model = captioner(kind)
    size = model.tool.settings.image
    (look,) = caption_document([model], shown(), LookSettings(beam=1)).looks
    for way in ("down", "across"):
        assert getattr(look.axes["source"].grid, way)[0] == pytest.approx(middle / size, abs=1e-5)


def length(axis: AxisEntry) -> int:
    grid = axis.grid
    return len(axis.tokens) or grid.special + grid.height * grid.width


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOKING)
def test_maps_are_those_that_followed_each_hypothesis_through_the_beam(kind: str) -> None:
    model = captioner(kind, seed=3)
    document = caption_document([model], shown(), LookSettings(beam=3))
    picture = shown()[0].seen_by(model.tool)[None]
    how = Decoding(beam=3, n_best=3)
    ((_, best),) = model.tool.caption(picture, how, look=True)
    assert len(document.looks) == 3
    for look, one in zip(document.looks, (best, *best.others)):
        assert look.text == one.text
        assert sum(look.axes["target"].log_p) == pytest.approx(one.log_probability, abs=2e-3)
        for name, weights in model.tool.weights(one).items():
            found = values(document.blobs, site(look, name).arrays["weights"])
            np.testing.assert_allclose(found, weights.numpy(), atol=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soft", "hard", "cnn"])
@pytest.mark.parametrize("decoding", [{"sample": True, "seed": 3}, {"beam": 3, "n_best": 3}])
def test_a_prediction_shows_the_very_words_that_it_said(
    kind: str, decoding: dict[str, Any]
) -> None:
    """Draws of a batch and others of an n-best list are not what a search of its own would find."""
    model = captioner(kind, seed=3)
    captioning = CaptioningModel(kind, RECIPES["show-attend-tell"], model.tool)
    images = [one.seen_by(model.tool) for one in shown(2)]
    made = captioning.predict(images, **decoding)
    every = [one for first in made for one in (first, *first.others)]
    assert len({one.text for one in every}) > 1
    for one in every:
        look = one.look(units="pieces")
        assert look.rows == model.tool.vocabulary.pieces(one._described.tokens)
        assert look.caption == one.text
        assert len(look.maps) == len(one._described.tokens)
        shown_first = look.document().looks[0]
        assert shown_first.text == one.text
        assert sum(shown_first.axes["target"].log_p) == pytest.approx(
            one._described.log_probability, abs=2e-3
        )


def test_a_single_glance_is_at_one_cell() -> None:
    document = caption_document([captioner("hard")], shown(), LookSettings(beam=1))
    (look,) = document.looks
    weights = values(document.blobs, site(look, "cross").arrays["weights"])
    assert look.hard
    assert ((weights == 1).sum(axis=-1) == 1).all()
    assert (weights.sum(axis=-1) == 1).all()


@pytest.mark.parametrize("kind", ["cnn", "vit"])
def test_rollout_is_the_product_of_all_layers_of_the_encoder(kind: str) -> None:
    document = caption_document([captioner(kind)], shown(), LookSettings(beam=1))
    look = document.looks[0]
    inner = [one for one in look.sites if one.rows == one.columns]
    expected = np.eye(length(look.axes[inner[0].rows]))
    for one in inner[:-1]:
        mean = values(document.blobs, one.arrays["weights"]).astype(float).mean(axis=0)
        expected = 0.5 * expected + 0.5 * mean @ expected
    assert (inner[-1].name, inner[-1].derived) == ("rollout", True)
    rolled = values(document.blobs, inner[-1].arrays["weights"])[0]
    np.testing.assert_allclose(rolled, expected, atol=2e-3)


def test_a_model_that_looks_once_has_a_caption_and_no_maps() -> None:
    document = caption_document([captioner("blind")], shown(), LookSettings(beam=2))
    assert [look.sites for look in document.looks] == [[], []]
    assert all(look.axes["target"].log_p for look in document.looks)


def test_several_pictures_share_a_page_with_what_is_known_of_each() -> None:
    document = caption_document([captioner("soft")], shown(3), LookSettings(beam=3))
    assert [look.image for look in document.looks] == [0, 1, 2]
    assert document.title == "soft · 3 images"
    for entry, scene in zip(document.images, SCENES):
        assert entry.references == list(shapes.captions(scene))
        masks = shapes.masks(scene, 64)
        for mark, thing, mask in zip(entry.boxes, scene.objects, masks, strict=True):
            assert mark.label == f"{thing.colour} {thing.kind}"
            rows, columns = np.nonzero(mask)
            box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert mark.box == pytest.approx([x / 64 for x in box], abs=1e-3)


def test_the_picture_that_is_shown_is_the_one_that_was_meant() -> None:
    document = caption_document([captioner("soft")], shown(), LookSettings(beam=1))
    kind, _, data = document.images[0].source.partition(",")
    assert kind == "data:image/jpeg;base64"
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))).astype(float)
    assert np.abs(pixels - shapes.render(SCENES[0], 384)).mean() < 4


def test_two_runs_are_compared_on_one_picture_that_is_stored_once() -> None:
    soft, hard = captioner("soft", "a"), captioner("hard", "b")
    document = caption_document([soft, hard], shown(), LookSettings(beam=2))
    assert [(look.run, look.image) for look in document.looks] == [("a", 0), ("b", 0)]
    assert len(document.images) == 1


@pytest.mark.slow
def test_hypotheses_share_the_looks_of_the_encoder() -> None:
    one, three = (
        caption_document([captioner("vit")], shown(), LookSettings(beam=beam)) for beam in (1, 3)
    )
    names = [entry.name for entry in one.looks[0].sites if entry.rows == "image"]
    blobs = {site(look, name).arrays["weights"].blob for look in three.looks for name in names}
    assert len(three.looks) == 3
    assert len(blobs) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize(("side", "kept"), [(64, "8 bits"), (128, "8 weights of each row")])
def test_a_page_keeps_to_its_budget_and_says_what_it_left_out(side: int, kept: str) -> None:
    model = captioner("vit")
    settings = CaptioningSettings(image=side, longest=4)
    tool = ImageCaptioner(model.tool.model, model.tool.vocabulary, settings)
    budget = 140_000
    document = caption_document(
        [model._replace(tool=tool)], shown(), LookSettings(beam=1, budget=budget)
    )
    assert size(document) < budget
    assert any(kept in note for note in document.notes)
    large = caption_document([model._replace(tool=tool)], shown(), LookSettings(beam=1))
    assert size(large) > size(document)


def test_pixels_of_any_shape_are_looked_at_and_shown_square() -> None:
    picture = torch.randint(256, (3, 90, 200), dtype=torch.uint8)
    model = captioner("soft")
    document = caption_document([model], [ShownImage.of(picture, model.tool)], LookSettings(beam=1))
    (entry,) = document.images
    assert (entry.side, entry.seen) == (200, 32)
    seen = ShownImage.of(picture, model.tool).seen_by(model.tool)
    assert torch.equal(seen, model.tool.prepare(picture))


@pytest.mark.slow
def test_ten_pictures_make_one_small_page_that_asks_for_nothing() -> None:
    pictures = [replace(one, name=f"{i}") for i in range(4) for one in shown(3)][:10]
    model = captioner("vit", longest=3)
    page = page_html(caption_document([model], pictures, LookSettings(beam=1)))
    assert len(page) < 3_000_000
    assert "connect-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page

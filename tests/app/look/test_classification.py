"""The look document of classes says what each image was taken for, and what that came from."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade.app.look.classification import class_document, class_look, resampled
from saccade.app.look.document import LookEntry, read_json, to_json
from saccade.app.look.settings import LookSettings, Selection
from saccade.data.images.lattice import Lattice
from saccade.errors import ConfigError
from saccade.tasks.classification.maps import class_maps

from .classifiers import NAMES, classifier, subjects
from .reading import values

HOW = LookSettings()
WHOLE = ["relevance", "rollout", "Grad-CAM"]


def cells(look: LookEntry, site: int) -> int:
    grid = look.axes[look.sites[site].columns].grid
    assert grid is not None
    return grid.height * grid.width


@pytest.mark.parametrize("kind", ["vit", "swin", "resnet"])
def test_every_map_lies_on_the_cells_of_its_axis_and_sums_to_one(kind: str) -> None:
    document = class_document([classifier(kind)], subjects(2), HOW)
    assert read_json(to_json(document)) == document
    assert document.kind == "classification"
    for look in document.looks:
        assert len(look.sites) == len({site.name for site in look.sites})
        for place, site in enumerate(look.sites):
            weights = values(document.blobs, site.arrays["weights"]).astype(float)
            assert weights.shape == (site.heads, 1, cells(look, place))
            total = weights.sum(axis=-1)
            assert np.all((abs(total - 1) < 0.01) | (total == 0))
            assert look.axes[site.rows].tokens == [look.classes.target if look.classes else ""]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vit", "swin", "resnet"])
def test_the_maps_are_those_of_the_model(kind: str) -> None:
    model, given = classifier(kind), subjects(2)
    document = class_document([model], given, HOW)
    pixels = torch.stack([one.shown.seen_by(model.tool) for one in given])
    found = class_maps(model.tool.model, model.tool.shown(pixels))  # pyright: ignore[reportArgumentType]
    names = [site.name for site in document.looks[1].sites]
    assert names == [*(WHOLE if kind != "resnet" else ["Grad-CAM"]), *found.attention]
    for name, expected in {**found.attention, "Grad-CAM": found.maps["grad_cam"]}.items():
        site = document.looks[1].sites[names.index(name)]
        drawn = values(document.blobs, site.arrays["weights"])[:, 0]
        truth = expected.values[1].detach().reshape(site.heads, -1)
        np.testing.assert_allclose(
            drawn, truth / truth.sum(dim=1, keepdim=True).clamp(min=1e-30), atol=1e-3
        )


def test_guesses_truth_and_what_was_said() -> None:
    model, (given,) = classifier("vit"), subjects()
    (look,) = class_document([model], [given], HOW).looks
    assert look.classes is not None
    chances = model.tool.probabilities(given.shown.seen_by(model.tool)[None])[0]
    assert look.classes.said == [NAMES[int(chances.argmax())]] == [look.text]
    assert look.classes.truth == [NAMES[0]]
    assert [label for label, _ in look.classes.guesses] == [
        NAMES[number] for number in chances.topk(5).indices
    ]
    assert look.score == pytest.approx(float(chances.max()), abs=1e-5)


def test_of_several_classes_all_that_are_likely_there_are_said() -> None:
    model, (given,) = classifier("vit", several=True), subjects()
    (look,) = class_document([model], [given], HOW).looks
    assert look.classes is not None
    chances = model.tool.probabilities(given.shown.seen_by(model.tool)[None])[0]
    assert look.classes.said == [name for name, p in zip(NAMES, chances) if p >= 0.5]


def test_traces_of_a_class_that_was_asked_for() -> None:
    model = classifier("vit")
    own, asked = (class_document([model], subjects(), replace(HOW, of=of)) for of in (None, "007"))
    (first,), (second,) = own.looks, asked.looks
    assert second.classes is not None
    assert first.classes is not None
    assert (second.classes.target, second.classes.said) == ("007", first.classes.said)
    differs = {
        one.name: not np.array_equal(
            values(own.blobs, one.arrays["weights"]), values(asked.blobs, two.arrays["weights"])
        )
        for one, two in zip(first.sites, second.sites)
    }
    assert differs["relevance"]
    assert differs["Grad-CAM"]
    assert not differs["rollout"]
    assert not differs["encoder.0.self"]
    with pytest.raises(ConfigError, match=r"of='cat' is no class of this model; there are: circle"):
        class_document([model], subjects(), replace(HOW, of="cat"))


@pytest.mark.slow
def test_without_room_heads_are_averaged_and_it_is_said() -> None:
    model, given = classifier("fine"), subjects(6)
    full, small = (
        class_document([model], given, how) for how in (HOW, LookSettings(budget=100_000))
    )
    assert full.notes == []
    assert "as their mean" in small.notes[0]
    for every, mean in zip(full.looks[0].sites, small.looks[0].sites):
        assert mean.heads == 1
        expected = values(full.blobs, every.arrays["weights"]).astype(float).mean(axis=0)
        np.testing.assert_allclose(
            values(small.blobs, mean.arrays["weights"])[0], expected, atol=1e-3
        )


def test_many_images_are_smaller_and_have_the_maps_of_the_whole_model() -> None:
    document = class_document([classifier("vit")], subjects(25), HOW)
    assert {image.side for image in document.images} == {192}
    assert [site.name for site in document.looks[24].sites] == WHOLE
    assert "up to 24 images" in document.notes[0]
    assert [look.image for look in document.looks] == list(range(25))


def test_two_runs_are_looks_at_the_same_images() -> None:
    models = [classifier("vit", "a"), classifier("resnet", "b")]
    document = class_document(models, subjects(3), HOW)
    assert [(look.run, look.image) for look in document.looks] == [
        (run, image) for run in "ab" for image in range(3)
    ]
    assert len(document.images) == 3
    assert document.title == "a and b · 3 images"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vit", "swin", "resnet"])
def test_a_film_has_a_frame_for_each_map(kind: str, tmp_path: Path) -> None:
    model, (subject,) = classifier(kind), subjects()
    film = class_look(model, subject, HOW, Selection())
    (look,) = class_document([model], [subject], HOW).looks
    assert film.rows == [site.name for site in look.sites]
    assert film.save(tmp_path / "x.png")
    maps = json.loads(film.save(tmp_path / "x.json").read_text())["maps"]
    total = np.array(maps).sum(axis=(1, 2))
    assert np.all((abs(total - 1) < 1e-3) | (total == 0))
    for one in torch.eye(film.maps[0].numel()):  # the ring stays on the image, wherever it is
        left, top, right, bottom = film.mark(one.reshape(film.maps[0].shape))
        assert min(left, top) >= 0
        assert max(right, bottom) <= 150


def test_a_coarse_map_is_read_at_the_middles_of_finer_cells() -> None:
    coarse, fine = Lattice(2, 2, 0.0), Lattice(4, 4)
    ramp = torch.tensor(
        [[0.0, 1.0], [0.0, 1.0]]
    )  # rises from 0 at the left edge to 1 at the middle
    read = resampled(ramp, coarse, fine)
    np.testing.assert_allclose(read[0] / read[0, 3], [0.25, 0.75, 1, 1])
    assert float(read.sum()) == pytest.approx(2)

"""The look document of texts about images: what it says is what the model did."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.app.look.arrays import ArrayRef
from saccade.app.look.document import LookDocument, LookEntry, read_json, to_json
from saccade.app.look.images import ShownImage
from saccade.app.look.joint.document import pair_document
from saccade.app.look.joint.drawn import FINE, over_image, pair_look
from saccade.app.look.joint.seen import seen_pair
from saccade.app.look.joint.subject import PairSubject, PairTruth
from saccade.app.look.settings import LookSettings, Selection
from saccade.attention.look.looking import looking
from saccade.data import shapes
from saccade.models.joint.config import RegionKind
from tests.app.look.reading import values
from tests.browser.paired import NamedTool
from tests.tasks.joint.pair_tools import HEADS, SEVERAL, pair_tool, scene_image, worded

ASKED = "is the red ring left of a star?"
REGIONS: tuple[RegionKind, ...] = ("boxes", "cells")


def subject(index: int = SEVERAL, text: str = ASKED, truth: PairTruth | None = None) -> PairSubject:
    shown = ShownImage.of_scene(shapes.scene("test", index), f"test {index}")
    image = scene_image(index)
    return PairSubject(replace(shown, boxes=()), text, lambda tool: image, truth or PairTruth())


def look_of(
    kind: str, regions: RegionKind = "boxes", one: PairSubject | None = None, **how: Any
) -> tuple[LookDocument, NamedTool]:
    model = NamedTool("run", pair_tool(kind, regions, seed=2))
    given = one or subject(text=worded(kind, ASKED))
    made = pair_document([model], [given], LookSettings(**how))
    return read_json(to_json(made)), model


def asked_about(document: LookDocument) -> LookEntry:
    """The look at what was asked: of sentences to choose from, each has one."""
    (found,) = (one for one in document.looks if one.regions and one.regions.asked == ASKED)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize("kind", list(HEADS))
def test_every_weight_is_the_models_own(kind: str, regions: RegionKind) -> None:
    document, model = look_of(kind, regions)
    look, tool = asked_about(document), model.tool
    with looking(tool.model) as trace:
        tool.read([scene_image(SEVERAL)], [tool.read_text(worded(kind, ASKED)).sentences[0]], [0])
    sites = {site.name: site for site in look.sites}
    assert sites.keys() == set(trace)
    for name, site in sites.items():
        weights = trace[name].weights
        assert weights is not None
        found = values(document.blobs, site.arrays["weights"])
        torch.testing.assert_close(
            torch.tensor(found, dtype=torch.float32), weights[0].float(), atol=1e-3, rtol=1e-2
        )
        sides = [len(look.axes[axis].tokens) for axis in (site.rows, site.columns)]
        assert list(found.shape[1:]) == sides
    assert (look.axes["regions"].grid is None) == (regions == "boxes")
    assert sites["joins.0.words.cross"].rows == "words"
    assert sites["joins.0.regions.cross"].rows == "regions"


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(HEADS))
def test_it_says_what_is_predicted_and_what_would_be_without(kind: str) -> None:
    document, model = look_of(kind)
    look = asked_about(document)
    tool, image = model.tool, scene_image(SEVERAL)
    text = tool.read_text(worded(kind, ASKED))
    (answer,) = tool.answers([image], [text])
    regions, classes = look.regions, look.classes
    assert regions is not None
    assert classes is not None
    assert (look.text, look.score) == (answer.text, pytest.approx(answer.score, abs=1e-5))
    expected = tool.without(image, text, tool.aim(answer, ASKED if answer.sentences else None))
    assert regions.without == pytest.approx(expected, abs=2e-5)
    assert regions.boxes[1:] == [pytest.approx(box, abs=1e-4) for box in image.given.tolist()]
    assert (regions.meant, regions.asked) == (answer.region, ASKED)
    labels = [token.strip() for token in look.axes["regions"].tokens]
    assert labels == ["the image", *(f"{n} {x}" for n, x in enumerate(image.labels, start=1))]
    if answer.region is not None:
        assert classes.said == [labels[answer.region]]


@pytest.mark.slow
def test_an_answer_is_right_as_people_say_and_a_region_by_what_it_shares() -> None:
    document, _ = look_of("answering")
    said = document.looks[0].text
    for answers, truth in (
        ((*[said] * 9, "x"), [said]),
        (("a", *["no way"] * 9), ["no way"]),
        ((said, *["no way"] * 9), ["no way"]),
    ):
        one = subject(truth=PairTruth(answers=answers))
        classes = look_of("answering", one=one)[0].looks[0].classes
        assert classes is not None
        assert classes.truth == truth
    plain = look_of("referring")[0].looks[0]
    assert plain.regions is not None
    box = torch.tensor(plain.regions.boxes[2])
    look = look_of("referring", one=subject(truth=PairTruth(box=box)))[0].looks[0]
    assert look.classes is not None
    assert look.classes.truth == [look.axes["regions"].tokens[2].strip()]
    far = PairTruth(box=torch.tensor([0.0, 0.0, 0.01, 0.01]))
    look = look_of("referring", one=subject(truth=far))[0].looks[0]
    assert look.classes is not None
    assert look.classes.truth == ["none of the regions"]


@pytest.mark.slow
def test_each_sentence_to_choose_from_has_a_look_and_all_say_which_was_chosen() -> None:
    row = subject(text="a red ring\tthe moon\ttwo stars", truth=PairTruth(sentence="the moon"))
    document, model = look_of("choosing", one=row)
    tool, image = model.tool, scene_image(SEVERAL)
    (answer,) = tool.answers([image], [tool.read_text(row.text)])
    assert [one.regions and one.regions.asked for one in document.looks] == [
        guess.label for guess in answer.guesses
    ]
    for look in document.looks:
        assert look.classes is not None
        assert look.regions is not None
        assert look.regions.among == ["a red ring", "the moon", "two stars"]
        assert (look.classes.said, look.classes.truth) == ([answer.text], ["the moon"])
        assert look.classes.target == look.regions.asked
        assert look.regions.with_all == pytest.approx(
            dict(answer.guesses)[look.regions.asked], abs=1e-5
        )
        assert [guess[0] for guess in look.classes.guesses] == [one.label for one in answer.guesses]
    assert document.subject == f"test {SEVERAL} · a red ring | the moon | two stars"
    sums = [
        sum(some)
        for some in zip(*(look.regions.without for look in document.looks if look.regions))
    ]
    assert sums == pytest.approx([1.0] * len(sums), abs=1e-4)
    for of in (None, "a red ring", "two stars"):
        look = pair_look(model, row, Selection(), lambda: document, of)
        sentence = of or answer.text
        said = "chosen" if sentence == answer.text else "not chosen"
        assert look.caption == f"{sentence} → {said} {dict(answer.guesses)[sentence]:.3f}"


def test_another_answer_may_be_asked_about() -> None:
    look = look_of("answering", of="blue")[0].looks[0]
    assert look.classes is not None
    assert look.regions is not None
    assert (look.classes.target, look.regions.named) == ("blue", True)
    assert look.classes.probability == pytest.approx(look.regions.with_all, abs=1e-5)
    usual = look_of("answering")[0].looks[0].regions
    assert usual is not None
    assert usual.without != look.regions.without


def test_what_does_not_fit_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = look_of("answering", "cells")
    monkeypatch.setattr("saccade.app.look.joint.document.MOST_EMPTIED", 3)
    monkeypatch.setattr("saccade.app.look.joint.document.TEXT_BYTES", 1e5)
    small, _ = look_of("answering", "cells")
    assert whole.notes == []
    assert len(small.notes) == 3
    assert [site.heads for site in small.looks[0].sites] == [1] * 4
    assert small.looks[0].regions is not None
    assert small.looks[0].regions.without == []
    nothing = scene_image(SEVERAL)
    bare = nothing._replace(
        sighted=nothing.sighted._replace(boxes=torch.zeros(0, 4)),
        given=torch.zeros(0, 4),
        labels=(),
    )
    lone = replace(subject(), sight=lambda tool: bare)
    monkeypatch.undo()
    document, _ = look_of("answering", one=lone)
    assert document.notes == [
        "there are no boxes to look at, so the whole image is the only region"
    ]


@pytest.mark.parametrize("regions", REGIONS)
def test_a_film_has_the_weights_of_each_word_where_its_regions_lie(regions: RegionKind) -> None:
    model = NamedTool("run", pair_tool("answering", regions, seed=2))
    seen = seen_pair(model.tool, subject(), best=1)
    weights = seen.sites["joins.1.words.cross"].weights
    assert weights is not None
    rows = weights[0].mean(dim=0)
    maps, lattice = over_image(seen, rows)
    if regions == "cells":
        torch.testing.assert_close(maps.flatten(1), rows[:, 1:])
        return
    assert (lattice.height, lattice.width) == (FINE, FINE)
    for number, (left, top, right, bottom) in enumerate(seen.boxes.tolist()[1:], start=1):
        x, y = int(FINE * (left + right) / 2), int(FINE * (top + bottom) / 2)
        assert (maps[:, y, x] >= rows[:, number] - 1e-6).all()
    assert maps.amax() == pytest.approx(float(rows[:, 1:].amax()), abs=1e-6)
    look = pair_look(
        model, subject(), Selection(layer="0", head=1), lambda: look_of("answering")[0]
    )
    assert len(look.film.peaks) == len(look.film.rows) == len(look.matrix.rows)
    assert "joins.0.words.cross, head 1" in look.film.title


def test_arrays_are_read_by_their_references() -> None:
    document, _ = look_of("fitting")
    (look,) = document.looks
    assert all(isinstance(ref, ArrayRef) for site in look.sites for ref in site.arrays.values())
    assert look.classes is not None
    assert {label for label, _ in look.classes.guesses} == {"fits", "does not fit"}

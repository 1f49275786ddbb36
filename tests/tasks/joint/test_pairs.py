"""What joint models say of pairs: the same alone and among others, and what a region is worth."""

import pytest
import torch

from saccade.errors import ConfigError, DataError
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint.batch import seen_regions
from saccade.tasks.joint.pairs import PairAnswer, PairImage, PairTool, RegionBoxes
from saccade.tasks.joint.tool import SightedImage
from tests.marks import one_fast
from tests.tasks.joint.pair_tools import (
    ANSWERS,
    HEADS,
    SEVERAL,
    pair_tool,
    scene_image,
    worded,
)

KINDS = list(HEADS)
REGIONS: tuple[RegionKind, ...] = ("boxes", "cells")
TEXTS = ("a ___ ring is here", "the red cross", "is there a ring left of the star?", "the moon")


def numbers(one: PairAnswer) -> list[float]:
    found = [one.score, *one.chances, *(guess.probability for guess in one.guesses)]
    found += [word.probability for some in one.blanks for word in some]
    return [*found, *(one.box or ()), -1.0 if one.fits is None else one.fits]


@pytest.mark.parametrize("regions", one_fast(REGIONS))
@pytest.mark.parametrize("kind", one_fast(KINDS))
def test_pairs_give_together_what_each_gives_alone(kind: str, regions: RegionKind) -> None:
    tool = pair_tool(kind, regions)
    images = [scene_image(index) for index in range(3)]
    texts, of = [tool.read_text(worded(kind, text)) for text in TEXTS], [0, 2, 1, 2]
    together = tool.answers(images, texts, of)
    for one, text, image in zip(together, texts, of, strict=True):
        (alone,) = tool.answers([images[image]], [text])
        assert alone.text == one.text
        assert numbers(alone) == pytest.approx(numbers(one), abs=2e-5)
    assert tool.answers(images, []) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_regions_does_not_matter(kind: str) -> None:
    tool, image = pair_tool(kind), scene_image(SEVERAL)
    order = torch.arange(len(image.given)).flip(0)
    turned = image._replace(
        sighted=SightedImage(image.sighted.pixels, image.sighted.boxes[order]),
        given=image.given[order],
    )
    text = tool.read_text(worded(kind, TEXTS[0]))
    one, other = (tool.answers([some], [text])[0] for some in (image, turned))
    assert other.score == pytest.approx(one.score, abs=1e-5)
    assert other.box == (one.box if one.box is None else pytest.approx(one.box, abs=1e-6))


def by_hand(tool: PairTool, image: PairImage, text: str, number: int, aim: int) -> float:
    """The model itself, with the features of one region zeroed."""
    rows, types = tool.joint.rows(tool.read_text(text).readings)
    regions = seen_regions(tool.model, tool.joint.glimpse([image.sighted]))
    features = regions.features.clone()
    features[number] = 0
    of = torch.zeros(len(rows.lengths), dtype=torch.long)
    found = tool.model(rows, types, regions._replace(features=features), of)
    if len(of) > 1:
        return float(tool.model.fits(found).softmax(dim=0)[aim])
    told = {
        "answers": lambda: tool.model.answers(found)[0, aim],
        "regions": lambda: tool.model.chosen(found)[aim],
    }
    z = told.get(tool.model.config.head, lambda: tool.model.fits(found)[0])()
    return float(z.sigmoid())


@pytest.mark.slow
@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_region_is_the_model_with_its_features_zeroed(
    kind: str, regions: RegionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, image, text = pair_tool(kind, regions), scene_image(SEVERAL), worded(kind, TEXTS[1])
    (answer,) = tool.answers([image], [tool.read_text(text)])
    aim = 2 if kind == "referring" else tool.aim(answer, None)
    assert kind == "referring" or tool.with_all(image, tool.read_text(text), aim) == pytest.approx(
        answer.score, abs=1e-5
    )
    found = tool.without(image, tool.read_text(text), aim)
    with torch.no_grad():
        expected = [by_hand(tool, image, text, number, aim) for number in range(len(found))]
    assert found == pytest.approx(expected, abs=1e-5)
    assert max(found) - min(found) > 1e-4
    monkeypatch.setattr("saccade.tasks.joint.pairs.AT_ONCE", 1)  # one at a time
    again = tool.without(image, tool.read_text(text), aim)
    assert again == pytest.approx(found, abs=1e-5)


def test_answers_are_likely_each_by_itself_and_the_likeliest_come_first() -> None:
    tool = pair_tool("answering")
    (found,) = tool.answers([scene_image(0)], [tool.read_text("how many?")], best=3)
    chances = [guess.probability for guess in found.guesses]
    assert chances == sorted(chances, reverse=True)
    assert (len(chances), found.text, found.score) == (3, found.guesses[0].label, chances[0])
    (every,) = tool.answers([scene_image(0)], [tool.read_text("how many?")], best=100)
    assert {guess.label for guess in every.guesses} == set(ANSWERS.names)
    assert tool.aim(every, "Two") == ANSWERS.names.index("2")
    with pytest.raises(
        ConfigError, match=r"of='up' is no answer of this model; there are: yes, no"
    ):
        tool.aim(every, "up")
    with pytest.raises(ConfigError, match="best=0 must be at least 1"):
        tool.answers([scene_image(0)], [tool.read_text("how many?")], best=0)


@pytest.mark.parametrize("kind", ["answering", "choosing"])
@pytest.mark.parametrize("sees", ["question", "image"])
def test_a_model_that_was_trained_with_less_sees_no_more(kind: str, sees: str) -> None:
    tool = pair_tool(kind, sees=sees)
    images = [scene_image(0)._replace(sighted=scene_image(n).sighted) for n in (0, 3)]
    one, other, asked = (
        tool.answers([image], [tool.read_text(worded(kind, text))])[0].score
        for image, text in ((images[0], "a b c"), (images[1], "a b c"), (images[0], "red is ring"))
    )
    assert (one == pytest.approx(other, abs=1e-6)) == (sees == "question")
    assert (one == pytest.approx(asked, abs=1e-6)) == (sees == "image")


@pytest.mark.parametrize("regions", REGIONS)
def test_a_box_is_of_the_image_as_it_came(regions: RegionKind) -> None:
    """What the square cuts off is not cut off the boxes that were given."""
    tool = pair_tool("referring", regions)
    pixels = torch.zeros(3, 40, 120, dtype=torch.uint8)
    boxes = torch.tensor([[0.0, 0.0, 0.6, 0.5]])
    given = RegionBoxes(boxes) if regions == "boxes" else None
    image = tool.sight(pixels, given, name="wide")
    (found,) = tool.answers([image], [tool.read_text("the ring")])
    assert found.box is not None
    left, top, right, bottom = found.box
    if regions == "boxes":
        assert found.region is not None
        assert found.box == pytest.approx([(0, 0, 1, 1), (0, 0, 0.6, 0.5)][found.region])
    else:
        assert 1 / 3 - 1e-6 <= left < right <= 2 / 3 + 1e-6
        assert 0 <= top < bottom <= 1
    pixel = [left * 120, top * 40, right * 120, bottom * 40]
    assert found.text == " ".join(f"{side:.0f}" for side in pixel)
    assert found.score == max(found.chances)


def test_a_sentence_is_as_likely_as_it_fits_among_the_others() -> None:
    tool, image = pair_tool("choosing"), scene_image(SEVERAL)
    sentences = ("a red ring", "the moon", "two stars left of a cross", "a big black heart")
    (found,) = tool.answers([image], [tool.read_text("\t".join(sentences))], best=1)
    rows, types = tool.joint.rows([tool.joint.reading(one) for one in sentences])
    regions = seen_regions(tool.model, tool.joint.glimpse([image.sighted]))
    with torch.no_grad():
        z = tool.model.fits(tool.model(rows, types, regions, torch.zeros(4, dtype=torch.long)))
    expected = dict(zip(sentences, z.softmax(dim=0).tolist(), strict=True))
    assert dict(found.guesses) == {name: pytest.approx(p, abs=1e-5) for name, p in expected.items()}
    assert found.text == found.guesses[0].label == sentences[int(z.argmax())]
    assert (found.sentences, found.fits) == (sentences, None)
    assert [tool.aim(found, one) for one in sentences] == [0, 1, 2, 3]
    assert tool.aim(found, None) == sentences.index(found.text)
    with pytest.raises(ConfigError, match="of='a cat' is none of the sentences to choose from: a"):
        tool.aim(found, "a cat")
    with pytest.raises(DataError, match="'a ring' is one sentence, and there is nothing to choose"):
        tool.read_text("a ring")
    with pytest.raises(DataError, match="has no word that the model knows"):
        tool.read_text("a ring\t ")


def test_sentences_of_a_program_are_one_text_and_lists_of_them_many() -> None:
    tool = pair_tool("choosing")
    assert tool.texts(["a", "b\tc"]) == (["a\tb c"], False)
    assert tool.texts(("a", "b")) == (["a\tb"], False)
    assert tool.texts("a\tb") == (["a\tb"], False)
    assert tool.texts([["a", "b"], "c\td", ("e", "f", "g")]) == (
        ["a\tb", "c\td", "e\tf\tg"],
        True,
    )
    with pytest.raises(DataError, match="give a text, not int"):
        tool.texts([["a", 3]])


def test_blanks_are_filled_with_words_that_the_image_changes() -> None:
    tool = pair_tool("joint")
    text = tool.read_text("a ___ ring and a ___ cross")
    one, other = tool.answers([scene_image(0), scene_image(3)], [text, text])
    assert [len(some) for some in one.blanks] == [5, 5]
    assert one.blanks != other.blanks
    filled = "a {} ring and a {} cross".format(*(some[0].word for some in one.blanks))
    assert one.text == filled
    (plain,) = tool.answers([scene_image(0)], [tool.read_text("a red ring")])
    assert (plain.text, plain.blanks) == ("a red ring", ())
    assert plain.fits == plain.score


def test_what_cannot_be_read_is_refused() -> None:
    tool = pair_tool("joint")
    for text in ("red " * 60, "___ " + "red " * 60):
        with pytest.raises(DataError, match=r"the text has 6\d tokens, but the model reads 40;"):
            tool.read_text(text)
    with pytest.raises(DataError, match="has no word that the model knows; write one"):
        pair_tool("answering").read_text("  ")
    with pytest.raises(DataError, match="it has no regions, and the model looks at boxes"):
        tool.sight(torch.zeros(3, 8, 8, dtype=torch.uint8), name="it")
    with pytest.raises(ConfigError, match="of='red' names an answer, and this model gives none"):
        tool.aim(PairAnswer("", 0.5, fits=0.5), "red")

"""Using a CLIP: likeness of images and texts, one at a time or many."""

from dataclasses import replace

import pytest
import torch

from saccade.data.images.square import fit_square
from saccade.errors import DataError
from saccade.tasks.matching.tool import MatchingTool
from tests.tasks.matching.made import TINY, tool

TEXTS = ("a red circle", "a blue star above a black ring", "two crosses")


@pytest.fixture(scope="module")
def clip() -> MatchingTool:
    return tool()


def pixels(count: int, high: int = 32, wide: int = 32) -> torch.Tensor:
    rng = torch.Generator().manual_seed(1)
    return torch.randint(256, (count, 3, high, wide), generator=rng, dtype=torch.uint8)


def test_similarity_is_the_cosine_of_each_image_and_the_text(clip: MatchingTool) -> None:
    images = pixels(5)
    found = clip.similarity(images, TEXTS[1])
    assert found.shape == (5,)
    text, vectors = clip.text_vectors(TEXTS)[1], clip.image_vectors(images)
    torch.testing.assert_close(found, torch.cosine_similarity(vectors, text[None], dim=1))
    alone = torch.cat([clip.similarity(one[None], TEXTS[1]) for one in images])
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)


def test_images_of_any_size_are_made_to_fit(clip: MatchingTool) -> None:
    images = pixels(2, 48, 40)
    fitted = torch.stack([fit_square(one, 32, "crop") for one in images])
    assert torch.equal(clip.similarity(images, TEXTS[0]), clip.similarity(fitted, TEXTS[0]))
    assert torch.equal(clip.prepare(images[0]), fitted[0])


def test_so_many_at_once_make_no_difference(
    clip: MatchingTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, images = clip.text_vectors(TEXTS), clip.image_vectors(pixels(5))
    monkeypatch.setattr("saccade.tasks.matching.tool.TEXTS", 2)
    monkeypatch.setattr("saccade.tasks.matching.tool.BATCH", 2)
    torch.testing.assert_close(clip.text_vectors(TEXTS), texts)
    torch.testing.assert_close(clip.image_vectors(pixels(5)), images, atol=1e-5, rtol=1e-5)


def test_probabilities_among_texts_are_a_softmax_of_scaled_cosines(clip: MatchingTool) -> None:
    images = pixels(3)
    z = clip.model.scale.detach() * clip.image_vectors(images) @ clip.text_vectors(TEXTS).mT
    found = clip.classifier(TEXTS).probabilities(images)
    torch.testing.assert_close(found, z.softmax(dim=1), atol=1e-4, rtol=1e-3)
    named = clip.classifier(TEXTS, ("a", "b", "c"))
    assert named.classes.names == ("a", "b", "c")


def test_a_text_is_told_which_of_some_images_it_is_about(clip: MatchingTool) -> None:
    images = pixels(3)
    z = clip.model.scale.detach() * clip.image_vectors(images) @ clip.text_vectors(TEXTS).mT
    (answer,) = clip.reader(images, ("x", "y", "z")).answers([(TEXTS[0],)])
    chances = z[:, 0].softmax(dim=0)
    assert answer.text == "xyz"[int(chances.argmax())]
    assert answer.guesses[0].probability == pytest.approx(float(chances.max()), abs=1e-3)


def test_texts_that_cannot_be_read_are_refused(clip: MatchingTool) -> None:
    with pytest.raises(DataError, match="' ' has no word that the model knows; write one"):
        clip.similarity(pixels(1), " ")
    short = tool(replace(TINY, longest=5))
    with pytest.raises(DataError, match="the text has 6 tokens, but the model reads 5; shorten it"):
        short.text_vectors(["a red circle and"])
    assert clip.unknown("a red zeppelin")
    assert not clip.unknown("a red circle")

"""What is found is what a loop over all pairs finds; an image counts if it is the very one."""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.tasks.matching import retrieval
from saccade.tasks.matching.retrieval import Vectors, lenient_recalls, recalls, shared, vectors
from tests.tasks.joint.made import VALID
from tests.tasks.joint.test_retrieval import recall
from tests.tasks.matching.made import model_for, prepared

CPU = torch.device("cpu")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [2, 64])
def test_recalls_are_those_of_a_loop_over_all_pairs(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "READ", at_once)
    task: Any = prepared()
    model, data = model_for(task), task._valid
    found = vectors(model, data, task.valid_truth, CPU)
    z = torch.zeros(len(data.texts), VALID)
    with torch.no_grad():
        for text in range(len(data.texts)):
            for image in range(VALID):
                one = data.batch(torch.tensor([image]), torch.tensor([text]), torch.tensor([0]))
                z[text, image] = model(one.text, one.seen.images)[0, 0] / model.scale
    torch.testing.assert_close(found.texts @ found.images.mT, z, atol=1e-4, rtol=1e-3)
    own = data.image_of[:, None] == torch.arange(VALID)
    assert recalls(found) == {
        "image": {k: pytest.approx(recall(z, own, k)) for k in (1, 5, 10)},
        "sentence": {k: pytest.approx(recall(z.mT, own.mT, k)) for k in (1, 5, 10)},
    }


def test_the_first_images_may_be_all_that_are_searched() -> None:
    task: Any = prepared()
    model = model_for(task)
    some = vectors(model, task._valid, task.valid_truth, CPU, most=4)
    assert len(some.images) == 4
    assert len(some.texts) == int(task._valid.first[4])
    assert int(some.of.max()) == 3


def found(alike: Any, of: list[int], said: list[int]) -> Vectors:
    """Texts whose likeness to each image is known."""
    texts = torch.tensor(alike, dtype=torch.float32)
    return Vectors(texts, torch.eye(texts.shape[1]), torch.tensor(of), torch.tensor(said))


def counted(alike: Tensor, of: list[int]) -> dict[str, dict[int, float]]:
    return recalls(found(alike.tolist(), of, list(range(len(of)))))


def test_retrieval_counted_by_hand() -> None:
    # three texts, two about image 0; text 1 seems to be about image 1
    alike = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    assert counted(alike, [0, 0, 1]) == {
        "image": {1: pytest.approx(2 / 3), 5: 1.0, 10: 1.0},
        "sentence": {1: 0.5, 5: 1.0, 10: 1.0},  # image 1 finds text 1 first, which is not its own
    }


def test_an_image_of_which_the_same_was_said_counts_only_where_that_is_asked() -> None:
    # both texts say the same, and both find image 1
    some = found([[0.1, 0.9], [0.1, 0.9]], [0, 1], [0, 0])
    assert recalls(some)["image"][1] == 0.5
    assert lenient_recalls(some) == {"image": {1: 1.0, 5: 1.0, 10: 1.0}} | {
        "sentence": {1: 1.0, 5: 1.0, 10: 1.0}
    }
    assert shared(some) == 2
    assert shared(found([[0.1, 0.9], [0.1, 0.9]], [0, 1], [0, 1])) == 0

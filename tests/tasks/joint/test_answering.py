"""What a model that is blind to images or to questions learns from."""

import pytest
import torch

from tests.tasks.joint.made import model_for, prepared


@pytest.mark.parametrize("sees", ["both", "question", "image"])
def test_every_gradient_is_finite_however_little_is_seen(sees: str) -> None:
    task = prepared("answering", sees=sees)
    model = model_for(task)
    sum(task.losses(model, task.batch(0)).values()).backward()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert found
    assert all(one.isfinite().all() and one.abs().max() < 1e4 for one in found)


def test_who_sees_only_the_question_says_the_same_of_every_image() -> None:
    task = prepared("answering", sees="question")
    model, batch = model_for(task), task.batch(0)
    other = batch._replace(of=batch.of.flip(0))
    one, two = (task.losses(model, some)["answers"] for some in (batch, other))
    torch.testing.assert_close(one, two)

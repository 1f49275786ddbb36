"""The symmetric loss is the published one, and what is right is nobody's negative."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.clip.modeling_clip import image_text_contrastive_loss

from saccade.tasks.matching.losses import equally_right, matching_loss


def logits(texts: int, images: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return 4 * torch.randn(texts, images, generator=rng, dtype=torch.float64)


@given(count=st.integers(2, 7), seed=st.integers(0, 99))
def test_with_a_text_to_each_image_it_is_the_published_loss(count: int, seed: int) -> None:
    z, own = logits(count, count, seed), torch.arange(count)
    right = equally_right(own, own, count)
    found = matching_loss(z, own, right)
    torch.testing.assert_close(found, image_text_contrastive_loss(z))
    plain = (F.cross_entropy(z, own) + F.cross_entropy(z.mT, own)) / 2
    torch.testing.assert_close(found, plain)


def one_by_one(z: Tensor, of: list[int], said: list[int]) -> float:
    """Text by text: its image among those it is wrong of, and it among texts wrong of its image."""
    total = 0.0
    for text, image in enumerate(of):
        true = {(t, of[u]) for t in range(len(of)) for u in range(len(of)) if said[t] == said[u]}
        images = [image, *(i for i in range(z.shape[1]) if (text, i) not in true)]
        texts = [text, *(t for t in range(len(of)) if (t, image) not in true)]
        total -= float(z[text, images].log_softmax(0)[0] + z[texts, image].log_softmax(0)[0])
    return total / (2 * len(of))


@given(
    pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
def test_only_what_is_wrong_competes(pairs: list[tuple[int, int]], seed: int) -> None:
    of, words = [image for image, _ in pairs], [word for _, word in pairs]
    said = [words.index(word) for word in words]
    z = logits(len(of), 4, seed).requires_grad_()
    right = equally_right(torch.tensor(of), torch.tensor(said), 4)
    loss = matching_loss(z, torch.tensor(of), right)
    assert loss.item() == pytest.approx(one_by_one(z.detach(), of, said), abs=1e-9)
    loss.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    own = F.one_hot(torch.tensor(of), 4).bool()
    assert z.grad[right & ~own].eq(0).all()  # what says the same of another is left alone


def test_who_has_nothing_to_be_told_from_has_no_loss_and_a_finite_gradient() -> None:
    z, of = logits(2, 1).requires_grad_(), torch.zeros(2, dtype=torch.long)
    loss = matching_loss(z, of, equally_right(of, torch.arange(2), 1))
    loss.backward()
    assert loss.item() == pytest.approx(0)
    assert z.grad is not None
    assert z.grad.eq(0).all()

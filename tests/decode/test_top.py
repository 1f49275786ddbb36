"""The best words of a row: against sorting all of them."""

import pytest
import torch

from saccade.decode.top import CHUNK, best_continuations, best_of, top


@pytest.mark.parametrize("count", [1, 4, 10])
@pytest.mark.parametrize("words", [7, 300, 64 * CHUNK])
def test_finds_the_best_words_and_the_sum_over_all(words: int, count: int) -> None:
    logits = 5 * torch.randn(6, words, generator=torch.Generator().manual_seed(words))
    found, expected = top(logits, count), logits.sort(dim=-1, descending=True)
    most = min(count, words)
    assert torch.equal(found.scores, expected.values[:, :most])
    assert torch.equal(found.words, expected.indices[:, :most])
    torch.testing.assert_close(found.total, logits.logsumexp(dim=-1))


def test_the_best_words_may_all_lie_in_one_chunk() -> None:
    logits = torch.randn(2, 64 * CHUNK)
    logits[:, 5 * CHUNK : 5 * CHUNK + 10] += 100
    assert torch.equal(top(logits, 10).words.sort().values[0], torch.arange(10) + 5 * CHUNK)


@pytest.mark.parametrize("words", [7, 64 * CHUNK])
def test_continuations_of_all_beams_are_ranked_together(words: int) -> None:
    rng = torch.Generator().manual_seed(0)
    logits, log_p = torch.randn(6, words, generator=rng), -torch.rand(2, 3, generator=rng)
    total = (log_p.flatten()[:, None] + logits.log_softmax(dim=-1)).view(2, -1)
    expected = total.sort(dim=-1, descending=True)
    for found in (best_continuations(logits, log_p, 6), best_of(top(logits, 6), log_p, 6)):
        torch.testing.assert_close(found.log_p, expected.values[:, :6])
        assert torch.equal(found.parents * words + found.words, expected.indices[:, :6])

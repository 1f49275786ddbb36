"""One word after another: against recomputing everything, and by the laws of a batch."""

from typing import Any

import pytest
import torch

from saccade.config import ModelConfig
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.greedy import most_probable
from saccade.decode.protocol import Candidate
from tests.models.zoo import LANGUAGE, LENGTHS, SOURCE, TRANSLATORS, begin, build, features

from .toy import Toy, extend

END, START = OURS.end, OURS.start

LIMITS = torch.tensor([7, 3, 5])
FIRST = torch.full((3,), START)
MODELS = {**TRANSLATORS, **LANGUAGE}


def by_recomputation(model: Any, row: int, limit: int) -> list[int]:
    """Run the whole model on all words so far, for every word."""
    source, lengths = SOURCE[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1]
    said = [START]
    while len(said) <= limit:
        known = features(model, torch.tensor([said]), source, lengths)
        said.append(int(model.output(known[:, -1]).argmax()))
        if said[-1] == END:
            return said[1:-1]
    return said[1:]


@pytest.mark.slow
@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_equals_recomputing_everything_for_every_word(config: ModelConfig) -> None:
    model = build(config)
    found = extend(model, begin(model), FIRST, limits=LIMITS)
    with torch.no_grad():
        expected = [by_recomputation(model, row, int(LIMITS[row])) for row in range(3)]
    assert [one.tokens for one in found] == expected


@pytest.mark.parametrize("seed", range(5))
def test_takes_the_most_probable_word_each_time_and_adds_up(seed: int) -> None:
    toy, limits = Toy.draw(4, seed=seed), torch.tensor([8, 1, 5, 3])
    for sentence, one in enumerate(extend(toy, *toy.start(), limits=limits)):
        words: tuple[int, ...] = ()
        total = 0.0
        while len(words) < limits[sentence] and END not in words:
            log_p = toy.log_p(sentence, words)
            words = (*words, max(range(len(log_p)), key=log_p.__getitem__))
            total += max(log_p)
        assert one.finished == (END in words)
        assert one.tokens == [word for word in words if word != END]
        assert one.log_probability == pytest.approx(total, abs=1e-5)
        assert one.score == one.log_probability


def saying(sentences: list[list[int]]) -> Toy:
    """A toy that says just these words, for as long as it is asked."""
    toy = Toy.draw(len(sentences), seed=0)
    for i, words in enumerate(sentences):
        for t, word in enumerate(words):
            toy.scores[i, t, :, :, word] = 50.0
    return toy


def test_finished_rows_leave_the_batch() -> None:
    toy = saying([[END], [3, 4, END], [4, 4, 4, 4, 4]])
    found = extend(toy, *toy.start(), limits=torch.tensor([9, 9, 4]))
    assert [one.tokens for one in found] == [[], [3, 4], [4, 4, 4, 4]]
    assert [one.finished for one in found] == [True, True, False]
    assert toy.rows_seen == [3, 2, 2, 1]


def test_a_row_that_ends_at_its_limit_has_ended() -> None:
    toy = saying([[3, END]])
    (one,) = extend(toy, *toy.start(), limits=torch.tensor([2]))
    assert one.tokens == [3]
    assert one.finished


def test_words_of_an_unfinished_row_are_as_many_as_its_limit_whatever_they_are() -> None:
    toy = saying([[3, 0, 4, 0, 3], [0, 0, END]])
    one, two = extend(toy, *toy.start(), limits=torch.tensor([4, 8]))
    assert one.tokens == [3, 0, 4, 0]
    assert two.tokens == [0, 0]


def test_a_batch_says_what_its_rows_say_alone() -> None:
    toy = Toy.draw(6, seed=3)
    limits = torch.tensor([8, 2, 5, 7, 1, 6])
    together = extend(toy, *toy.start(), limits=limits)
    for i, one in enumerate(together):
        alone = Toy(toy.scores[i : i + 1])
        assert extend(alone, *alone.start(), limits=limits[i : i + 1]) == [one]


@pytest.mark.parametrize("vocabulary", [3, 512])
def test_the_most_probable_word_is_the_one_with_the_highest_score(vocabulary: int) -> None:
    logits = torch.randn(5, vocabulary, generator=torch.Generator().manual_seed(0))
    words, log_p = most_probable(logits)
    expected = logits.log_softmax(dim=-1).max(dim=-1)
    assert torch.equal(words, expected.indices)
    torch.testing.assert_close(log_p, expected.values)


def test_a_row_that_nobody_waits_for_leaves_the_batch_and_the_others_stay() -> None:
    toy, limits = Toy.draw(2), torch.tensor([5, 5])
    toy.scores[..., END] = -50.0
    whole = extend(toy, *toy.start(), limits=limits)
    heard: list[dict[int, list[Candidate]]] = []

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        heard.append(step)
        return [0] if len(heard) == 2 else []

    found = extend(toy, *toy.start(), limits=limits, on_step=tell)
    assert found[1] == whole[1]
    assert found[0].tokens == whole[0].tokens[:2]
    assert [step[1][0].token for step in heard] == whole[1].tokens
    assert [sorted(step) for step in heard] == [[0, 1], [0, 1], [1], [1], [1]]

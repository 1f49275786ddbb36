"""One door to every way of decoding."""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.engine import Decoding, decode
from saccade.decode.search import search
from saccade.errors import ConfigError

from .toy import Toy, extend

END = OURS.end

LIMITS = torch.tensor([8, 1, 5, 3])


def decoded(
    toy: Toy, *, limits: Tensor = LIMITS, streams: list[int] | None = None, **options: Any
) -> list[list[list[int]]]:
    how = Decoding(**options)
    found = decode(toy, *toy.start(), limits=limits, end=END, how=how, streams=streams)
    return [[one.tokens for one in hypotheses] for hypotheses in found]


def test_a_beam_of_one_is_greedy() -> None:
    toy = Toy.draw(4)
    expected = [[one.tokens] for one in extend(toy, *toy.start(), limits=LIMITS)]
    assert decoded(toy, beam=1) == expected


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_wider_beam_gives_back_the_best_of_its_search(n_best: int) -> None:
    toy, beam = Toy.draw(4), Beam(size=4, length_penalty=0.6)
    many = search(toy, *toy.start(), limits=LIMITS, end=END, method=beam)
    expected = [[one.tokens for one in found[:n_best]] for found in many]
    assert decoded(toy, beam=4, length_penalty=0.6, n_best=n_best) == expected


@pytest.mark.parametrize("beam", [1, 3])
def test_any_word_may_be_the_one_that_ends(beam: int) -> None:
    toy, how = Toy.draw(4, seed=3), Decoding(beam=beam, n_best=beam)
    swap = torch.tensor([0, 1, 4, 3, 2])  # END and another word change their numbers
    swapped = Toy(toy.scores[..., swap, :, :][..., swap, :][..., swap])
    found = decode(swapped, *swapped.start(), limits=LIMITS, end=4, how=how)
    tokens = [[swap[one.tokens].tolist() for one in hypotheses] for hypotheses in found]
    assert tokens == decoded(toy, beam=beam, n_best=beam)


def test_sampling_draws_the_same_for_a_seed_and_otherwise_for_another() -> None:
    toy = Toy.draw(4)
    assert decoded(toy, sample=True, seed=1) == decoded(toy, sample=True, seed=1)
    assert decoded(toy, sample=True, seed=1) != decoded(toy, sample=True, seed=2)
    assert decoded(toy, sample=True, seed=-1) != decoded(toy, sample=True, seed=1)


def test_careful_sampling_is_greedy() -> None:
    toy = Toy.draw(4)
    greedy = decoded(toy, beam=1)
    assert decoded(toy, sample=True, top_k=1) == greedy
    assert decoded(toy, sample=True, temperature=1e-4) == greedy
    assert decoded(toy, sample=True, top_p=1e-6) == greedy


@pytest.mark.parametrize("stream", [0, 2])
def test_what_a_row_draws_does_not_depend_on_the_rows_beside_it(stream: int) -> None:
    toy = Toy.draw(4, seed=2)
    together = decoded(toy, sample=True, streams=[stream] * 4)
    for i, expected in enumerate(together):
        alone, limits = Toy(toy.scores[i : i + 1]), LIMITS[i : i + 1]
        assert decoded(alone, limits=limits, sample=True, streams=[stream]) == [expected]
    same = Toy(toy.scores[:1].expand(4, -1, -1, -1, -1))
    assert len({str(words) for words in decoded(same, sample=True)}) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam=0 must be from 1 to 1000"),
        ({"beam": 1001}, "beam=1001 must be from 1 to 1000"),
        ({"beam": 3, "n_best": 4}, "n_best=4 must be from 1 to beam=3"),
        ({"n_best": 0}, "n_best=0 must be from 1 to beam=5"),
        (
            {"sample": True, "n_best": 2},
            "n_best needs a beam; to sample several, ask several times",
        ),
        ({"length_penalty": -1.0}, "length_penalty=-1.0 must be 0 or more"),
        ({"temperature": 0.0}, "temperature=0.0 must be above 0; for the best word give top_k=1"),
        ({"top_k": -2}, r"top_k=-2 must be 0 \(no cut\) or more"),
        ({"top_p": 2.0}, "top_p=2.0 must be above 0 and at most 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Decoding(**options)

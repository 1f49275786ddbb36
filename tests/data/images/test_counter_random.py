"""Random numbers by address: no state, no pattern, the published mixing."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.images.counter_random import GAMMA, mix, uniform, uniform_at, uniforms

key = st.integers(0, 2**63 - 1)


def test_the_mixing_is_that_of_splitmix64() -> None:
    """The first outputs for the seed 1234567, as published with the algorithm."""
    states = np.uint64(1234567) + GAMMA * np.arange(1, 4, dtype=np.uint64)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mix(states).tolist() == published


@given(
    seed=st.integers(-5, 2**64), epoch=key, index=st.lists(key, min_size=1, max_size=9), stream=key
)
def test_an_example_has_its_numbers_in_any_company(
    seed: int, epoch: int, index: list[int], stream: int
) -> None:
    together = uniform(torch.tensor(index), 5, seed=seed, epoch=epoch, stream=stream)
    for row, alone in zip(together, index):
        found = uniform(torch.tensor([alone]), 7, seed=seed, epoch=epoch, stream=stream)
        assert torch.equal(row, found[0, :5])
    assert ((together >= 0) & (together < 1)).all()


@given(places=st.lists(st.tuples(key, st.integers(0, 8)), max_size=9), seed=key, epoch=key)
def test_a_number_can_be_asked_for_by_its_place(
    places: list[tuple[int, int]], seed: int, epoch: int
) -> None:
    address = {"seed": seed, "epoch": epoch, "stream": 5}
    index, place = torch.tensor(places, dtype=torch.long).view(-1, 2).T
    rows = uniform(index, 9, **address)
    assert torch.equal(uniform_at(index, place, **address), rows[range(len(places)), place])


def step_by_step(seed: int, epoch: int, index: int, stream: int, place: int) -> float:
    """The formula at the head of the module, in Python's own numbers."""
    h, word = 0, (1 << 64) - 1
    for key in (seed, epoch, index, stream, place):
        h = (h + ((key & word) + 1) * int(GAMMA)) & word
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & word
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & word
        h ^= h >> 31
    return (h >> 40) / 2**24


@given(
    seed=st.integers(-5, 2**64),
    epoch=key,
    index=st.lists(key, min_size=1, max_size=3),
    counts=st.dictionaries(key, st.integers(0, 3), max_size=3),
)
def test_many_streams_are_each_as_its_formula_says(
    seed: int, epoch: int, index: list[int], counts: dict[int, int]
) -> None:
    found = uniforms(torch.tensor(index), counts, seed=seed, epoch=epoch)
    places = [(stream, place) for stream, count in counts.items() for place in range(count)]
    expected = [[step_by_step(seed, epoch, i, *place) for place in places] for i in index]
    assert found.shape == (len(index), len(places))
    assert found.tolist() == expected


def test_each_part_of_the_address_matters() -> None:
    index = torch.arange(4)
    base = uniform(index, 4, seed=0, epoch=0, stream=0)
    others = [
        uniform(index, 4, seed=1, epoch=0, stream=0),
        uniform(index, 4, seed=0, epoch=1, stream=0),
        uniform(index, 4, seed=0, epoch=0, stream=1),
        uniform(index + 4, 4, seed=0, epoch=0, stream=0),
    ]
    every = torch.cat([base, *others]).flatten()
    assert len(every.unique()) == len(every)


def test_the_numbers_are_even_and_unrelated() -> None:
    u = uniform(torch.arange(40_000), 4, seed=3, epoch=2, stream=1).double()
    later = uniform(torch.arange(40_000), 4, seed=3, epoch=3, stream=1).double()
    counts = torch.histc(u, bins=64, min=0, max=1)
    expected = u.numel() / 64
    chi_squared = ((counts - expected) ** 2 / expected).sum()  # 63 degrees of freedom
    assert 25 < chi_squared < 120
    related = torch.corrcoef(torch.cat([u, later], dim=1).T) - torch.eye(8)
    assert related.abs().max() < 0.025
    neighbours = torch.corrcoef(torch.stack([u[:-1, 0], u[1:, 0]]))
    assert neighbours[0, 1].abs() < 0.025

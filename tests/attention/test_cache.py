"""A cache gives back all that it was given, row by row and beam by beam."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from saccade.attention.cache import KeyValues, Lineage, followed


def test_appending_piece_by_piece_returns_everything_so_far() -> None:
    torch.manual_seed(0)
    keys, values = torch.randn(2, 3, 40, 4), torch.randn(2, 3, 40, 4)
    cache = KeyValues.empty(torch.empty(2, 0), heads=3, width=4)
    end = 0
    for piece in (1, 1, 5, 1, 20, 12):  # past 16 and 32: the room is enlarged twice
        fresh = slice(end, end + piece)
        end += piece
        k, v = cache.write(keys[:, :, fresh], values[:, :, fresh])
        assert torch.equal(k, keys[:, :, :end])
        assert torch.equal(v, values[:, :, :end])
    assert cache.length == 40


def test_selected_rows_are_copies_that_go_their_own_way() -> None:
    torch.manual_seed(0)
    cache = KeyValues.empty(torch.empty(2, 0), heads=1, width=2)
    first = torch.randn(2, 1, 3, 2)
    cache.write(first, first)
    twice = cache.select(torch.tensor([1, 1, 0]))
    more = torch.randn(3, 1, 1, 2)
    k, v = twice.write(more, -more)
    expected = torch.cat([first[[1, 1, 0]], more], dim=2)
    assert torch.equal(k, expected)
    assert torch.equal(v[:, :, :3], expected[:, :, :3])
    assert torch.equal(v[:, :, 3:], -more)
    assert cache.length == 3


def by_beam(pool: Tensor, entries: Tensor) -> Tensor:
    """What each beam sees of its sentence's pool, as if it had rows of its own."""
    rows = [pool[b][:, own] for b, beams in enumerate(entries) for own in beams]
    return torch.stack(rows)


def wander(beams: int, prompt: int, seed: int) -> tuple[list[tuple[Tensor, Tensor]], list[int]]:
    """Beams that follow random parents: what each sees beside what copied rows would see."""
    rng = torch.Generator().manual_seed(seed)
    cache = KeyValues.empty(torch.empty(2, 0), heads=2, width=3)
    if prompt:
        read = torch.randn(2, 2, prompt, 3, generator=rng)
        cache.write(read, -read)
    lineage = Lineage.parting(2, beams, prompt, torch.device("cpu"))
    shared = cache.led_by(lineage)
    copied = cache.select(torch.arange(2).repeat_interleave(beams))
    seen, sizes = list[tuple[Tensor, Tensor]](), list[int]()
    for step in range(1, 40):
        new = torch.randn(2 * beams, 2, 1, 3, generator=rng)
        own = lineage.grown(shared.length + beams)  # (B, k, T): the entries of each beam
        by_sentence = new[:, :, 0].unflatten(0, (2, beams)).transpose(1, 2)
        pools = shared.write(by_sentence, -by_sentence)
        seen += zip((by_beam(pool, own) for pool in pools), copied.write(new, -new))
        sizes.append(shared.length)
        # Mostly the best beam has children, so that lines die out as they do in a search.
        parents = torch.randint(beams, (2, beams), generator=rng) // 2
        lineage, kept = followed(lineage, parents, shared.length, step)
        shared = shared.led_by(lineage, kept)
        copied = copied.select((parents + beams * torch.arange(2)[:, None]).flatten())
    return seen, sizes


@pytest.mark.parametrize("prompt", [0, 3])
@pytest.mark.parametrize("beams", [2, 5])
def test_beams_that_share_a_pool_see_what_copied_rows_would_see(beams: int, prompt: int) -> None:
    seen, _ = wander(beams, prompt, seed=beams)
    assert all(torch.equal(shared, copied) for shared, copied in seen)


def test_a_pool_lets_go_of_what_no_beam_remembers() -> None:
    _, sizes = wander(5, 0, seed=0)
    assert max(sizes) < 5 * 39 / 2
    assert any(after < before for before, after in pairwise(sizes))


def test_the_mask_of_a_pool_shows_each_beam_its_own_past_and_its_newest_entry() -> None:
    lineage = Lineage(torch.tensor([[[0, 1, 4], [0, 2, 3]]]))
    assert lineage.mask(7)[0].int().tolist() == [[1, 1, 0, 0, 1, 1, 0], [1, 0, 1, 1, 0, 0, 1]]

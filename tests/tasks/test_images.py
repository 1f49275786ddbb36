"""What identifies pictures: every pixel and their order, and not how they are kept."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.images.cache import CacheSettings, image_cache
from saccade.data.images.members import Member
from saccade.errors import ConfigError
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.images import cache_folder, digest, keep_in
from tests.data.images_made import picture


def pictures(seed: int, count: int = 7) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count, 3, 4, 4), generator=rng, dtype=torch.uint8)


@given(seed=st.integers(0, 99), place=st.integers(0, 7 * 48 - 1))
def test_any_pixel_and_the_order_make_a_difference(seed: int, place: int) -> None:
    some = pictures(seed)
    changed = some.clone()
    changed.view(-1)[place] ^= 1
    assert digest(some) == digest(some.clone())
    assert len({digest(some), digest(changed), digest(some.flip(0)), digest(some[:-1])}) == 4


def test_a_choice_is_other_pictures_than_another() -> None:
    whole = Captioned(pictures(1), [("x",)] * 7, "")
    some = [
        whole.only(torch.tensor(numbers), "").images for numbers in ([0, 1], [1, 0], [0, 2], [0])
    ]
    assert len({digest(one) for one in (whole.images, *some)}) == 5
    assert digest(whole.only(torch.tensor([0, 1]), "").images) == digest(some[0])


def test_a_cache_is_what_is_in_it_wherever_it_came_from(tmp_path: Path) -> None:
    made: list[str] = []
    for folder, seeds in (("a", (0, 1)), ("b", (0, 1)), ("c", (1, 0)), ("d", (0, 2))):
        (tmp_path / folder).mkdir()
        members = list[Member]()
        for number, seed in enumerate(seeds):
            path = tmp_path / folder / f"{folder}{number}.png"
            path.write_bytes(picture(seed))
            members.append(Member.of(path))
        cache = image_cache(members, tmp_path / "kept", settings=CacheSettings(size=6))
        made.append(digest(cache))
    assert made[0] == made[1]
    assert len(set(made)) == 3


def test_what_is_kept_lies_where_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "one"))
    keep_in("")
    assert cache_folder() == tmp_path / "one"
    monkeypatch.chdir(tmp_path)
    keep_in("two")
    assert cache_folder() == tmp_path / "two"
    (tmp_path / "file").write_text("")
    for wrong in ("file", "file/below", "\0"):
        with pytest.raises(ConfigError, match=r"^--cache .* is no folder; name one, or a new one$"):
            keep_in(wrong)

"""Numbers that are kept: computed once, whole or not there, and made anew where damaged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.batching.kept_rows import KeptRows, Rows, kept_rows


class Counted:
    """Some parts, and how often they were computed."""

    def __init__(self, *parts: Rows) -> None:
        self.parts, self.times = parts, 0

    def __call__(self) -> Iterator[Rows]:
        self.times += 1
        yield from self.parts


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


PARTS = (
    {"a": numbers(3, 2), "b": torch.arange(4)},
    {"a": numbers(0, 2), "b": torch.arange(2)},
    {"a": numbers(2, 2, seed=1), "b": torch.arange(0)},
)


def kept(folder: Path, make: Counted, key: str = "k") -> KeptRows:
    return kept_rows(folder, "numbers", key, make)


def test_rows_lie_end_to_end_and_are_computed_once(tmp_path: Path) -> None:
    make = Counted(*PARTS)
    for _ in range(2):
        rows = kept(tmp_path / "new", make)
        assert torch.equal(rows.all("a"), torch.cat([part["a"] for part in PARTS]))
        assert rows.all("b").tolist() == [0, 1, 2, 3, 0, 1]
        assert torch.equal(rows.take("a", torch.tensor([4, 0])), rows.all("a")[[4, 0]])
        assert rows.count("b") == 6
    assert make.times == 1
    rows = kept(tmp_path / "new", make)
    rows.all("a").zero_()  # a copy
    assert rows.all("a").any()


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    dtype=st.sampled_from(["f", "d", "l"]),
)
def test_whatever_was_written_is_read(
    sizes: list[int], dtype: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kind = {"f": torch.float32, "d": torch.float64, "l": torch.int64}[dtype]
    parts = [{"x": (100 * numbers(n, 3, seed=n)).to(kind)} for n in sizes]
    rows = kept(tmp_path_factory.mktemp("kept"), Counted(*parts))
    assert rows.all("x").dtype == kind
    assert torch.equal(rows.all("x"), torch.cat([part["x"] for part in parts]))


def test_another_key_is_another_folder(tmp_path: Path) -> None:
    make = Counted(*PARTS)
    kept(tmp_path, make)
    kept(tmp_path, make, "other")
    assert make.times == 2
    kept(tmp_path, make)
    assert make.times == 2


@pytest.mark.parametrize("how", ["flipped", "short", "gone", "index", "empty"])
def test_what_is_damaged_is_made_anew(how: str, tmp_path: Path) -> None:
    make = Counted(*PARTS)
    kept(tmp_path, make)
    (path,) = tmp_path.glob("numbers-*/a.rows")
    raw = bytearray(path.read_bytes())
    match how:
        case "flipped":
            raw[5] ^= 1
            path.write_bytes(raw)
        case "short":
            path.write_bytes(raw[:-8])
        case "gone":
            path.unlink()
        case "index":
            index = path.with_name("index.json")
            index.write_bytes(index.read_bytes().replace(b"3", b"4"))
        case _:
            path.with_name("index.json").write_bytes(b"")
    rows = kept(tmp_path, make)
    assert make.times == 2
    assert torch.equal(rows.all("a"), torch.cat([part["a"] for part in PARTS]))


def test_who_is_stopped_while_computing_leaves_nothing_that_counts(tmp_path: Path) -> None:
    def fails() -> Iterator[Rows]:
        yield PARTS[0]
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        kept_rows(tmp_path, "numbers", "k", fails)
    assert not list(tmp_path.glob("numbers-*/*"))
    make = Counted(*PARTS)
    assert kept(tmp_path, make).count("a") == 5
    assert make.times == 1

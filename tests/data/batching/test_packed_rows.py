"""Packed rows are the rows that were packed, wherever one looks, in a fraction of their memory."""

import sys
import threading
from operator import attrgetter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.packed_rows import BLOCK, PackedRows, Repeats, RowParts, SomeRows
from saccade.data.images.members import Member
from saccade.data.objects import NamedBox, ObjectRows
from saccade.data.readers.images.rows import ImageRow


def image_row(number: int) -> ImageRow:
    name = f"/data/photos/images/{number:012d}.jpg"
    member = Member(Path(name), name, 20_000 + number * 7919 % 10_000, 10**18 + number * 10**7)
    captions = tuple(f"a dog number {number * 31 % 997} runs, said {one}" for one in range(5))
    return ImageRow(member, captions, {"id": number}, "metadata.jsonl", number + 1)


@given(count=st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 2]))
def test_they_are_what_was_packed_in_order_and_by_number(count: int) -> None:
    rows = [("row", str(number)) for number in range(count)]
    packed = PackedRows(iter(rows))
    assert len(packed) == count
    assert list(packed) == rows
    assert [packed[number] for number in reversed(range(count))] == rows[::-1]
    assert packed[-3:] == rows[-3:]
    assert bool(packed) == bool(rows)


@pytest.mark.parametrize("place", [5, -6])
def test_what_is_not_there_is_an_index_error(place: int) -> None:
    with pytest.raises(IndexError):
        PackedRows("abcde")[place]


def test_images_with_five_captions_take_less_than_200_bytes_each() -> None:
    count = 2000
    packed = PackedRows(map(image_row, range(count)))
    taken = sum(map(sys.getsizeof, vars(packed)["_blocks"]))
    assert taken < 200 * count
    assert packed[1234] == image_row(1234)
    assert packed[1234].line == 1235


def test_parts_and_choices_are_those_of_the_rows() -> None:
    rows = list(map(image_row, range(300)))
    numbers = torch.tensor([299, 0, 7, 7])
    captions = RowParts(PackedRows(rows), attrgetter("captions"))
    assert list(captions) == [row.captions for row in rows]
    chosen = SomeRows(captions, numbers)
    assert list(chosen) == [rows[number].captions for number in numbers.tolist()]
    assert chosen[0] == rows[299].captions
    assert len(SomeRows(chosen, torch.tensor([1]))) == 1


def test_threads_may_ask_at_once() -> None:
    packed, wrong = PackedRows(range(20 * BLOCK)), list[int]()

    def ask(first: int) -> None:
        for number in range(first, len(packed), 37):
            if packed[number] != number:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Alike(int):
    """Numbers that all have one hash."""

    def __hash__(self) -> int:
        return 1


@given(rows=st.lists(st.integers(0, 5)), alike=st.booleans())
def test_repeats_are_those_that_a_set_would_find(rows: list[int], alike: bool) -> None:
    given = [Alike(row) for row in rows] if alike else rows
    repeats = Repeats[int]()
    assert list(repeats.watch(given)) == given
    assert repeats.among(given) == len(given) - len(set(given))


def test_objects_of_images_are_equal_where_each_box_and_class_is() -> None:
    box = NamedBox("cat", 0, 0, 0.5, 0.5)
    one, same = (ObjectRows.of([(box,), ()], ["cat"]) for _ in range(2))
    assert one == same
    assert one != ObjectRows.of([(), (box,)], ["cat"])
    assert one != [box]

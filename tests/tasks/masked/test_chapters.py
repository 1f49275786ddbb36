"""Hidden words of a corpus in chapters: room is made for those of all."""

from functools import partial
from typing import Any

import pytest
import torch

from saccade.data.batching.batches import Batches
from saccade.data.batching.mixed import MixedBatches
from saccade.tasks import chapters
from saccade.tasks.chapters import ChapteredBatches
from saccade.tasks.masked.batch import MaskedBatches, MaskedRows
from saccade.tasks.masked.framed import TextRows
from tests.tasks.masked.test_masking import FIRST_WORD, MASKING, ONE, UNKNOWN, lines_of

STRETCH = 4
FEW = [FIRST_WORD] + [UNKNOWN] * 39  # one word may be hidden, of forty
MANY = [FIRST_WORD] * 40


@pytest.mark.parametrize("make", [Batches.of_lengths, MixedBatches.of_lengths])
def test_hidden_words_have_room_in_batches_of_every_chapter(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapters, "CHAPTER_ROWS", 2 * STRETCH)
    monkeypatch.setattr(chapters, "STRETCH", STRETCH)
    texts = ([FEW] * STRETCH + [MANY] * STRETCH) * 2  # by chapters
    lines = lines_of(texts)
    rows = MaskedRows(
        lines=lines,
        read=partial(TextRows.singles, lines, ONE),
        masking=MASKING,
        longest=60,
        count=len(texts),
        tokens=0,
    )
    batches = ChapteredBatches(rows, make, budget=8 * 42, seed=0)
    assert batches.chapters == 2
    data = MaskedBatches(rows, batches)
    made = [data.at(position) for position in range(len(data))]
    assert {len(batch.at) for batch in made} == {8, 48}
    assert len({batch.slots for batch in made}) == 1, "one shape, one number of slots"
    for batch in made:
        assert len(batch.at) <= batch.slots
    assert int(batches.counts["hidden"].sum()) == sum(len(batch.at) for batch in made)
    assert torch.equal(made[0].filled().at[: len(made[0].at)], made[0].at)

"""The same words as Hugging Face's `generate`, from the same GPT-2 weights."""

import pytest
import torch

from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.greedy import Greedy
from saccade.decode.search import search
from tests.models.text.test_gpt import hugging_face, twin

END, PAD = OURS.end, OURS.pad

FIRST = torch.arange(4, 16)
LIMITS = torch.full((12,), 14)
COMMON = {"max_new_tokens": 14, "do_sample": False, "eos_token_id": END, "pad_token_id": PAD}


def words(row: list[int]) -> list[int]:
    return row[1 : row.index(END)] if END in row else row[1:]


def test_greedy_says_what_hugging_face_says() -> None:
    theirs = hugging_face()
    model = twin(theirs)
    found = search(model, model.start(12), FIRST, limits=LIMITS, end=END, method=Greedy())
    mask = torch.ones(12, 1, dtype=torch.long)
    said = theirs.generate(FIRST[:, None], attention_mask=mask, **COMMON)
    assert [one.tokens for (one,) in found] == [words(row) for row in said.tolist()]


@pytest.mark.parametrize("size", [2, 4])
def test_a_beam_without_length_penalty_says_what_hugging_face_says(size: int) -> None:
    theirs = hugging_face()
    with torch.no_grad():  # its end is a common word
        theirs.transformer.wte.weight[END] *= 2.5
    model = twin(theirs)
    beam = Beam(size=size, length_penalty=0.0)
    found = search(model, model.start(12), FIRST, limits=LIMITS, end=END, method=beam)
    mask = torch.ones(12, 1, dtype=torch.long)
    said = theirs.generate(
        FIRST[:, None], attention_mask=mask, num_beams=size, length_penalty=0.0, **COMMON
    ).tolist()
    # Where nothing ended in time, Hugging Face ranks otherwise: we put ends before the rest.
    ended = [i for i, row in enumerate(said) if END in row and found[i][0].finished]
    assert len(ended) >= 6
    assert [found[i][0].tokens for i in ended] == [words(said[i]) for i in ended]
    assert len({len(found[i][0].tokens) for i in ended}) > 1

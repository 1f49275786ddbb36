"""Text models with Hugging Face's weights compute what theirs do, forwards and backwards."""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.models.names import LIBRARIES
from saccade.models.names.table import to_ours, to_theirs
from tests.models.names.counterparts import SIZES, TWINS

# In double precision; but Marian's table of positions has been rounded to float32.
NEAR = {"rtol": 1e-7, "atol": 1e-9}
ROUNDED = {"rtol": 1e-5, "atol": 1e-5}


def near(name: str) -> dict[str, float]:
    return ROUNDED if "marian" in name else NEAR


each_twin = pytest.mark.parametrize("name", TWINS)
each_size = pytest.mark.parametrize("sizes", SIZES, ids=["even", "other"])


@each_size
@each_twin
@torch.no_grad()
def test_both_say_the_same_of_texts_of_unequal_lengths(name: str, sizes: dict[str, int]) -> None:
    twin = TWINS[name]
    theirs, ours = twin.built(sizes)
    expected, found = twin.their_scores(theirs), twin.ask_ours(ours)
    assert len(found) == len(expected)
    for one, two in zip(found, expected):
        assert two.std() > 0.1
        torch.testing.assert_close(one, two, **near(name))


def weighed(scores: list[Tensor]) -> Tensor:
    """A number to which every score matters, each in its own way."""
    draws = torch.Generator().manual_seed(7)
    parts = [(x * torch.randn(x.shape, generator=draws, dtype=x.dtype)).sum() for x in scores]
    return torch.stack(parts).sum()


@each_size
@each_twin
def test_a_step_of_training_would_change_all_weights_alike(
    name: str, sizes: dict[str, int]
) -> None:
    twin = TWINS[name]
    theirs, ours = twin.built(sizes)
    weighed(twin.their_scores(theirs)).backward()
    weighed(twin.ask_ours(ours)).backward()
    slopes = {key: parameter.grad for key, parameter in ours.named_parameters()}
    assert all(slope is not None for slope in slopes.values())
    names = LIBRARIES[type(ours)][twin.library]
    found: dict[str, Any] = to_theirs(names, slopes)  # type: ignore[arg-type]
    expected = {key: x.grad for key, x in theirs.named_parameters() if x.requires_grad}
    unused = {key for key, slope in expected.items() if slope is None}  # a pooler nobody reads
    assert all("pooler" in key for key in unused)
    for key in expected.keys() - unused:
        torch.testing.assert_close(
            found.pop(key), expected[key], **near(name), msg=lambda m, key=key: f"{key} {m}"
        )
    assert all(key == "final_logits_bias" for key in found)  # which they do not train


@each_twin
def test_in_then_out_then_in_again_is_the_same_to_the_last_bit(name: str) -> None:
    twin = TWINS[name]
    theirs, ours = twin.built(SIZES[1])
    names, state = LIBRARIES[type(ours)][twin.library], ours.state_dict()
    out = to_theirs(names, state)
    given = theirs.state_dict()
    assert all(torch.equal(out[key], given[key]) for key in out)
    back = to_ours(names, out, state)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[key], state[key]) for key in state)

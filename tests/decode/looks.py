"""Two looks are the same: each thing that is kept agrees."""

import torch

from saccade.attention.look.glance import Glance


def same_look(one: Glance, other: Glance) -> None:
    """Maps are not compared: a look that grew word by word has none."""
    kept, expected = one.tensors(), other.tensors()
    assert set(expected) - set(kept) <= {"mean_map", "max_map"}
    for name, value in kept.items():
        if name in ("top_weights", "top_places"):  # there was less to see for the first words
            value, expected[name] = (x[..., : value.shape[-1]] for x in (value, expected[name]))
        if name in ("top_places", "where"):  # which of two equal weights comes first is open
            continue
        torch.testing.assert_close(value, expected[name], atol=1e-12, rtol=0, equal_nan=True)

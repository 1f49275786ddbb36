"""A model without the memory of its weights has their names and sizes, and costs nothing."""

import subprocess
import sys
import time

import pytest

from saccade.models import PRESETS
from saccade.models.outline import outline

NAMES = ["gpt2", "transformer-base", "rnn-lm-nano", "show-attend-tell", "conv-seq2seq-small"]


@pytest.mark.parametrize("name", [*NAMES, "vit-nano"])
def test_an_outline_has_the_parameters_of_the_model(name: str) -> None:
    begun = time.monotonic()
    made = outline(PRESETS[name])
    assert time.monotonic() - begun < 30
    assert {p.device.type for p in made.parameters()} == {"meta"}
    count = sum(p.numel() for p in made.parameters())
    if count < 10_000_000:
        assert count == sum(p.numel() for p in PRESETS[name].build().parameters())


@pytest.mark.slow
def test_an_outline_draws_no_numbers_and_loads_no_compiler() -> None:
    """Which would take a second or two of every command that loads a run."""
    code = (
        "import sys, torch; from saccade.train.recipes import RECIPES;"
        "before = torch.get_rng_state(); from saccade.models.outline import outline;"
        "[outline(one.model) for one in RECIPES.values()];"
        "assert not {'torch._dynamo', 'sympy'} & set(sys.modules);"
        "assert torch.equal(before, torch.get_rng_state())"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)

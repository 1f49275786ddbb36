"""Every recurrent and convolutional model under autocast: training, validation and decoding run.

Half precision meets float32 wherever a state, a buffer or a loop keeps the weights' own; on a GPU
the same laws hold of the same code.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.models.caption.captioner import CaptionerConfig
from tests.marks import one_fast
from tests.models import gallery, zoo

OTHERS = ("transformer", "gpt")
CONFIGS = {
    name: config
    for name, config in {**zoo.TRANSLATORS, **zoo.SOME_READERS, **zoo.LANGUAGE}.items()
    if not any(other in name for other in OTHERS)
}
every_model = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
every_captioner = pytest.mark.parametrize(
    "config", gallery.CAPTIONERS.values(), ids=gallery.CAPTIONERS
)
every_dtype = pytest.mark.parametrize(
    "dtype", one_fast([torch.bfloat16, torch.float16]), ids=["bfloat16", "float16"]
)


def runs_here(model: Any, dtype: torch.dtype) -> None:
    if dtype == torch.float16 and any(isinstance(m, torch.nn.LSTM) for m in model.modules()):
        pytest.skip("torch's LSTM knows no float16 on the CPU")


def near(found: Tensor, expected: Tensor) -> None:
    assert found.isfinite().all()
    assert (found.float() - expected).norm() / expected.norm() < 0.1


def steps(model: Any, state: Any, words: Tensor) -> Tensor:
    """Scores along the words, rows changing places and back in between."""
    back, scores = torch.arange(len(words)).flip(0), []
    for word in words.T:
        found, state = model.step(word, state.select(back).select(back))
        scores.append(found)
    return torch.stack(scores, dim=1)


@every_dtype
@every_model
def test_trains_validates_and_decodes(config: ModelConfig, dtype: torch.dtype) -> None:
    model = zoo.build(config, torch.float32)
    runs_here(model, dtype)
    with torch.no_grad():
        expected = model.output(zoo.features(model, zoo.TARGET))
    with torch.autocast("cpu", dtype):
        for target in (zoo.TARGET, zoo.TARGET[:, :1]):
            model.zero_grad()
            loss = model.output(zoo.features(model.train(), target)).float().square().mean()
            loss.backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        model.eval()
        with torch.no_grad():
            near(model.output(zoo.features(model, zoo.TARGET)), expected)
            near(steps(model, zoo.begin(model), zoo.TARGET), expected)


@every_dtype
@every_captioner
def test_captions(config: CaptionerConfig, dtype: torch.dtype) -> None:
    model = gallery.build(config, torch.float32)
    runs_here(model, dtype)
    words = torch.tensor([[1, 6, 5], [1, 9, 8]])
    with torch.no_grad():
        expected = model.output(gallery.told(model).hidden)
    with torch.autocast("cpu", dtype):
        found = gallery.told(model.train())
        loss = model.output(found.hidden).float().square().mean()
        loss = loss if found.looked is None else loss + found.looked.square().sum()
        loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        model.load_state_dict(gallery.build(config, torch.float32).state_dict())
        model.eval()
        with torch.no_grad():
            near(model.output(gallery.told(model).hidden), expected)
            assert steps(model, model.start(gallery.PICTURES), words).isfinite().all()

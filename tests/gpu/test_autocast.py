"""Every model in mixed precision on a GPU: it learns, decodes, and says nearly the same."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.config import ModelConfig
from saccade.models.caption.captioner import CaptionerConfig
from tests.models import captioners, encoders, gallery, zoo

DEVICE = "cuda"
NEAR = {torch.bfloat16: 0.05, torch.float16: 0.01}  # of the norm
NEAR_SLOPES = 0.4  # in models so small, one unit that rounding switches on or off is much
MODELS = {**zoo.TRANSLATORS, **zoo.LANGUAGE}
PAINTED = {**gallery.CAPTIONERS, **captioners.CONFIGS}
each_dtype = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


def near(found: Tensor, expected: Tensor, share: float) -> None:
    assert found.isfinite().all()
    assert (found.float() - expected).norm() <= share * expected.norm()


def steps(model: Any, state: Any, words: Tensor) -> Tensor:
    """Scores along the words, rows changing places and back in between."""
    back, scores = torch.arange(len(words), device=DEVICE).flip(0), []
    for word in words.T:
        found, state = model.step(word, state.select(back).select(back))
        scores.append(found)
    return torch.stack(scores, dim=1)


def slopes(model: Any, score: Callable[[], Tensor], dtype: torch.dtype | None = None) -> Tensor:
    """The gradient to all parameters, end to end; the way back is outside of autocast."""
    with torch.autocast(DEVICE, dtype, enabled=dtype is not None):
        scores = score()
    labels = torch.arange(scores.shape[:-1].numel(), device=DEVICE) % scores.shape[-1]
    loss = F.cross_entropy(scores.flatten(0, -2).float(), labels)
    some = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([x.flatten().float() for x in some if x is not None])


@each_dtype
@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_and_decodes(name: str, dtype: torch.dtype) -> None:
    config: ModelConfig = MODELS[name]
    model = zoo.build(config, torch.float32).to(DEVICE)
    source, words = zoo.SOURCE.to(DEVICE), zoo.TARGET.to(DEVICE)  # lengths stay on the CPU

    def scores(words: Tensor = words) -> Tensor:
        return model.output(zoo.features(model, words, source))

    with torch.no_grad():
        expected = scores()
    model.train()  # its dropout is 0
    near(slopes(model, scores, dtype), slopes(model, scores), NEAR_SLOPES)
    assert slopes(model, lambda: scores(words[:, :1]), dtype).isfinite().all()
    model.eval()
    with torch.no_grad(), torch.autocast(DEVICE, dtype):
        near(scores(), expected, NEAR[dtype])
        near(steps(model, zoo.begin(model, source), words), expected, NEAR[dtype])


@each_dtype
@pytest.mark.parametrize("name", encoders.ENCODERS)
def test_a_text_encoder_learns_and_scores(name: str, dtype: torch.dtype) -> None:
    model = zoo.build(encoders.ENCODERS[name], torch.float32).to(DEVICE)
    rows = encoders.rows_of(encoders.TEXTS).to(torch.device(DEVICE))

    def scores(which: str) -> Tensor:
        return encoders.scores(model, rows)[which]

    with torch.no_grad():
        expected = encoders.scores(model, rows)
        alone = encoders.scores(
            zoo.build(encoders.ENCODERS[name], torch.float32), rows.to(torch.device("cpu"))
        )
    for which, plain in expected.items():
        near(plain.cpu(), alone[which], 1e-4)
        model.train()  # its dropout is 0
        ours, theirs = (slopes(model, partial(scores, which), one) for one in (dtype, None))
        near(ours, theirs, NEAR_SLOPES)
        model.eval()
        with torch.no_grad(), torch.autocast(DEVICE, dtype):
            near(scores(which), plain, NEAR[dtype])


@each_dtype
@pytest.mark.parametrize("name", PAINTED)
def test_a_captioner_learns_and_decodes(name: str, dtype: torch.dtype) -> None:
    """Gradients in training need not be near: batches are normalised, and glances are drawn."""
    config: CaptionerConfig = PAINTED[name]
    model = gallery.build(config, torch.float32).to(DEVICE)
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    given, of = gallery.rows(gallery.CAPTIONS).to(torch.device(DEVICE)), gallery.OF.to(DEVICE)
    images = gallery.PICTURES.to(DEVICE)
    words = torch.tensor([[1, 6, 5], [1, 9, 8]], device=DEVICE)

    def scores() -> Tensor:
        return model.output(model(images, given, of).hidden)

    with torch.no_grad():
        expected = scores(), steps(model, model.start(images), words)
    model.train()
    assert slopes(model, scores, dtype).isfinite().all()
    model.load_state_dict(kept)  # also the running means that normalise
    model.eval()
    with torch.no_grad(), torch.autocast(DEVICE, dtype):
        found = scores(), steps(model, model.start(images), words)
    for ours, theirs in zip(found, expected):
        assert ours.isfinite().all()
        if "hard" not in name:  # where one place may win by a hair
            near(ours, theirs, NEAR[dtype])

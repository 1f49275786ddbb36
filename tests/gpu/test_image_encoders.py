"""Image encoders on a GPU: forms for inference, compiled and captured updates."""

import pytest
import torch

from saccade.app.bench.ours import Classify, LabelledImages
from saccade.models.inference.encoder import CapturedReading, EncoderForInference
from saccade.models.vision.pooling_attention import with_offsets
from saccade.train.devices.distributed import World
from saccade.train.events import Update
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings
from tests.models.inference.test_encoder import FAMILIES, trained

CUDA = torch.device("cuda")
# Torch's own compiler uses what torch calls deprecated, and gives advice.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores:UserWarning"),
    pytest.mark.filterwarnings(r"ignore:\s*Online softmax:UserWarning"),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_the_form_for_inference_is_as_exact_as_half_precision(name: str, compiled: bool) -> None:
    """Twice the error of the model itself in bfloat16, captured or not; replays do not mix up."""
    model, images = trained(FAMILIES[name]).to(CUDA), torch.randn(3, 2, 3, 32, 32, device=CUDA)
    scores = CapturedReading(EncoderForInference(model, "bfloat16", compiled=compiled))
    expected = [model(image) for image in images]
    found = [scores(image) for image in images]
    half = model.bfloat16()
    plain = torch.stack([half(image.bfloat16()) for image in images]).float()
    allowed = 2 * (plain - torch.stack(expected)).abs().max() + 1e-3
    assert (torch.stack(found).float() - torch.stack(expected)).abs().max() <= allowed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("extra", [0, 1])
def test_longer_vectors_are_the_bias_on_a_gpu(
    dtype: torch.dtype, extra: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    keys, cells, found = (7, 7), 196, list[list[torch.Tensor]]()
    sizes = [(extra + cells, 96), (extra + 49, 96), (extra + 49, 96), (cells, 14)]
    given = [torch.randn(4, 2, *size, device=CUDA, dtype=dtype) for size in sizes]
    for wide in (True, False):
        monkeypatch.setattr("saccade.models.vision.pooling_attention.widens", lambda _, w=wide: w)
        q, k, v, offsets = (one.clone().requires_grad_() for one in given)
        read = with_offsets(q, k, v, offsets, keys, None)
        read.square().sum().backward()
        found.append([read, *(g for x in (q, k, v, offsets) if (g := x.grad) is not None)])
    bound = 2e-4 if dtype == torch.float32 else 3e-2
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() <= bound * other.abs().max()


@pytest.mark.parametrize("name", FAMILIES)
def test_updates_are_the_same_compiled_and_captured(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In full float32: of few images, BatchNorm and Adam make much of the smallest difference."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    losses: list[list[float]] = []
    torch.manual_seed(0)
    image, label = torch.randn(64, 3, 32, 32), torch.randint(5, (64,))
    task = Classify(LabelledImages(image, label).to(CUDA))
    for compiled, capture in ((False, False), (False, True), (True, True)):
        settings = TrainSettings(
            learning_rate=1e-4, warmup=0, batches="mixed", compile=compiled, capture=capture
        )
        trainer = Trainer(trained(FAMILIES[name]), task, settings, World(0, 1, CUDA))
        updates = [trainer.update() for _ in range(6)]
        losses.append([one.loss for one in updates if isinstance(one, Update)])
    assert len(losses[0]) == 6
    for other in losses[1:]:
        assert other == pytest.approx(losses[0], rel=2e-2)

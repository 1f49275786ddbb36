"""A kind of work of its own: stripes stand upright or lie. Nothing in saccade knows of it."""

import json
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

from saccade import load, looking
from saccade.app.kinds.base import Kind, LoadedRun, Serving
from saccade.app.kinds.image_files import predict_images
from saccade.app.look.document import LookDocument
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.patches import Patches
from saccade.config import ModelConfig
from saccade.data.images.given import pixels_of
from saccade.data.images.square import fit_square
from saccade.tasks.base import Deciding, Preparation, TaskSettings, silent

SIDE, CELLS, WIDTH, CLASSES = 16, 4, 16, ["upright", "lying"]
Run = tyro.conf.Positional[str]


class StripesConfig(ModelConfig):
    def build(self) -> nn.Module:
        return Stripes()


class Stripes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.readout = Patches(WIDTH, side=CELLS), nn.Linear(WIDTH, len(CLASSES))
        self.cross_attention = MultiHeadAttention(WIDTH, heads=2)

    def forward(self, images: Tensor) -> Tensor:
        x = F.gelu(self.patches(images / 128 - 1.0))
        return self.readout(self.cross_attention(x.mean(dim=1, keepdim=True), x)[:, 0])


class StripesBatch(NamedTuple):
    images: Tensor
    labels: Tensor
    tokens: int
    shape: tuple[int, ...] = ()

    def to(self, device: torch.device) -> "StripesBatch":
        return self._replace(images=self.images.to(device), labels=self.labels.to(device))

    def pinned(self) -> "StripesBatch":
        return self


class StripesSettings(TaskSettings):
    announcement = "painting stripes"

    def prepare(self, how: Preparation) -> "StripesTask":
        return StripesTask(how)


class StripesTask:
    deciding = Deciding("accuracy", label="accuracy", higher=True)
    report, sizes, padding, batches_per_epoch = ["64 images"], "2 classes", 0.0, 4

    def __init__(self, how: Preparation) -> None:
        self.how = how

    def assets(self) -> dict[str, bytes]:
        return {"classes.json": json.dumps(CLASSES).encode()}

    def fit(self, model: Any) -> ModelConfig:
        return model

    def fingerprint(self) -> str:
        return "as painted"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> StripesBatch:
        rng = torch.Generator().manual_seed(4096 * self.how.seed + position)
        labels, phase = torch.randint(2, (2, self.how.budget, 1, 1, 1), generator=rng)
        lying = ((torch.arange(SIDE)[:, None] + phase) % 2 * 255).expand(-1, 3, -1, SIDE)
        images = torch.where(labels.bool(), lying, lying.mT).byte()
        return StripesBatch(images[shard::shards], labels.flatten()[shard::shards], len(labels))

    def losses(self, model: Any, batch: StripesBatch) -> dict[str, Tensor]:
        z, labels = model(batch.images), batch.labels
        return {"class": F.cross_entropy(z, labels, reduction="sum"), "size": 1e-3 * z.norm()}

    @torch.no_grad()
    def validate(self, model: Any, device: Any, progress: Any = silent) -> dict[str, float]:
        batch = self.batch(4095).to(device)  # which training never comes to
        return {"accuracy": float((model(batch.images).argmax(-1) == batch.labels).float().mean())}


class StripesModel:
    batch = 8  # images at a time

    def __init__(self, run: LoadedRun) -> None:
        self.name, self.recipe, self.tool = run.name, run.recipe, self
        self.model, self.network, self.device = run.network, run.network, torch.device("cpu")
        self.names: list[str] = json.loads(run.asset("classes.json").read_bytes())

    def prepare(self, image: Any, *, name: str = "") -> Tensor:
        return fit_square(pixels_of(image, name=name, short=SIDE), SIDE, "crop")

    @torch.no_grad()
    def predict(self, images: list[Tensor]) -> list[dict[str, Any]]:
        return [{"text": self.names[int(one.argmax())]} for one in self.model(torch.stack(images))]

    def look(self, image: Tensor) -> list[list[float]]:
        with looking(self.model) as trace:
            self.predict([image])
        return trace.weights()["cross"].mean(dim=1).view(CELLS, CELLS).tolist()


def predict(run: Run, images: tyro.conf.Positional[tuple[str, ...]], /) -> None:
    """Say which way the stripes of images run."""
    model = load(run, device="cpu")
    predict_images(model, images, model.predict, doing="looking at stripes", json=False)


def evaluate(run: Run, /) -> None:
    """How many of fresh images are told right."""
    model, task = load(run, device="cpu"), StripesTask(Preparation(budget=1, seed=7))
    print(json.dumps(task.validate(model.model, model.device)))


def look(run: Run, image: Run, /) -> None:
    """Print where on an image the model looked."""
    model = load(run, device="cpu")
    print(json.dumps(model.look(model.prepare(image))))


class StripesServing(Serving):
    takes, does = "image", "tells stripes"

    def predict(self, tool: Any, jobs: Any, steps: Any) -> None:
        for job in jobs:
            job.finish(tool.predict(list(job.work.given)))

    def look(self, models: list[Any], given: Any, settings: Any) -> LookDocument:
        blobs = [json.dumps(models[0].tool.look(given))]
        return LookDocument(kind="stripes", title="", notes=[], looks=[], blobs=blobs)

    def image_to_predict(self, tool: Any, decode: Any) -> Tensor:
        return tool.prepare(decode(SIDE))


KIND = Kind("stripes", StripesModel, predict, evaluate, look, StripesServing())

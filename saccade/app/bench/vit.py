"""`saccade bench vit`: a Vision Transformer's update and its class scores, beside others'."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.app.bench.floor import BACKWARD, PRECISIONS, Machine, image_flops
from saccade.app.bench.ours import Classify, LabelledImages, class_scores, updates
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.peers.vit import PEERS, HuggingFaceLogits, Peer
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.settings import RaceSettings
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models.names.table import to_theirs
from saccade.models.names.vit import LIBRARIES
from saccade.models.vision.vit import PRESETS, Vit, VitConfig

FORMS = ("", "-compiled")


@dataclass(frozen=True, kw_only=True)
class VitBench(RaceSettings):
    """Measure a Vision Transformer: an update of its weights, and class scores without one.

    Peers: timm, torchvision and Hugging Face, each also compiled on a GPU, with the same weights.
    They train in mixed precision as ours and read pictures with weights in the precision asked
    for. × is to the fastest of them; what is computed is compared with ours in float32.

    Args:
        work: which of the two; both by default.
        model: a ViT's preset; auto is vit-b-16 on a GPU and vit-nano elsewhere.
        batch: pictures at a time; 256 on a GPU and 32 elsewhere.
        compiled: also measure what torch.compile makes of each peer, which is slow to start; auto
            does on a GPU.
    """

    known = tuple(name + form for name, form in product(PEERS, FORMS))

    work: Literal["both", "train", "infer"] = "both"
    model: str = "auto"
    batch: int | None = None
    compiled: Literal["auto", "yes", "no"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in ("auto", *PRESETS):
            raise ConfigError(f"model={self.model} is not one of auto, {', '.join(PRESETS)}")
        if self.batch is not None:
            check_positive(self, "batch")

    @property
    def config(self) -> VitConfig:
        if self.model == "auto":
            return PRESETS["vit-b-16" if self.on_gpu else "vit-nano"]
        return PRESETS[self.model]

    @property
    def images(self) -> int:
        return self.batch or (256 if self.on_gpu else 32)

    @property
    def compiles(self) -> bool:
        return self.on_gpu if self.compiled == "auto" else self.compiled == "yes"

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        field = _VitContenders.of(self)
        works = {"train": field.training, "infer": field.inference}
        wanted = [work for work in works if self.work in ("both", work)]
        return self.race_all(((_job(self, machine, work), works[work]()) for work in wanted), tell)


def _job(bench: VitBench, machine: Machine, work: str) -> Workload:
    config, flops = bench.config, image_flops(bench.config, bench.images)
    does = {"train": "one update of", "infer": "class scores by"}[work]
    return Workload(
        title=f"{does} a ViT: {config.image} px, patches of {config.patch}, width "
        f"{config.width}, {config.depth} layers, {bench.arithmetic}",
        tokens=bench.images,
        floor_seconds=flops * (BACKWARD if work == "train" else 1) / machine.flops,
        against="",
        agreement="Δ loss" if work == "train" else "Δ logits",
        repeats=bench.repeats,
        unit="pictures",
    )


@torch.no_grad()
def copy_weights(ours: Vit, theirs: nn.Module) -> None:
    """Make theirs compute what ours does."""
    inside = theirs.model if isinstance(theirs, HuggingFaceLogits) else theirs
    named = (to_theirs(names, ours.state_dict()) for names in LIBRARIES.values())
    weights = next(one for one in named if one.keys() == inside.state_dict().keys())
    inside.load_state_dict(weights)


@dataclass(frozen=True)
class _VitContenders:
    """What all contenders share."""

    bench: VitBench
    model: Vit
    batch: LabelledImages
    logits: Float[Tensor, "B classes"] = field(repr=False)  # by ours, in float32

    @classmethod
    def of(cls, bench: VitBench) -> "_VitContenders":
        config, rng = bench.config, torch.Generator().manual_seed(bench.seed)
        torch.manual_seed(bench.seed)
        model = replace(config, dropout=0.0).build().to(bench.where).eval()
        image = torch.randn(bench.images, 3, config.image, config.image, generator=rng)
        label = torch.randint(config.classes, (bench.images,), generator=rng)
        batch = LabelledImages(image, label).to(bench.where)
        with torch.no_grad():
            return cls(bench, model, batch, model(batch.image))

    def training(self) -> Iterator[Contender]:
        task = Classify(self.batch)

        yield Contender(SACCADE, lambda: CheckedWork(updates(self.bench, self.model, task)))
        yield from self._peers(self._update)

    def inference(self) -> Iterator[Contender]:
        def ours(captured: bool) -> CheckedWork:
            return self._reading(class_scores(self.model, self.bench.inference, captured=captured))

        yield Contender(SACCADE, lambda: ours(captured=False))
        if self.bench.on_gpu:
            yield Contender(f"{SACCADE}-recorded", lambda: ours(captured=True))
        yield from self._peers(self._peers_reading)

    def _peers(self, ready: Callable[[nn.Module, Any], CheckedWork]) -> Iterator[Contender]:
        for (name, peer), form in product(PEERS.items(), FORMS):
            if form and not self.bench.compiles:
                continue

            def make(peer: Peer = peer, form: str = form) -> CheckedWork:
                with self.bench.where:  # fresh weights are drawn there
                    model = peer.make(self.bench.config).eval()
                copy_weights(self.model, model)
                return ready(model, torch.compile(model) if form else model)

            yield Contender(name + form, make, peer.needs)

    def _update(self, model: nn.Module, run: Any) -> CheckedWork:
        image, label = self.batch
        with torch.no_grad():
            differs = F.cross_entropy(model(image), label) - F.cross_entropy(self.logits, label)
        model.train()
        step = training_steps(self.bench, model, lambda: F.cross_entropy(run(image), label))
        return CheckedWork(step, abs(differs.item()))

    def _peers_reading(self, model: nn.Module, run: Any) -> CheckedWork:
        model.to(PRECISIONS[self.bench.arithmetic])
        return self._reading(run)

    def _reading(self, run: Callable[[Tensor], Tensor]) -> CheckedWork:
        """Scores of the batch, again and again; it comes in the precision that is computed in."""
        image = self.batch.image.to(PRECISIONS[self.bench.arithmetic])

        def scores() -> Tensor:
            with torch.no_grad():
                return run(image)

        def work() -> None:
            for _ in range(self.bench.repeats):
                scores()

        return CheckedWork(work, (scores().float() - self.logits).abs().max().item())

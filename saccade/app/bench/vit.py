"""`saccade bench vit`: a Vision Transformer's update and its class scores, beside others'."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.floor import BACKWARD, PRECISIONS, Machine, picture_flops
from saccade.app.bench.ours import updates
from saccade.app.bench.peers import hugging_face_vit, timm_vit, torchvision_vit
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.race import SACCADE, Contender, Job, Race, Ready, choose, run_race
from saccade.app.bench.sentences import numbered
from saccade.app.bench.settings import RaceSettings
from saccade.config import check_positive
from saccade.data.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.models.inference.lean_vit import LeanVit, RecordedVit
from saccade.models.names.vit import translated
from saccade.models.vision.vit import PRESETS, Vit, VitConfig


class Peer(NamedTuple):
    """A library's Vision Transformer, and the package it is in."""

    make: Callable[[VitConfig], nn.Module]
    needs: str


PEERS = {
    "timm": Peer(timm_vit.make, timm_vit.NEEDS),
    "torchvision": Peer(torchvision_vit.make, torchvision_vit.NEEDS),
    "huggingface": Peer(hugging_face_vit.make, hugging_face_vit.NEEDS),
}
FORMS = ("", "-compiled")


@dataclass(frozen=True, kw_only=True)
class VitBench(RaceSettings):
    """An update (forward, backward, AdamW) and class scores of a batch of pictures.

    Args:
        work: which of the two; both by default.
        model: a ViT's preset; auto is vit-b-16 on a GPU and vit-nano elsewhere.
        batch: pictures at a time; 256 on a GPU and 32 elsewhere.
        compiled: also measure what torch.compile makes of each peer, which is slow to start; auto
            does on a GPU.
    """

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
    def known(self) -> tuple[str, ...]:
        return tuple(name + form for name, form in product(PEERS, FORMS))

    @property
    def config(self) -> VitConfig:
        if self.model == "auto":
            return PRESETS["vit-b-16" if self.on_gpu else "vit-nano"]
        return PRESETS[self.model]

    @property
    def pictures(self) -> int:
        return self.batch or (256 if self.on_gpu else 32)

    @property
    def compiles(self) -> bool:
        return self.on_gpu if self.compiled == "auto" else self.compiled == "yes"


class Pictures(NamedTuple):
    """A batch that is where it is needed already, as the peers' is."""

    image: Float[Tensor, "B 3 H W"]
    label: Int[Tensor, " B"]

    @property
    def tokens(self) -> int:
        return len(self.label)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.image.shape)

    def to(self, device: torch.device) -> "Pictures":
        return Pictures(self.image.to(device), self.label.to(device))

    def pinned(self) -> "Pictures":
        return self


@dataclass(frozen=True)
class Classify:
    """The same batch for ever: what the trainer needs of a task to train on it."""

    only: Pictures
    padding: float = 0.0
    batches_per_epoch: int = 1
    vocabulary: Vocabulary = field(default_factory=lambda: numbered(8))  # no one reads it

    def fingerprint(self) -> str:
        return ""

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> Pictures:
        return self.only

    def loss(self, model: nn.Module, batch: Pictures) -> Float[Tensor, ""]:
        """Σ −log p(label)."""
        return F.cross_entropy(model(batch.image), batch.label, reduction="sum")

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        raise AssertionError("a bench does not validate")


def run_vit_bench(
    bench: VitBench, machine: Machine, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Race]:
    """A race for each work, as soon as it is over."""
    all_share = _Field.of(bench)
    for work, contenders in (("train", all_share.training), ("infer", all_share.inference)):
        if bench.work in ("both", work):
            yield run_race(
                _job(bench, machine, work),
                choose(list(contenders()), bench.peers),
                device=bench.where,
                seconds=bench.seconds,
                tell=tell,
            )


def _job(bench: VitBench, machine: Machine, work: str) -> Job:
    config, flops = bench.config, picture_flops(bench.config, bench.pictures)
    does = {"train": "one update of", "infer": "class scores by"}[work]
    return Job(
        title=f"{does} a ViT: {config.image} px, patches of {config.patch}, width "
        f"{config.width}, {config.depth} layers, {bench.arithmetic}",
        tokens=bench.pictures,
        floor_seconds=flops * (BACKWARD if work == "train" else 1) / machine.flops,
        against="",
        agreement="Δ loss" if work == "train" else "Δ logits",
        repeats=bench.repeats,
        unit="pictures",
    )


@torch.no_grad()
def copy_weights(ours: Vit, theirs: nn.Module) -> None:
    """Make theirs compute what ours does: what we would read of their tensors is written there."""
    weights, written = ours.state_dict(), set[str]()
    for name, tensor in theirs.state_dict().items():
        for own, part in translated(name.removeprefix("model."), tensor):
            part.copy_(weights[own].view_as(part))
            written.add(own)
    assert written == weights.keys()


@dataclass(frozen=True)
class _Field:
    """What all contenders share."""

    bench: VitBench
    model: Vit
    batch: Pictures
    logits: Float[Tensor, "B classes"] = field(repr=False)  # by ours, in float32

    @classmethod
    def of(cls, bench: VitBench) -> "_Field":
        config, rng = bench.config, torch.Generator().manual_seed(bench.seed)
        torch.manual_seed(bench.seed)
        model = replace(config, dropout=0.0).build().to(bench.where).eval()
        image = torch.randn(bench.pictures, 3, config.image, config.image, generator=rng)
        label = torch.randint(config.classes, (bench.pictures,), generator=rng)
        batch = Pictures(image, label).to(bench.where)
        with torch.no_grad():
            return cls(bench, model, batch, model(batch.image))

    def training(self) -> Iterator[Contender]:
        task = Classify(self.batch)

        def ours() -> Ready:
            where, arithmetic = self.bench.where, self.bench.arithmetic
            count = self.bench.repeats
            return Ready(updates(self.model, task, device=where, precision=arithmetic, count=count))

        yield Contender(SACCADE, ours)
        yield from self._peers(self._update)

    def inference(self) -> Iterator[Contender]:
        def lean() -> LeanVit:
            half = self.bench.arithmetic == "bf16"
            return LeanVit(self.model, "bfloat16" if half else "float32")

        yield Contender(SACCADE, lambda: self._reading(lean()))
        if self.bench.on_gpu:
            yield Contender(f"{SACCADE}-recorded", lambda: self._reading(RecordedVit(lean())))
        yield from self._peers(self._peers_reading)

    def _peers(self, ready: Callable[[nn.Module, Any], Ready]) -> Iterator[Contender]:
        for (name, peer), form in product(PEERS.items(), FORMS):
            if form and not self.bench.compiles:
                continue

            def make(peer: Peer = peer, form: str = form) -> Ready:
                with self.bench.where:  # fresh weights are drawn there
                    model = peer.make(self.bench.config).eval()
                copy_weights(self.model, model)
                return ready(model, torch.compile(model) if form else model)

            yield Contender(name + form, make, peer.needs)

    def _update(self, model: nn.Module, run: Any) -> Ready:
        image, label = self.batch
        with torch.no_grad():
            differs = F.cross_entropy(model(image), label) - F.cross_entropy(self.logits, label)
        model.train()
        step = training_steps(
            model,
            lambda: F.cross_entropy(run(image), label),
            device=self.bench.where,
            precision=self.bench.arithmetic,
            count=self.bench.repeats,
        )
        return Ready(step, abs(differs.item()))

    def _peers_reading(self, model: nn.Module, run: Any) -> Ready:
        model.to(PRECISIONS[self.bench.arithmetic])
        return self._reading(run)

    def _reading(self, run: Callable[[Tensor], Tensor]) -> Ready:
        """Scores of the batch, again and again; it comes in the precision that is computed in."""
        image = self.batch.image.to(PRECISIONS[self.bench.arithmetic])

        def scores() -> Tensor:
            with torch.no_grad():
                return run(image)

        def work() -> None:
            for _ in range(self.bench.repeats):
                scores()

        return Ready(work, (scores().float() - self.logits).abs().max().item())

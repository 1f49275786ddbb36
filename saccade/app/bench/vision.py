"""`saccade bench vision`: an image encoder's update and its class scores, beside others'."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.app.bench.floor import BACKWARD, PRECISIONS, Machine, image_floor
from saccade.app.bench.ours import (
    Classify,
    LabelledImages,
    compiled_scores,
    updates,
)
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.peers.vision import FAMILIES, NEEDS, Make, PeerFamily, copy_weights
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.settings import Entries, RaceSettings
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models.inference.encoder import CapturedReading, ClassScores
from saccade.models.inference.scores import for_inference
from saccade.models.vision import convnext, mvit, resnet, swin, vit
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.printable import printable

FORMS = ("", "-compiled")
PRESETS: dict[str, ImageEncoderConfig] = {
    **vit.PRESETS,
    **swin.PRESETS,
    **convnext.PRESETS,
    **mvit.PRESETS,
    **{name: config for name, config in resnet.PRESETS.items() if config.stem == "imagenet"},
}
LARGE = "vit-b-16,swin-t,convnext-t,mvitv2-t,resnet-50"
SMALL = "vit-nano,swin-nano,convnext-nano,mvit-nano,resnet-18"


@dataclass(frozen=True, kw_only=True)
class VisionBench(RaceSettings):
    """Measure image encoders: an update of their weights, and class scores without one.

    Peers: timm, and torchvision and Hugging Face where they have the model, each also compiled on a
    GPU, with the same weights. They train in mixed precision as ours and read images with weights
    in the precision asked for. × is to the fastest of them; what is computed is compared with ours
    in float32.

    Args:
        work: which of the two; both by default.
        models: presets, with commas between; auto is one of each family: vit-b-16, swin-t,
            convnext-t, mvitv2-t and resnet-50 on a GPU, the smallest elsewhere.
        batch: images at a time; 256 on a GPU and 32 elsewhere.
        image: side of the images; 224 on a GPU and 64 elsewhere, or what the model is made for.
        compiled: also measure what torch.compile makes of each, which is slow to start; auto does
            on a GPU.
        profile: also say how long each kind of kernel takes.
    """

    known = tuple(name + form for name, form in product(NEEDS, FORMS))

    work: Literal["both", "train", "infer"] = "both"
    models: str = "auto"
    batch: int | None = None
    image: int | None = None
    compiled: Literal["auto", "yes", "no"] = "auto"
    profile: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            if name not in PRESETS:
                known = ", ".join(PRESETS)
                raise ConfigError(f"models={printable(name)} is not one of auto, {known}")
        sizes = ("batch", "image")
        check_positive(self, *(name for name in sizes if getattr(self, name) is not None))

    @property
    def names(self) -> list[str]:
        chosen = self.models
        if chosen == "auto":
            chosen = LARGE if self.on_gpu else SMALL
        return [name.strip() for name in chosen.split(",") if name.strip()]

    @property
    def images(self) -> int:
        return self.batch or (256 if self.on_gpu else 32)

    @property
    def repeats(self) -> int:
        return 5 if self.on_gpu else 1  # each is long, so that few suffice

    @property
    def compiles(self) -> bool:
        return self.on_gpu if self.compiled == "auto" else self.compiled == "yes"

    def config(self, name: str) -> ImageEncoderConfig:
        """Nothing dropped by chance, so that all compute the same; for images of the size asked."""
        config = PRESETS[name]
        if self.image is not None:
            config = config.for_images(self.image, classes=config.classes)
        quiet: dict[str, Any] = {
            rate: 0.0 for rate in ("dropout", "drop_path") if rate in vars(config)
        }
        return replace(config, **quiet)

    def side(self, config: ImageEncoderConfig) -> int:
        return self.image or config.expects or (224 if self.on_gpu else 64)

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        with fastest_convolutions():
            for name in self.names:
                yield from self.race_all(self._entries(name, machine), tell, profiled=self.profile)

    def _entries(self, name: str, machine: Machine) -> Iterator[Entries]:
        contenders = _Contenders.of(self, self.config(name))
        works = {"train": contenders.training, "infer": contenders.inference}
        for work, take_part in works.items():
            if self.work in ("both", work):
                yield _job(self, name, machine, work), take_part()


@contextmanager
def fastest_convolutions() -> Generator[None]:
    """For all alike: cuDNN tries which is fastest, as it pays where sizes never change."""
    cudnn: Any = torch.backends.cudnn
    before, cudnn.benchmark = cudnn.benchmark, True
    try:
        yield
    finally:
        cudnn.benchmark = before


def _job(bench: VisionBench, name: str, machine: Machine, work: str) -> Workload:
    config = bench.config(name)
    side = bench.side(config)
    number_bytes = PRECISIONS[bench.arithmetic].itemsize
    floor = image_floor(config, bench.images, side, machine, number_bytes)
    does = {"train": "one update of", "infer": "class scores by"}[work]
    return Workload(
        title=f"{does} {name}: {side} px, {bench.arithmetic}",
        tokens=bench.images,
        floor_seconds=floor * (BACKWARD if work == "train" else 1),
        against="",
        agreement="Δ loss" if work == "train" else "Δ logits",
        repeats=bench.repeats,
        unit="images",
    )


@dataclass(frozen=True)
class _Contenders:
    """What all contenders share."""

    bench: VisionBench
    config: ImageEncoderConfig
    model: ImageEncoder
    batch: LabelledImages
    logits: Float[Tensor, "B classes"] = field(repr=False)  # by ours, in float32

    @classmethod
    def of(cls, bench: VisionBench, config: ImageEncoderConfig) -> "_Contenders":
        rng, side = torch.Generator().manual_seed(bench.seed), bench.side(config)
        torch.manual_seed(bench.seed)
        model = config.build().to(bench.where).eval()
        image = torch.randn(bench.images, 3, side, side, generator=rng)
        label = torch.randint(config.classes, (bench.images,), generator=rng)
        batch = LabelledImages(image, label).to(bench.where)
        with torch.no_grad():
            return cls(bench, config, model, batch, model(batch.image))

    @property
    def family(self) -> PeerFamily:
        return FAMILIES[type(self.config)]

    def training(self) -> Iterator[Contender]:
        task = Classify(self.batch)

        def ours(compiled: bool) -> CheckedWork:
            return CheckedWork(updates(self.bench, self.model, task, compiled=compiled))

        yield Contender(SACCADE, partial(ours, compiled=False))
        if self.bench.compiles:
            yield Contender(f"{SACCADE}-compiled", partial(ours, compiled=True))
        yield from self._peers(self._update)

    def inference(self) -> Iterator[Contender]:
        """Ours captured, which changes nothing where there is no GPU."""

        def ours(make: Callable[..., ClassScores]) -> CheckedWork:
            return self._reading(CapturedReading(make(self.model, self.bench.inference)))

        yield Contender(SACCADE, partial(ours, for_inference))
        if self.bench.compiles:
            yield Contender(f"{SACCADE}-compiled", partial(ours, compiled_scores))
        yield from self._peers(self._peers_reading)

    def _peers(self, ready: Callable[[nn.Module, Any], CheckedWork]) -> Iterator[Contender]:
        for (name, make), form in product(self.family.peers.items(), FORMS):
            if form == "" or self.bench.compiles:
                yield Contender(name + form, partial(self._peer, make, form, ready), NEEDS[name])

    def _peer(
        self, make: Make, form: str, ready: Callable[[nn.Module, Any], CheckedWork]
    ) -> CheckedWork:
        with self.bench.where:  # fresh weights are drawn there
            model = make(self.config, self.bench.side(self.config)).eval()
        copy_weights(self.model, model, self.family.names)
        if self.family.channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return ready(model, torch.compile(model) if form else model)

    def _laid_out(self, dtype: torch.dtype) -> Float[Tensor, "B 3 H W"]:
        """The images as the peers advise to lay them out."""
        last = torch.channels_last if self.family.channels_last else torch.contiguous_format
        return self.batch.image.to(dtype).contiguous(memory_format=last)

    def _update(self, model: nn.Module, run: Any) -> CheckedWork:
        image, label = self._laid_out(torch.float32), self.batch.label
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
        image = self._laid_out(PRECISIONS[self.bench.arithmetic])

        def scores() -> Tensor:
            with torch.no_grad():
                return run(image)

        def work() -> None:
            for _ in range(self.bench.repeats):
                scores()

        return CheckedWork(work, (scores().float() - self.logits).abs().max().item())

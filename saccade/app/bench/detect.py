"""`saccade bench detect`: a DETR's update and what it finds, beside Hugging Face's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.app.bench.floor import BACKWARD, PRECISIONS, Machine, image_floor
from saccade.app.bench.ours import BoxedImages, Detect, updates
from saccade.app.bench.peers import detr as peers
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.settings import Entries, RaceSettings
from saccade.app.bench.vision import fastest_convolutions
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models.detection.config import DetrConfig
from saccade.models.detection.detr import PRESETS, Detr
from saccade.models.inference.detector import DetectorForInference
from saccade.models.inference.encoder import CapturedReading
from saccade.printable import printable
from saccade.tasks.detection.matching import TrueObjects

PLAIN = [name for name, config in PRESETS.items() if not vars(config)["anchored"]]
SMALL = DetrConfig(encoder="resnet-18", width=64, encoder_depth=2, depth=2, hidden=128)


@dataclass(frozen=True, kw_only=True)
class DetectBench(RaceSettings):
    """Measure a DETR: an update of its weights, and what it finds without one.

    Peer: transformers' DetrForObjectDetection with the same weights, images and objects. It matches
    objects on the CPU in the middle of an update; a GPU does that for ours. Losses and boxes are
    compared with ours in float32.

    Args:
        work: which of the two; both by default.
        model: a preset of a DETR as published; auto is detr-r50 on a GPU, a small one elsewhere.
        batch: images at a time; 16 on a GPU and 2 elsewhere.
        image: side of the images; 640 on a GPU and 128 elsewhere.
        objects: in each image.
        compiled: also measure what torch.compile makes of theirs, which is slow to start.
    """

    known = ("huggingface", "huggingface-compiled")

    work: Literal["both", "train", "infer"] = "both"
    model: str = "auto"
    batch: int | None = None
    image: int | None = None
    objects: int = 8
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in ("auto", *PLAIN):
            raise ConfigError(
                f"model={printable(self.model)} is not one of auto, {', '.join(PLAIN)}"
            )
        sizes = ("batch", "image", "objects")
        check_positive(self, *(name for name in sizes if vars(self)[name] is not None))

    @property
    def config(self) -> DetrConfig:
        """Nothing dropped by chance, so that all compute the same."""
        named = "detr-r50" if self.model == "auto" and self.on_gpu else self.model
        config = SMALL if named == "auto" else PRESETS[named]
        assert isinstance(config, DetrConfig)
        return replace(config, dropout=0.0, frozen=2, frozen_norms=True)

    @property
    def images(self) -> int:
        return self.batch or (16 if self.on_gpu else 2)

    @property
    def side(self) -> int:
        return self.image or (640 if self.on_gpu else 128)

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        with fastest_convolutions():
            yield from self.race_all(self._entries(machine), tell)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        contenders = _Detectors.of(self)
        works = {"train": contenders.training, "infer": contenders.inference}
        for work, take_part in works.items():
            if self.work in ("both", work):
                yield self._job(machine, work), list(take_part())

    def _job(self, machine: Machine, work: str) -> Workload:
        number_bytes = PRECISIONS[self.arithmetic].itemsize
        floor = image_floor(self.config, self.images, self.side, machine, number_bytes)
        does = {"train": "one update of", "infer": "what is found by"}[work]
        return Workload(
            title=f"{does} a DETR ({self.config.encoder}): {self.side} px, {self.objects} objects "
            f"in an image, {self.arithmetic}",
            tokens=self.images,
            floor_seconds=floor * (BACKWARD if work == "train" else 1),
            against="huggingface",
            agreement="Δ loss" if work == "train" else "Δ boxes",
            repeats=self.repeats,
            unit="images",
        )


@dataclass(frozen=True)
class _Detectors:
    """What all contenders share."""

    bench: DetectBench
    model: Detr
    batch: BoxedImages

    @classmethod
    def of(cls, bench: DetectBench) -> "_Detectors":
        rng, count = torch.Generator().manual_seed(bench.seed), bench.images
        torch.manual_seed(bench.seed)
        model = bench.config.build().to(bench.where)
        assert isinstance(model, Detr)
        images = torch.randn(count, 3, bench.side, bench.side, generator=rng)
        boxes = 0.25 + 0.5 * torch.rand(count, bench.objects, 4, generator=rng)
        labels = torch.randint(bench.config.classes, (count, bench.objects), generator=rng)
        true = TrueObjects(boxes, labels, torch.ones_like(labels, dtype=torch.bool))
        return cls(bench, model, BoxedImages(images, true, true.labels.numel()).to(bench.where))

    def training(self) -> Iterator[Contender]:
        def ours() -> CheckedWork:
            return CheckedWork(updates(self.bench, self.model, Detect(self.batch)))

        yield Contender(SACCADE, ours)
        yield from self._peers(self._update)

    def inference(self) -> Iterator[Contender]:
        """Ours captured, which changes nothing where there is no GPU."""

        def ours() -> CheckedWork:
            read = CapturedReading(DetectorForInference(self.model, self.bench.inference))
            return self._reading(lambda image: read(image).boxes[-1])

        yield Contender(SACCADE, ours)
        yield from self._peers(self._found)

    def _peers(self, ready: Callable[[Any, Any], CheckedWork]) -> Iterator[Contender]:
        for form in ("", "-compiled") if self.bench.compiled else ("",):
            make = partial(self._peer, ready, compiled=bool(form))
            yield Contender(f"huggingface{form}", make, peers.NEEDS)

    def _peer(self, ready: Callable[[Any, Any], CheckedWork], *, compiled: bool) -> CheckedWork:
        model = peers.make_detr(self.bench.config).to(self.bench.where)
        peers.copy_weights(self.model, model)
        return ready(model, torch.compile(model) if compiled else model)

    def _update(self, model: nn.Module, run: Any) -> CheckedWork:
        loss = peers.DetectionLoss(run, self.batch.true)
        with torch.no_grad():
            losses = Detect(self.batch).losses(self.model.train(), self.batch).values()
            ours = sum(part.item() for part in losses) / self.batch.tokens
            differs = loss(self.batch.image).item() - ours
        step = training_steps(self.bench, model.train(), lambda: loss(self.batch.image))
        return CheckedWork(step, abs(differs))

    def _found(self, model: nn.Module, run: Any) -> CheckedWork:
        model.eval().to(PRECISIONS[self.bench.arithmetic])
        return self._reading(lambda image: run(pixel_values=image).pred_boxes)

    def _reading(self, run: Callable[[Tensor], Tensor]) -> CheckedWork:
        """Boxes in the batch, again and again; it comes in the precision that is computed in."""
        image = self.batch.image.to(PRECISIONS[self.bench.arithmetic])

        def boxes() -> Tensor:
            with torch.no_grad():
                return run(image)

        def work() -> None:
            for _ in range(self.bench.repeats):
                boxes()

        with torch.no_grad():
            expected = self.model.eval()(self.batch.image).boxes[-1]
        return CheckedWork(work, (boxes().float() - expected).abs().max().item())

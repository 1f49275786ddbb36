"""`saccade bench joint`: a ViLBERT's update of pre-training, and a reading, beside plain torch."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils._pytree import tree_map

from saccade.app.bench.floor import BACKWARD, PRECISIONS, Machine, hidden_flops, joint_flops
from saccade.app.bench.ours import SameBatch, updates
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.peers.vilbert import PlainPretraining, PlainVilbert, copy_weights
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.settings import Entries, RaceSettings
from saccade.config import check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.regions import WHOLE, RegionRows, SeenRegions
from saccade.models.joint.vilbert import PRESETS, REGIONS, Vilbert
from saccade.tasks.joint.losses import choose_regions, fit_loss, hidden_regions, hidden_words

MASKED = 0.15  # of the words
SMALL = VilbertConfig(
    vocabulary=2000,
    width=128,
    depth=4,
    heads=4,
    hidden=512,
    longest=64,
    region_width=128,
    region_depth=2,
    region_heads=4,
    region_hidden=128,
    joins=2,
    join_width=128,
    join_heads=4,
    encoder="resnet-mini",
    regions="boxes",
    region_classes=100,
)


@dataclass(frozen=True, kw_only=True)
class JointBench(RaceSettings):
    """Measure a ViLBERT: an update of pre-training (hidden words, hidden regions, whether a text
    fits), and one reading of texts beside images.

    Peer: the same model out of torch's own layers, padded, with the same weights, features of
    regions and texts; no image encoder runs in either. Losses and logits are compared with ours in
    float32.

    Args:
        work: which of the two; both by default.
        size: of the model: small, or base as published; auto is base on a GPU.
        batch: texts, each with an image; 64 on a GPU and 8 elsewhere.
        regions: of each image, the whole one not counted.
        shortest: tokens of the shortest text, start and end counted.
        longest: tokens of the longest.
        compiled: also measure what torch.compile makes of theirs, which is slow to start.
    """

    known = ("torch", "torch-compiled")

    work: Literal["both", "train", "infer"] = "both"
    size: Literal["auto", "small", "base"] = "auto"
    batch: int | None = None
    regions: int = 36
    shortest: int = 12
    longest: int = 28
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "regions", "shortest", *(["batch"] if self.batch is not None else []))
        most = self.config.longest
        if not self.shortest <= self.longest <= most:
            found = f"shortest={self.shortest}, longest={self.longest}"
            raise ConfigError(f"{found}: longest must be the larger, and {most} at most")
        if self.batch == 1:
            raise ConfigError("batch=1 leaves no text a wrong image; give 2 or more")

    @property
    def config(self) -> VilbertConfig:
        """Nothing dropped by chance, so that all compute the same."""
        base = self.size == "base" or (self.size == "auto" and self.on_gpu)
        config = PRESETS["vilbert-base"] if base else SMALL
        assert isinstance(config, VilbertConfig)
        return replace(config, dropout=0.0, frozen=True)

    @property
    def pairs(self) -> int:
        return self.batch or (64 if self.on_gpu else 8)

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all(self._entries(machine), tell)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        contenders = _Readers.of(self)
        works = {"train": contenders.training, "infer": contenders.reading}
        for work, take_part in works.items():
            if self.work in ("both", work):
                yield self._job(machine, work, contenders), list(take_part())

    def _job(self, machine: Machine, work: str, given: "_Readers") -> Workload:
        config, features = self.config, given.model.image_encoder.features
        lengths, seen = given.batch.text.lengths.tolist(), self.regions + 1
        trains = work == "train"
        flops = joint_flops(config, features, lengths, seen, passes=2 if trains else 1)
        if trains:
            told = hidden_flops(config, len(given.batch.at), seen * self.pairs, features)
            flops = BACKWARD * (flops + told)
        does = {"train": "one update of", "infer": "one reading by"}[work]
        return Workload(
            title=f"{does} a ViLBERT: {self.regions} regions and {self.shortest} to {self.longest} "
            f"tokens in a pair, width {config.width} and {config.region_width}, {self.arithmetic}",
            tokens=self.pairs,
            floor_seconds=flops / machine.flops,
            against="torch",
            agreement="Δ loss" if trains else "Δ logits",
            repeats=self.repeats,
            unit="pairs",
        )


class GivenPairs(NamedTuple):
    """Texts, the regions of their images, and what is hidden and drawn, all given beforehand."""

    text: Rows
    types: Int[Tensor, " words"]
    regions: RegionRows
    at: Int[Tensor, " hidden"]
    labels: Int[Tensor, " hidden"]
    chosen: Bool[Tensor, " total"]
    emptied: Bool[Tensor, " total"]
    kinds: Int[Tensor, " total"]
    of: Int[Tensor, " B"]
    other: Int[Tensor, " B"]  # a wrong image
    tokens: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.text.shape

    def to(self, device: torch.device) -> "GivenPairs":
        lengths = self.text.lengths  # stay on the CPU

        def move(x: Any) -> Any:
            return x.to(device) if isinstance(x, Tensor) else x

        moved: GivenPairs = tree_map(move, self)
        return moved._replace(text=moved.text._replace(lengths=lengths))

    def pinned(self) -> "GivenPairs":
        return self

    @classmethod
    def draw(cls, bench: JointBench, features: int) -> "GivenPairs":
        """Words, features and boxes by chance."""
        torch.manual_seed(bench.seed)
        config, count = bench.config, bench.pairs
        lengths = torch.randint(bench.shortest, bench.longest + 1, (count,))
        text = Rows.of(torch.randint(config.vocabulary, (int(lengths.sum()),)), lengths)
        boxes = torch.rand(count, bench.regions, 2, 2).sort(dim=2).values.flatten(2)
        boxes = torch.cat([torch.tensor(WHOLE).expand(count, 1, 4), boxes], dim=1)
        shown = torch.randn(count, bench.regions + 1, features)
        regions = RegionRows.of(SeenRegions(shown, boxes, REGIONS), None)
        at = (torch.rand(len(text.tokens)) < MASKED).nonzero()[:, 0]
        kinds = torch.randint(max(1, config.region_classes), (len(regions.boxes),))
        of = torch.arange(count)
        return cls(
            text,
            torch.zeros_like(text.tokens),
            regions,
            at,
            torch.randint(config.vocabulary, at.shape),
            *choose_regions(regions, overlap=True),
            kinds,
            of,
            (of + 1) % count,
            count,
        )

    def padded(self) -> tuple[Tensor, ...]:
        """What the plain model reads: texts, types, what is real, features and boxes."""
        rows, B = self.text, len(self.of)
        real = rows.rectangle(torch.ones_like(rows.tokens)).bool()
        features, boxes = (x.unflatten(0, (B, -1)) for x in self.regions[:2])
        return rows.padded(), rows.rectangle(self.types), real, features, boxes

    def hidden(self) -> tuple[Tensor, ...]:
        """And what it is asked: `at` is counted along the rectangle."""
        B, longest = len(self.of), int(self.text.lengths.max())
        at = self.text.sequences[self.at] * longest + self.text.places[self.at]
        rows = (x.unflatten(0, (B, -1)) for x in (self.chosen, self.emptied, self.kinds))
        return at, self.labels, *rows, self.other


class Pretrain(SameBatch[GivenPairs]):
    """Hidden words and regions, and whether a text fits."""

    def losses(self, model: Any, batch: GivenPairs) -> dict[str, Float[Tensor, ""]]:
        regions = batch.regions
        alone = model.alone(batch.text, batch.types, regions.hidden(batch.emptied))
        found = model.joined(alone, batch.of)
        wrong = model.fits(model.joined(alone, batch.other)).float()
        classes = torch.arange(model.config.region_classes, device=batch.kinds.device)
        chosen, true = batch.chosen, (batch.kinds[:, None] == classes).float()
        losses = {
            "words": hidden_words(model, found, batch.at, batch.labels),
            "regions": hidden_regions(model, found, regions, chosen, true, batch.tokens),
            "fit": fit_loss(model.fits(found).float(), wrong),
        }
        return {name: loss * batch.tokens for name, loss in losses.items()}


@dataclass(frozen=True)
class _Readers:
    """What all contenders share."""

    bench: JointBench
    model: Vilbert
    batch: GivenPairs

    @classmethod
    def of(cls, bench: JointBench) -> "_Readers":
        torch.manual_seed(bench.seed)
        model = bench.config.build().to(bench.where)
        assert isinstance(model, Vilbert)
        return cls(
            bench, model, GivenPairs.draw(bench, model.image_encoder.features).to(bench.where)
        )

    @property
    def padding(self) -> float:
        """Of the words; there is none among the regions."""
        lengths = self.batch.text.lengths
        return 1 - int(lengths.sum()) / (len(lengths) * int(lengths.max()))

    def training(self) -> Iterator[Contender]:
        def ours() -> CheckedWork:
            return CheckedWork(updates(self.bench, self.model, Pretrain(self.batch)))

        yield Contender(SACCADE, ours, padding=0.0)
        yield from self._peers(self._update)

    def reading(self) -> Iterator[Contender]:
        def ours() -> CheckedWork:
            model = copy.deepcopy(self.model).eval().to(self.precision)
            batch = self.batch
            features = batch.regions.features.to(self.precision)
            regions = batch.regions._replace(features=features)
            return self._read(lambda: model.fits(model(batch.text, batch.types, regions, batch.of)))

        yield Contender(SACCADE, ours, padding=0.0)
        yield from self._peers(self._found)

    @property
    def precision(self) -> torch.dtype:
        return PRECISIONS[self.bench.arithmetic]

    def _peers(self, ready: Callable[[PlainVilbert, bool], CheckedWork]) -> Iterator[Contender]:
        for form in ("", "-compiled") if self.bench.compiled else ("",):
            make = partial(self._peer, ready, compiled=bool(form))
            yield Contender(f"torch{form}", make, padding=self.padding)

    def _peer(
        self, ready: Callable[[PlainVilbert, bool], CheckedWork], *, compiled: bool
    ) -> CheckedWork:
        model = PlainVilbert(self.bench.config, self.model.image_encoder.features).to(
            self.bench.where
        )
        copy_weights(self.model, model)
        return ready(model, compiled)

    @cached_property
    def loss(self) -> float:
        """Ours, in float32."""
        with torch.no_grad():
            losses = Pretrain(self.batch).losses(self.model, self.batch).values()
            return sum(part.item() for part in losses) / self.batch.tokens

    def _update(self, model: PlainVilbert, compiled: bool) -> CheckedWork:
        given = (*self.batch.padded(), *self.batch.hidden())
        loss = PlainPretraining(model).train()
        with torch.no_grad():
            differs = abs(loss(*given).item() - self.loss)
        run = torch.compile(loss) if compiled else loss
        return CheckedWork(training_steps(self.bench, model, lambda: run(*given)), differs)

    def _found(self, model: PlainVilbert, compiled: bool) -> CheckedWork:
        model.eval().to(self.precision)
        tokens, types, real, features, boxes = self.batch.padded()
        features = features.to(self.precision)

        def fits(*given: Tensor) -> Tensor:
            return model.fits(*model.joined(*model.alone(*given), given[2]))

        run = torch.compile(fits) if compiled else fits
        return self._read(lambda: run(tokens, types, real, features, boxes))

    def _read(self, run: Callable[[], Tensor]) -> CheckedWork:
        """Logits of: the text is about the image."""

        def fits() -> Tensor:
            with torch.no_grad():
                return run()

        def work() -> None:
            for _ in range(self.bench.repeats):
                fits()

        batch = self.batch
        with torch.no_grad():
            found = self.model.eval()(batch.text, batch.types, batch.regions, batch.of)
            expected = self.model.fits(found)
        return CheckedWork(work, (fits().float() - expected).abs().max().item())

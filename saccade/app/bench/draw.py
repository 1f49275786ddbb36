"""`saccade bench draw`: images drawn by a DALL·E, code by code, beside DALLE-pytorch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from saccade.app.bench.floor import PRECISIONS, Machine, drawing_floor
from saccade.app.bench.ours import drawn_images
from saccade.app.bench.peers import dalle as peers
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.settings import Entries, RaceSettings
from saccade.data.readers.report import counted
from saccade.data.tokens.vocabulary import CONTROL
from saccade.errors import ConfigError
from saccade.models.image_tokens.dalle import Dalle, DalleConfig
from saccade.tasks.text_to_image.task import FRAME

CONFIGS = {
    "small": DalleConfig(vocabulary=1000, text=32, codes=512, grid=8, width=128, depth=4, heads=4),
    "large": DalleConfig(vocabulary=16384, width=2048, depth=24, heads=16),
}
SIZES = ("vocabulary", "text", "codes", "grid", "width", "depth", "heads")


@dataclass(frozen=True, kw_only=True)
class DrawBench(RaceSettings):
    """Measure how long a DALL·E draws images: their texts are read, then every code is drawn.

    What becomes of the codes, the discrete VAE's part, is left out. The floor is the time to read
    all weights at every step, and of each image the keys and values that its layers may see.

    Peer: DALLE-pytorch (dalle-pytorch) with layers that see about as much, `generate_images` with
    its defaults. It draws four codes of each image, in the middle of its quarters, and its time is
    reckoned from these: all would take it minutes.

    Args:
        size: of the model: small (width 128, 4 layers, 8×8 codes) or large (width 2048, 24 layers,
            1.3 billion weights, 32×32 of 8,192 codes after 256 tokens); auto is large on a GPU.
        batch: images that are drawn together, a table for each.
        vocabulary: how many words.
        text: tokens of a text.
        codes: how many there are to choose from.
        grid: codes across and down.
        width: of the vectors.
        depth: layers.
        heads: of each attention.
        profile: also say how long each kind of kernel takes, and what lies between them.
    """

    known = ("dalle-pytorch",)

    size: Literal["auto", "small", "large"] = "auto"
    batch: tuple[int, ...] = (1, 64)
    vocabulary: int | None = None
    text: int | None = None
    codes: int | None = None
    grid: int | None = None
    width: int | None = None
    depth: int | None = None
    heads: int | None = None
    profile: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.batch) < 1:
            found = " ".join(map(str, self.batch))
            raise ConfigError(f"batch={found} must be numbers of images, 1 or more each")
        if self.config.text <= FRAME:
            raise ConfigError(f"text={self.text} has no place for a word; give {FRAME + 1} or more")
        if self.config.vocabulary <= len(CONTROL):
            raise ConfigError(
                f"vocabulary={self.vocabulary} has no word; give {len(CONTROL) + 1} or more"
            )

    @property
    def config(self) -> DalleConfig:
        """The sizes that were given in place of the model's own."""
        large = self.size == "large" or (self.size == "auto" and self.on_gpu)
        given: dict[str, Any] = {
            name: vars(self)[name] for name in SIZES if vars(self)[name] is not None
        }
        return replace(CONFIGS["large" if large else "small"], **given)

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all(self._entries(machine), tell, profiled=self.profile)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        contenders = _Drawers.of(self)
        for batch in self.batch:
            yield self._job(machine, batch), list(contenders.drawing(batch))

    def _job(self, machine: Machine, batch: int) -> Workload:
        config, number_bytes = self.config, PRECISIONS[self.arithmetic].itemsize
        return Workload(
            title=f"{counted(batch, 'image')} of {config.grid}×{config.grid} codes drawn "
            f"after {config.text} tokens of text, width {config.width}, {config.depth} layers, "
            f"{self.inference}",
            tokens=batch * config.cells,
            floor_seconds=drawing_floor(config, batch, machine, number_bytes),
            against="dalle-pytorch",
            unit="codes",
        )


@dataclass(frozen=True)
class _Drawers:
    """What all contenders share."""

    bench: DrawBench
    model: Dalle  # in float32

    @classmethod
    def of(cls, bench: DrawBench) -> "_Drawers":
        torch.manual_seed(bench.seed)
        with bench.where:  # fresh weights are drawn there
            return cls(bench, bench.config.build().eval())

    def drawing(self, batch: int) -> Iterator[Contender]:
        words = self._words(batch)

        def ours() -> CheckedWork:
            return CheckedWork(drawn_images(self.model, words, precision=self.bench.inference))

        def theirs() -> CheckedWork:
            config, device = self.bench.config, self.bench.where
            with device:
                model = peers.make_dalle(config).to(PRECISIONS[self.bench.arithmetic])
            filled = F.pad(words, (0, config.text - words.shape[1])).to(device)
            begun = torch.randint(config.codes, (batch, config.cells), device=device)
            work = peers.SomeCodes(model, filled, begun)
            return CheckedWork(work, share=work.share)

        yield Contender(SACCADE, ours)
        yield Contender("dalle-pytorch", theirs, peers.NEEDS)

    def _words(self, batch: int) -> Int[Tensor, "B n"]:
        """Texts as long as they may be, none of which has a control token."""
        rng, config = torch.Generator().manual_seed(self.bench.seed), self.model.config
        return torch.randint(
            len(CONTROL), config.vocabulary, (batch, config.text - FRAME), generator=rng
        )

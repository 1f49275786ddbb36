"""Swin: a Vision Transformer that looks within windows, every other time across their borders.

Liu et al. 2021, arXiv:2103.14030. Departs from the authors' code in reading images of any size and
aspect: where windows do not tile the map, cells that are none are looked at by nobody.

For few images (Lee et al. 2021, arXiv:2112.13492) patches and what is merged overlap, and attention
is local. It departs from their code in having no absolute positions beside the relative ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.attend import fused
from saccade.attention.axes import Axis
from saccade.attention.kernels.train.linear import Linear
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.parameters import FREE, Role
from saccade.attention.tables import kept_table
from saccade.blocks.dropout import Dropout, growing
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.patches import CORNERS, Patches, ShiftedPatches, to_corners
from saccade.blocks.stack import run_blocks
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig, tiles

EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class SwinConfig(ImageEncoderConfig):
    """Sizes of a Swin Transformer. Stage s has cells of `patch` · 2ˢ⁻¹ pixels.

    Args:
        patch: side of a patch in pixels.
        width: of the first stage; each is twice as wide as the one before.
        depths: blocks of each stage.
        heads: of each stage.
        window: side of a window in cells.
        expansion: how much wider the MLPs are inside.
        dropout: of what the patches are, and of what each block adds.
        drop_path: how often the last block is left out for an image; those before it less often.
        reads: patches as they are, or with shifted copies of the image, and of each map merged.
        local: attention with a learnt temperature for each head, in which no cell sees itself.
    """

    patch: int = 4
    width: int = 96
    depths: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    window: int = 7
    expansion: int = 4
    dropout: float = 0.0
    drop_path: float = 0.0
    reads: Literal["patches", "shifted"] = "patches"
    local: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "patch", "width", "window", "expansion")
        check_fraction(self, "dropout", "drop_path")
        if len(self.depths) != len(self.heads) or not self.depths:
            raise ConfigError(f"depths={self.depths} and heads={self.heads} must be as many")
        if min(*self.depths, *self.heads) < 1:
            raise ConfigError(f"depths={self.depths} and heads={self.heads} must be at least 1")
        for stage, heads in enumerate(self.heads):
            if (self.width << stage) % heads:
                raise ConfigError(
                    f"stage {stage + 1} is {self.width << stage} wide, which does not divide into "
                    f"heads={heads}"
                )

    def build(self) -> "Swin":
        return Swin(self)


class MapWindows(NamedTuple):
    """How a map of cells is cut: the windows' shape, how far it is rolled before, who sees whom."""

    height: int
    width: int
    window: tuple[int, int]
    shift: tuple[int, int]

    @classmethod
    def over(cls, height: int, width: int, side: int, *, shifted: bool) -> "MapWindows":
        """A side that is no longer than a window is one, and is not shifted."""
        sizes = (height, width)
        shift = tuple(side // 2 if shifted and size > side else 0 for size in sizes)
        return cls(height, width, tuple(min(side, size) for size in sizes), shift)  # type: ignore[arg-type]

    def mask(self, device: torch.device) -> Bool[Tensor, "windows 1 T T"] | None:
        """Who may look at whom; None where all may."""
        whole = all(size % window == 0 for size, window in zip(self[:2], self.window))
        if whole and self.shift == (0, 0):
            return None
        return _mask(self, device)

    def cut(self, x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B windows T D"]:
        """The cells of each window, in reading order."""
        (high, wide), (down, across) = self.window, self.shift
        x = F.pad(x, (0, 0, 0, -self.width % wide, 0, -self.height % high))
        if self.shift != (0, 0):
            x = x.roll((-down, -across), dims=(1, 2))
        x = x.unflatten(2, (-1, wide)).unflatten(1, (-1, high))  # (B, rows, high, columns, wide, D)
        return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)

    def joined(self, x: Float[Tensor, "B windows T D"]) -> Float[Tensor, "B h w D"]:
        """The map again."""
        (high, wide), columns = self.window, -(-self.width // self.window[1])
        x = x.unflatten(1, (-1, columns)).unflatten(3, (high, wide)).transpose(2, 3)
        x = x.flatten(3, 4).flatten(1, 2)
        if self.shift != (0, 0):
            x = x.roll(self.shift, dims=(1, 2))
        return x[:, : self.height, : self.width]


@kept_table
def _mask(windows: MapWindows, device: torch.device) -> Bool[Tensor, "windows 1 T T"]:
    height, width, window, shift = windows
    return masks.shifted_windows(height, width, window, shift, device=device)


@kept_table
def _others(cells: int, device: torch.device) -> Bool[Tensor, "1 1 T T"]:
    return masks.not_itself(cells, cells, device=device)


@kept_table
def relative_index(window: tuple[int, int], side: int, device: torch.device) -> Int[Tensor, "T T"]:
    """Which row of a table of (2 side − 1)² offsets belongs to each pair of cells.

    (Δy + side − 1) · (2 side − 1) + Δx + side − 1
    """
    y, x = torch.meshgrid(*(torch.arange(size, device=device) for size in window), indexing="ij")
    down, across = (one.flatten()[:, None] - one.flatten()[None, :] for one in (y, x))
    return (down + side - 1) * (2 * side - 1) + across + side - 1


class WindowAttention(MultiHeadAttention):
    """Attention within windows, with a learnt number for each head and each offset.

    softmax(q kᵀ / √K + B) v
    """

    def __init__(self, width: int, *, heads: int, window: int, local: bool = False) -> None:
        axis = Axis("image", "window", window, window)
        super().__init__(width, heads=heads, rows=axis, columns=axis, local=local)
        self.window = window
        self.offsets = nn.Parameter(torch.empty((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.offsets, std=0.02)

    def roles(self) -> dict[str, Role]:
        return {"offsets": FREE}

    def within(
        self, x: Float[Tensor, "B windows T D"], windows: MapWindows
    ) -> Float[Tensor, "B windows T D"]:
        """What the cells of each window read of one another.

        MapWindows lie beside the heads, so that one bias serves all images.
        """
        batch, count = x.shape[:2]
        q, k, v = self._fused_qkv(x.flatten(0, 1))  # (B · windows, N, T, K)
        index = relative_index(windows.window, self.window, x.device)
        bias = self.offsets[index].permute(2, 0, 1)[None]  # (1, N, T, T)
        mask, scale = windows.mask(x.device), None
        if self.watcher is not None:
            each = None if mask is None else mask.repeat(batch, 1, 1, 1)
            heads = self.attended(q, k, v, mask=each, bias=bias)
            return heads.transpose(1, 2).flatten(2).unflatten(0, (batch, count))
        if self.locality is not None:
            q, scale = self.locality.sharpened(q), 1.0
            mask = masks.both(mask, _others(x.shape[2], x.device))
        if mask is not None:
            bias = bias.expand(len(mask), -1, -1, -1).masked_fill(~mask, -torch.inf)
        if len(bias) > 1:
            bias = bias.flatten(0, 1)[None]
            q, k, v = (one.unflatten(0, (batch, count)).flatten(1, 2) for one in (q, k, v))
        heads = fused(q, k, v, bias=bias, scale=scale)
        heads = heads.view(batch, count, self.heads, -1, self.head_width)
        return heads.transpose(2, 3).flatten(3)


@dataclass(frozen=True)
class WindowedMap:
    """A map as blocks look at it: within windows, every other block within shifted ones.

    Its cells lie `pixels` apart.
    """

    side: int
    pixels: float

    def look_back(
        self, layer: int, site: WindowAttention, x: Float[Tensor, "B h w D"]
    ) -> Float[Tensor, "B h w D"]:
        windows = MapWindows.over(x.shape[1], x.shape[2], self.side, shifted=layer % 2 == 1)
        high, wide = windows.window
        if site.watcher is not None:
            axis = Axis("image", "window", high, wide, pixels=self.pixels, windows=windows)
            site.rows = site.columns = axis
        elif site.takes_windows(x, high * wide):
            return site.read_windows(x, (high, wide), windows.shift, site.offsets)
        return windows.joined(site.within(windows.cut(x), windows))

    def look_across(self, layer: int, site: object, x: Tensor) -> Tensor:
        raise AssertionError("there is nothing else to look at")


class PatchMerging(nn.Module):
    """Four neighbours become one cell, twice as wide.

    y = W norm([x₀₀; x₁₀; x₀₁; x₁₁])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width, EPSILON)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B h2 w2 D2"]:
        return self.reduce(self.norm(neighbours(_even(x))))


class ShiftedMerging(nn.Module):
    """The same where neighbourhoods overlap: also of the map moved to each corner by a cell.

    y = W norm([x; ↖x; ↗x; ↙x; ↘x], each as x₀₀; x₁₀; x₀₁; x₁₁) + b
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        inputs = 4 * (1 + len(CORNERS)) * width
        self.norm = nn.LayerNorm(inputs, EPSILON)
        self.reduce = nn.Linear(inputs, 2 * width)

    def forward(self, x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B h2 w2 D2"]:
        maps = _even(x).permute(0, 3, 1, 2)
        copies = [neighbours(one.permute(0, 2, 3, 1)) for one in (maps, *to_corners(maps, 1))]
        return self.reduce(self.norm(torch.cat(copies, dim=-1)))


MERGES: dict[str, type[nn.Module]] = {"patches": PatchMerging, "shifted": ShiftedMerging}


def _even(x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B he we D"]:
    """Filled up with zeros to whole pairs of cells."""
    return F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))


def neighbours(x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B h2 w2 D4"]:
    """Each four cells that lie together as one: [x₀₀; x₁₀; x₀₁; x₁₁]."""
    four = [x[:, down::2, across::2] for across in (0, 1) for down in (0, 1)]
    return torch.cat(four, dim=-1)


class SwinStage(nn.Module):
    """Merge, but for the first; then blocks over windows."""

    def __init__(self, config: SwinConfig, number: int, rates: Iterator[float]) -> None:
        super().__init__()
        width, side = config.width << number, config.window
        self.side, heads = side, config.heads[number]
        self.pixels = float(config.patch << number)
        self.merge = MERGES[config.reads](width // 2) if number else nn.Identity()
        self.blocks = nn.ModuleList(
            EncoderLayer(
                width,
                heads=heads,
                hidden=config.expansion * width,
                dropout=config.dropout,
                residual="pre",
                epsilon=EPSILON,
                activation=F.gelu,
                attention=WindowAttention(width, heads=heads, window=side, local=config.local),
                drop_path=next(rates),
            )
            for _ in range(config.depths[number])
        )

    def forward(self, x: Float[Tensor, "B h w D"], last: nn.Module) -> Float[Tensor, "B h2 w2 D2"]:
        """The map after it, and after the norm of what follows it, `last`."""
        x = self.merge(x)
        return run_blocks(self.blocks, last, x, WindowedMap(self.side, self.pixels))


class Swin(ImageEncoder):
    """Patches → stages, each half as fine as the one before → mean over the map → class scores."""

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        self.config = config
        shifted = config.reads == "shifted"  # which norms before it projects
        self.patches = (ShiftedPatches if shifted else Patches)(config.width, side=config.patch)
        self.patch_norm = nn.Identity() if shifted else nn.LayerNorm(config.width, EPSILON)
        self.dropout = Dropout(config.dropout)
        rates = growing(config.drop_path, sum(config.depths))
        self.parts = nn.ModuleList(
            SwinStage(config, number, rates) for number in range(len(config.depths))
        )
        self.norm = nn.LayerNorm(self.channels(), EPSILON)
        self.head = Linear(self.channels(), config.classes) if config.classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:  # type: ignore[redundant-expr]
                    nn.init.zeros_(module.bias)

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return len(self.parts)

    def channels(self, stage: int | None = None) -> int:
        return self.config.width << (self.checked(stage) - 1)

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The map after a stage, normalised after the last."""
        return self._map(image, self.checked(stage)).permute(0, 3, 1, 2)

    def _map(self, image: Float[Tensor, "B 3 H W"], stage: int) -> Float[Tensor, "B h w C"]:
        side = self.config.patch
        image = F.pad(image, (0, -image.shape[3] % side, 0, -image.shape[2] % side))
        x = self.patches(image).unflatten(1, self.patches.shape(image))  # (B, h, w, D)
        return self._between(self.dropout(self.patch_norm(x)), 0, stage)

    def _between(self, x: Float[Tensor, "B h w C"], after: int, to: int) -> Tensor:
        for number, part in enumerate(self.parts[after:to], start=after + 1):
            x = part(x, self.norm if number == self.stages else nn.Identity())
        return x

    def onward(
        self, grid: Float[Tensor, "B C h w"], after: int, to: int
    ) -> Float[Tensor, "B D i j"]:
        return self._between(grid.permute(0, 2, 3, 1), after, to).permute(0, 3, 1, 2)

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return tiles(self.config.patch << (self.checked(stage) - 1))

    def drop_after(self, stage: int) -> None:
        if self.checked(stage) < self.stages:
            del self.parts[stage:]
            self.norm = nn.Identity()

    def layers_upwards(self) -> list[nn.Module]:
        return [block for part in self.parts for block in part.get_submodule("blocks").children()]

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self._map(image, self.stages).mean(dim=(1, 2))

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.head(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        grid, stage = self.grid(image, stage), self.checked(stage)
        last = self._between(grid.permute(0, 2, 3, 1), stage, self.stages)
        return grid, self.head(last.mean(dim=(1, 2)))


def _sized(width: int, depth: int, heads: int, drop_path: float) -> SwinConfig:
    return SwinConfig(
        width=width,
        depths=(2, 2, depth, 2),
        heads=(heads, 2 * heads, 4 * heads, 8 * heads),
        drop_path=drop_path,
    )


# As published for images of 32 pixels; for 64 the patches are twice as large.
_blocks = {"depths": (2, 6, 4), "heads": (3, 6, 12)}
_few = partial(SwinConfig, patch=2, **_blocks, window=4, expansion=2, drop_path=0.1)

PRESETS: dict[str, SwinConfig] = {
    "swin-nano": SwinConfig(width=48, depths=(2, 2), heads=(3, 6), window=4, expansion=2),
    "swin-32": _few(),
    "sl-swin-32": _few(reads="shifted", local=True),
    "swin-64": _few(patch=4),
    "sl-swin-64": _few(patch=4, reads="shifted", local=True),
    "swin-t": _sized(96, 6, 3, 0.2),
    "swin-s": _sized(96, 18, 3, 0.3),
    "swin-b": _sized(128, 18, 4, 0.5),
    "swin-l": _sized(192, 18, 6, 0.5),
}

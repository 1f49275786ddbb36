"""Vision Transformer: cut the picture into patches and read patches as words.

Dosovitskiy et al. 2021, arXiv:2010.11929. Departs from the paper in having no layer between the
class token and the class scores, as its authors do when they fine-tune, and in what it starts from:
a patch first looks at what is like it and beside it, as in trained ones (Trockman and Kolter 2023,
arXiv:2305.09828), where the paper leaves it to find out which patches are neighbours.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.kernels.train.linear import Linear
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer, carried, through
from saccade.blocks.patches import Patches, placed, resized
from saccade.blocks.positions import sinusoids_2d
from saccade.blocks.residual import added_norm
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig

SLOWEST = 20.0  # a wave of the first positions is no longer than some pictures side by side


@dataclass(frozen=True, kw_only=True)
class VitConfig(ImageEncoderConfig):
    """Sizes of a Vision Transformer. `image` is the side of the pictures it learns positions for.

    `epsilon` is that of the norms; weights trained by others may want another.
    """

    image: int = 224
    patch: int = 16
    width: int = 192
    depth: int = 12
    heads: int = 3
    dropout: float = 0.0
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "image", "patch", "width", "depth", "heads")
        check_fraction(self, "dropout")
        if self.image % self.patch:
            raise ConfigError(f"patch={self.patch} does not tile image={self.image}")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def side(self) -> int:
        """How many patches lie along a side of the picture."""
        return self.image // self.patch

    def build(self) -> "Vit":
        return Vit(self)


class Vit(ImageEncoder):
    """Patches + positions → encoder → the class token → class scores.

        x = [class; patches] + P        y = norm(blocks(x))        scores = W y_class + b

    Pictures of any size that patches tile are read, with positions in between the learnt ones.
    Stage s is what is known after block s; after the last it is normalised.
    """

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = Patches(config.width, side=config.patch)
        self.class_token = nn.Parameter(0.02 * torch.randn(config.width))
        self.positions = nn.Parameter(torch.zeros(1 + config.side**2, config.width))
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(
                config.width,
                heads=config.heads,
                hidden=4 * config.width,
                dropout=config.dropout,
                residual="pre",
                epsilon=config.epsilon,
                activation=F.gelu,
                axis=_axis(config.side, config.side),
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.head = Linear(config.width, config.classes) if config.classes else nn.Identity()
        self._initialise()

    def _initialise(self) -> None:
        """Xavier's, as the authors have it, between vectors; pixels keep their variance.

        Positions start as sines, and keys as queries: what is alike attends to each other.
        """
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif name == "patches.project.weight":
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
            elif parameter.dim() == 2 and name != "positions":
                nn.init.xavier_uniform_(parameter)
        config = self.config
        with torch.no_grad():
            sines = sinusoids_2d(config.side, config.side, config.width, SLOWEST)
            self.positions[1:] = sines.flatten(0, 1)
            for layer in self.encoder:
                assert isinstance(layer, EncoderLayer)
                attention = layer.self_attention
                attention.to_k.weight.copy_(attention.to_q.weight)

    steady = True  # the same kernels for all pictures of a size: an update can be recorded

    @property
    def stages(self) -> int:
        return len(self.encoder)

    def channels(self, stage: int | None = None) -> int:
        self.checked(stage)
        return self.config.width

    def tokens(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B T D"]:
        """What is known at the class token and, after it, at each patch in reading order."""
        stage = self.checked(stage)
        x, layers = self._start(image), self.encoder[:stage]
        if stage < self.stages or not isinstance(self.norm, nn.LayerNorm):
            for layer in layers:
                x = layer(x)
            return x
        return through(layers, x, self.norm)

    def _start(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B T D"]:
        """What goes into the first block; who watches the blocks is told the picture's grid."""
        shape = self.patches.shape(image)
        for layer in self.encoder:
            assert isinstance(layer, EncoderLayer)
            site = layer.self_attention
            if site.watcher is not None:
                site.rows = site.columns = _axis(*shape)
        places, first = self.places(image)
        return self.dropout(placed(first, self.patches(image), places[1:]))  # (B, 1 + P, D)

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """What is known at each patch: h = H / patch, C the model's width at every stage."""
        patches = self.tokens(image, stage)[:, 1:]
        return patches.mT.unflatten(2, self.patches.shape(image))

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        side = float(self.config.patch)
        return side / 2, side

    def drop_after(self, stage: int) -> None:
        if self.checked(stage) < self.stages:
            del self.encoder[stage:]
            self.norm = nn.Identity()

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        """What is known at the class token.

        Of the last block nothing else is computed: all others are only looked at there.
        """
        *before, last = self.encoder
        assert isinstance(last, EncoderLayer)
        x, change = carried(before, self._start(image))
        around = last.around_attention
        if change is None:
            normed = around.norm(x)
        else:
            assert isinstance(around.norm, nn.LayerNorm)
            normed, x = added_norm(x, change, around.norm)
        seen = _from_class(last.self_attention, normed)
        x = last.around_mlp(x[:, :1] + around.dropout(seen), last.mlp)
        return self.norm(x)[:, 0]

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.head(self.pooled(image))

    def places(
        self, image: Float[Tensor, "B 3 H W"]
    ) -> tuple[Float[Tensor, "T D"], Float[Tensor, " D"]]:
        """The position of each token of such a picture, and the class token at its own."""
        side, shape = self.config.side, self.patches.shape(image)
        places = self.positions
        if shape != (side, side):
            cells = resized(self.positions[1:], (side, side), shape)
            places = torch.cat([self.positions[:1], cells])
        return places, self.class_token + places[0]


def _from_class(attention: MultiHeadAttention, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B 1 D"]:
    """What the class token reads. Who watches is shown what all would: they need not know."""
    watcher, attention.watcher = attention.watcher, None
    try:
        read = attention(x[:, :1], x)
    finally:
        attention.watcher = watcher
    if watcher is not None:
        attention(x, x)
    return read


def _axis(height: int, width: int) -> Axis:
    return Axis("image", "grid", height, width, special=1)


def _small(patch: int) -> VitConfig:
    return VitConfig(width=384, heads=6, patch=patch)


def _base(patch: int) -> VitConfig:
    return VitConfig(width=768, heads=12, patch=patch)


def _large(patch: int) -> VitConfig:
    return VitConfig(width=1024, depth=24, heads=16, patch=patch)


PRESETS: dict[str, VitConfig] = {
    "vit-nano": VitConfig(image=64, patch=8, width=96, depth=3),
    "vit-micro": VitConfig(image=64, patch=8, depth=4),
    "vit-mini": VitConfig(image=64, patch=8, depth=6),
    "vit-ti-16": VitConfig(),
    "vit-s-16": _small(16),
    "vit-s-32": _small(32),
    "vit-b-16": _base(16),
    "vit-b-32": _base(32),
    "vit-l-16": _large(16),
    "vit-l-32": _large(32),
}

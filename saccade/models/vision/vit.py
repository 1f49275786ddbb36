"""Vision Transformer: cut the image into patches and read patches as words.

Dosovitskiy et al. 2021, arXiv:2010.11929. Departs from the paper in having no layer between the
class token and the class scores, as its authors do when they fine-tune, and in what it starts from:
a patch first looks at what is like it and beside it, as in trained ones (Trockman and Kolter 2023,
arXiv:2305.09828), where the paper leaves it to find out which patches are neighbours.

Its relatives are settings. DeiT III (Touvron et al. 2022, arXiv:2204.07118) scales its branches,
leaves them out at the same rate at every depth, and gives the class token no position. For few
images (Lee et al. 2021, arXiv:2112.13492) patches overlap and attention is local. A hybrid reads
the cells of a ResNet instead of patches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.attention.multihead import MultiHeadAttention
from saccade.attention.parameters import FREE, Role
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.patches import Patches, ShiftedPatches, placed, resized
from saccade.blocks.positions import sinusoids_2d
from saccade.blocks.stack import (
    Attending,
    AttentionPass,
    Stack,
    Sublayer,
    WholeSequences,
    any_separate,
    run_blocks,
    stacked,
    sublayers,
)
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import (
    ImageEncoder,
    ImageEncoderConfig,
    halved,
    image_axis,
    require_tiles,
    tiles,
)
from saccade.models.vision.resnet import ResNet, ResNetConfig

CNN_STAGE = 4  # whose cells a hybrid reads: the last but one
SLOWEST = 20.0  # a wave of the first positions is no longer than some images side by side


@dataclass(frozen=True, kw_only=True)
class VitConfig(ImageEncoderConfig):
    """Sizes of a Vision Transformer.

    Args:
        image: side of the images that it learns positions for.
        patch: side of a patch in pixels.
        width: of a token.
        depth: blocks.
        heads: of each block.
        expansion: how much wider the MLPs are inside.
        dropout: of the tokens, and of what each block adds.
        epsilon: of the norms; weights trained by others may want another.
        layer_scale: what the branches are multiplied by at first; 0 leaves that out.
        drop_path: how often a branch is left out for an image.
        class_position: whether the class token has a position.
        biased: whether queries, keys and values have biases.
        reads: patches as they are, with shifted copies of the image, or cells of a CNN.
        local: attention with a learnt temperature for each head, in which no token sees itself.
        cnn: whose cells are read, of its last stage but one.
    """

    image: int = 224
    patch: int = 16
    width: int = 192
    depth: int = 12
    heads: int = 3
    expansion: int = 4
    dropout: float = 0.0
    epsilon: float = 1e-6
    layer_scale: float = 0.0
    drop_path: float = 0.0
    class_position: bool = True
    biased: bool = True
    reads: Literal["patches", "shifted", "cnn"] = "patches"
    local: bool = False
    cnn: ResNetConfig = field(default_factory=partial(ResNetConfig, classes=0))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "image", "patch", "width", "depth", "heads", "expansion")
        check_fraction(self, "dropout", "drop_path")
        cell = 1 << self.cnn.halvings(CNN_STAGE)
        if self.reads == "cnn" and self.patch != cell:
            raise ConfigError(f"patch={self.patch}: a cell of the CNN is {cell} wide; take {cell}")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def expects(self) -> int | None:
        return self.image

    @property
    def side(self) -> int:
        """How many patches lie along a side of the image."""
        return self.image // self.patch

    @property
    def cells(self) -> tuple[float, float]:
        """In pixels: where the middle of the first patch or cell lies, and how far the next is."""
        return halved(self.cnn.halvings(CNN_STAGE)) if self.reads == "cnn" else tiles(self.patch)

    def check_image(self) -> None:
        require_tiles(self.image, self.patch, fixed=self.reads == "cnn")

    def build(self) -> "Vit":
        self.check_image()
        return Vit(self)


class Vit(ImageEncoder):
    """Patches + positions → encoder → the class token → class scores.

        x = [class; patches] + P        y = norm(blocks(x))        scores = W y_class + b

    Images of any size that patches tile are read, with positions in between the learnt ones.
    Stage s is the hidden state after block s; after the last it is normalised.
    """

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = READERS[config.reads](config)
        self.class_token = nn.Parameter(0.02 * torch.randn(config.width))
        count = config.class_position + config.side**2
        self.positions = nn.Parameter(torch.zeros(count, config.width))
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(
                config.width,
                heads=config.heads,
                hidden=config.expansion * config.width,
                dropout=config.dropout,
                residual="pre",
                epsilon=config.epsilon,
                activation=F.gelu,
                attention=_attention(config),
                layer_scale=config.layer_scale,
                drop_path=config.drop_path,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.head = Linear(config.width, config.classes) if config.classes else nn.Identity()
        self._initialise()

    def roles(self) -> dict[str, Role]:
        return {"positions": FREE}

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
        with torch.no_grad(), torch.device("cpu"):  # where sines are known, if weights are not
            sines = sinusoids_2d(config.side, config.side, config.width, SLOWEST)
            self.positions[int(config.class_position) :] = sines.flatten(0, 1)
            for layer in self.encoder:
                assert isinstance(layer, EncoderLayer)
                attention = layer.self_attention
                attention.to_k.weight.copy_(attention.to_q.weight)

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return len(self.encoder)

    def channels(self, stage: int | None = None) -> int:
        self.checked(stage)
        return self.config.width

    def tokens(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B T D"]:
        """The hidden state at the class token and, after it, at each patch in reading order."""
        stage = self.checked(stage)
        x = self.dropout(self.tokens_of(image, self.patches.cut, self.patches.project))
        last = self.norm if stage == self.stages else nn.Identity()
        return run_blocks(self.encoder[:stage], last, x, ImageTokens())

    def tokens_of(
        self,
        image: Float[Tensor, "B 3 H W"],
        cut: Callable[[Tensor], Tensor],
        project: Callable[[Tensor], Tensor],
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "B T D"]:
        """What goes into the first block; who watches the blocks is told the image's grid."""
        shape = self.patches.shape(image)
        for layer in self.encoder:
            assert isinstance(layer, EncoderLayer)
            site = layer.self_attention
            if site.watcher is not None:
                site.rows = site.columns = image_axis(shape, self.cells(), special=1)
        places, first = self.places(image)
        pixels = cut(image)
        patches = project(pixels.flatten(0, 1)).unflatten(0, pixels.shape[:2])  # (B, P, D)
        return placed(first, patches, places.to(dtype or places.dtype))  # (B, 1 + P, D)

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The hidden state at each patch: h = H / patch, C the model's width at every stage."""
        patches = self.tokens(image, stage)[:, 1:]
        return patches.mT.unflatten(2, self.patches.shape(image))

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return self.config.cells

    def drop_after(self, stage: int) -> None:
        if self.checked(stage) < self.stages:
            del self.encoder[stage:]
            self.norm = nn.Identity()

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.encoder)

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        """The hidden state at the class token.

        Of the last block nothing else is computed: all others are only looked at there. One that is
        called by itself computes all.
        """
        if any_separate(self.encoder):
            return self.tokens(image)[:, 0]
        x = self.dropout(self.tokens_of(image, self.patches.cut, self.patches.project))
        stack = stacked(self.class_sublayers(), self.norm, x)
        return class_features(stack, x, ImageTokens())[:, 0]

    def class_sublayers(self) -> list[Sublayer]:
        """Those of all blocks; in the last one only the class token looks."""
        *before, last, think = sublayers(self.encoder)
        assert isinstance(last, Attending)
        return [*before, last._replace(look=LookFromClass), think]

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.head(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        """In the last block too all tokens look; after it the scores need the class token alone."""
        x, after = self.tokens(image, stage), self.checked(stage)
        grid = x[:, 1:].mT.unflatten(2, self.patches.shape(image))
        if after < self.stages:
            x = torch.cat([x[:, :1], grid.flatten(2).mT], dim=1)
            x = run_blocks(self.encoder[after:], self.norm, x, ImageTokens())
        return grid, self.head(x[:, 0])

    def places(
        self, image: Float[Tensor, "B 3 H W"]
    ) -> tuple[Float[Tensor, "P D"], Float[Tensor, " D"]]:
        """The position of each patch of such an image, and the class token at its own."""
        side, shape = self.config.side, self.patches.shape(image)
        if not self.config.class_position:
            return resized(self.positions, (side, side), shape), self.class_token
        cells = resized(self.positions[1:], (side, side), shape)
        return cells, self.class_token + self.positions[0]


class CnnCells(Patches):
    """The cells of a CNN in place of patches.

    xₚ = W · CNN(image)ₚ + b
    """

    def __init__(self, width: int, *, side: int, cnn: ResNet) -> None:
        super().__init__(width, side=side)
        cnn.drop_after(CNN_STAGE)
        self.cnn, self.project = cnn, Linear(cnn.channels(CNN_STAGE), width)

    def roles(self) -> dict[str, Role]:
        return {}  # cells are vectors like any others

    def cut(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B P pixels"]:
        return self.cnn.grid(image, CNN_STAGE).flatten(2).mT.contiguous()


READERS: dict[str, Callable[[VitConfig], Patches]] = {
    "patches": lambda config: Patches(config.width, side=config.patch),
    "shifted": lambda config: ShiftedPatches(config.width, side=config.patch),
    "cnn": lambda config: CnnCells(config.width, side=config.patch, cnn=config.cnn.build()),
}


def _attention(config: VitConfig) -> MultiHeadAttention:
    axis = image_axis((config.side, config.side), config.cells, special=1)
    return MultiHeadAttention(
        config.width,
        heads=config.heads,
        rows=axis,
        columns=axis,
        biased=config.biased,
        local=config.local,
    )


class LookFromClass(AttentionPass):
    """f(x) = Wo · attention(x_class, x)."""

    needs = ("q", "kv")

    def __call__(self, x: Float[Tensor, "*batch D"], memory: Any) -> Tensor:
        return self.output(memory.look_from_class(self.site, x))


class ImageTokens(WholeSequences):
    """A batch of images as it is trained on."""

    def look_from_class(
        self, site: MultiHeadAttention, x: Float[Tensor, "B T D"]
    ) -> Float[Tensor, "B 1 D"]:
        """What the class token reads. Who watches is shown what all would: they need not know."""
        watcher, site.watcher = site.watcher, None
        try:
            read = site.read(x[:, :1], x)
        finally:
            site.watcher = watcher
        if watcher is not None:
            site.read(x, x)
        return read

    def class_tokens(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B 1 D"]:
        return x[:, :1].contiguous()


def class_features(
    stack: Stack, x: Float[Tensor, "*batch D"], memory: Any
) -> Float[Tensor, "*classes D"]:
    """A stack of `class_sublayers`: its last block computes the class tokens alone."""
    *before, (look, add_read), (think, add_thought) = stack.steps
    total, x = Stack(stack.enter, before).sums(x, memory)
    total, x = add_read(memory.class_tokens(total), look(x, memory))
    return add_thought(total, think(x, memory))[1]


_small = partial(VitConfig, width=384, heads=6)
_base = partial(VitConfig, width=768, heads=12)
_large = partial(VitConfig, width=1024, depth=24, heads=16)
_huge = partial(VitConfig, width=1280, depth=32, heads=16, patch=14)
_deit3 = partial(replace, layer_scale=1e-4, class_position=False)
# As published for few images, of 32 pixels; for 64 the patches are twice as large.
_few = partial(
    VitConfig, image=32, patch=4, depth=9, heads=12, expansion=2, drop_path=0.1, biased=False
)
_thin = ResNetConfig(depth=10, width=32, classes=0)


PRESETS: dict[str, VitConfig] = {
    "vit-nano": VitConfig(image=64, patch=8, width=96, depth=3),
    "vit-micro": VitConfig(image=64, patch=8, depth=4),
    "vit-mini": VitConfig(image=64, patch=8, depth=6),
    "vit-ti-16": VitConfig(),
    "vit-s-16": _small(patch=16),
    "vit-s-32": _small(patch=32),
    "vit-b-16": _base(patch=16),
    "vit-b-32": _base(patch=32),
    "vit-l-16": _large(patch=16),
    "vit-l-32": _large(patch=32),
    "vit-h-14": _huge(),
    "deit3-s-16": _deit3(_small(), drop_path=0.05),
    "deit3-m-16": _deit3(VitConfig(width=512, heads=8), drop_path=0.1),
    "deit3-b-16": _deit3(_base(), drop_path=0.2),
    "deit3-l-16": _deit3(_large(), drop_path=0.45),
    "deit3-h-14": _deit3(_huge(), drop_path=0.6),
    "vit-small-data": _few(),
    "sl-vit": _few(reads="shifted", local=True),
    "vit-small-data-64": _few(image=64, patch=8),
    "sl-vit-64": _few(image=64, patch=8, reads="shifted", local=True),
    "hybrid-nano": VitConfig(image=64, width=96, depth=3, reads="cnn", cnn=_thin),
    "hybrid-small-data": _few(reads="cnn", cnn=replace(_thin, stem="small")),
    "hybrid-s-16": _small(reads="cnn"),
    "hybrid-b-16": _base(reads="cnn"),
}

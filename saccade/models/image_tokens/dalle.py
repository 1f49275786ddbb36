"""DALL·E: a text, then the codes of an image, read as one sequence (Ramesh et al. 2021,
arXiv:2102.12092).

Pre-norm blocks whose every layer sees all of the text, and of the image so far its row, its column
or its neighbourhood. A text is filled up to its fixed length by a learned token for each position.
The paper has one output layer for words and codes; here each has its own, for what one position may
say the other never does.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.axes import Axis
from saccade.attention.parameters import FREE, Role
from saccade.attention.sparse import LayerMasks
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.memories import Prefill
from saccade.blocks.initial import initialise_decoder
from saccade.blocks.mlp import gelu_tanh
from saccade.blocks.output import OutputLayer, Readout
from saccade.blocks.positions import Added
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.inference.cached_decoder import CachedDecoder, Encoded
from saccade.models.text.word_decoder import WordDecoder

ROW, COLUMN, NEIGHBOURS = range(3)
SEES = ("row", "column", "neighbourhood")  # what a layer sees of the image, by these numbers


@dataclass(frozen=True, kw_only=True)
class DalleConfig(WordModelConfig):
    """Sizes of a DALL·E.

    Args:
        text: how many tokens a text has, start and end counted; shorter ones are filled up.
        codes: how many there are for a cell of an image; that of the dVAE.
        grid: cells across and down; that of the dVAE.
        width: of a hidden state.
        depth: layers.
        heads: of attention in a layer.
        kernel: the last layer sees so many cells around each, across and down.
        dropout: share of a layer's output that is dropped in training.
    """

    text: int = 256
    codes: int = 8192
    grid: int = 32
    width: int = 512
    depth: int = 8
    heads: int = 8
    kernel: int = 11
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "text", "codes", "grid", "width", "depth", "heads")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise ConfigError(f"kernel={self.kernel} must be odd, as 11: a cell is in its middle")

    @property
    def most_words(self) -> int | None:
        return self.text

    @property
    def cells(self) -> int:
        """Of an image."""
        return self.grid**2

    def build(self) -> "Dalle":
        return Dalle(self)


class TextThenGrid(nn.Module):
    """A learned vector for each position of a text, then for each row and column of an image.

    P = [p₁ … p_T ; rᵢ + cⱼ]
    """

    depends_on_length = False

    def __init__(self, text: int, grid: int, width: int) -> None:
        super().__init__()
        self.text = nn.Parameter(0.02 * torch.randn(text, width))
        self.rows, self.columns = (nn.Parameter(0.02 * torch.randn(grid, width)) for _ in range(2))

    def roles(self) -> dict[str, Role]:
        return {"text": FREE, "rows": FREE, "columns": FREE}

    @property
    def table(self) -> Float[Tensor, "L D"]:
        cells = self.rows[:, None] + self.columns[None]
        return torch.cat([self.text, cells.flatten(0, 1)])

    def forward(self, start: int, count: int) -> Float[Tensor, "T D"]:
        return self.table[start : start + count]

    def at(self, places: Int[Tensor, "*batch"], longest: int) -> Float[Tensor, "*batch D"]:
        """The encoding of each of some positions."""
        return self.table[places]


class Dalle(nn.Module):
    """Words and codes + positions → blocks → the next word, or the next code.

        p(xₜ₊₁ | x₁ … xₜ) = softmax(W y + b)        y = norm(blocks(E[x₁…ₜ] + P[1…t]))

    Tokens are codes first, then words, then what fills up each position of a text.
    """

    capturable = True

    def __init__(self, config: DalleConfig) -> None:
        super().__init__()
        self.config = config
        tokens = config.codes + config.vocabulary + config.text
        self.embedding = nn.Embedding(tokens, config.width)
        self.positions = Added(TextThenGrid(config.text, config.grid, config.width))
        self.dropout = Dropout(config.dropout)
        axis = Axis("image", "grid", config.grid, config.grid, config.text)
        self.decoder = nn.ModuleList(
            EncoderLayer(
                config.width,
                heads=config.heads,
                hidden=4 * config.width,
                dropout=config.dropout,
                residual="pre",
                activation=gelu_tanh,
                axis=axis,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)
        self.to_words = Readout(config.width, config.vocabulary)
        self.to_codes = Readout(config.width, config.codes)
        self.layer_masks = layer_masks(config)
        initialise_decoder(self, config.depth)

    def text_tokens(
        self, words: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]
    ) -> Int[Tensor, "B T"]:
        """Texts of which only the first words count, filled up to the length that all have."""
        first = self.config.codes
        places = torch.arange(self.config.text, device=words.device)
        fills = first + self.config.vocabulary + places
        return torch.where(places < lengths[:, None], first + words, fills)

    def forward(
        self,
        words: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"],
        codes: Int[Tensor, "B n"],
    ) -> Float[Tensor, "B L D"]:
        """The hidden state after each word, what fills up, and each of the first codes."""
        tokens = torch.cat([self.text_tokens(words, lengths), codes], dim=1)
        return self.words.decode(tokens)

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.decoder)

    @property
    def words(self) -> WordDecoder:
        """All of it, as what writes codes."""
        parts = self.embedding, self.positions, self.dropout, self.decoder, self.norm
        return WordDecoder(
            *parts,
            scale=1.0,
            longest=self.config.text + self.config.cells,
            own_output=self.output,
            layer_masks=self.layer_masks,
        )

    @property
    def output(self) -> OutputLayer:
        """Hidden states → logits of the next code."""
        return OutputLayer(self.to_codes.weight, self.to_codes.bias)

    @property
    def word_output(self) -> OutputLayer:
        """Hidden states → logits of the next word."""
        return OutputLayer(self.to_words.weight, self.to_words.bias)

    def for_decoding(self, precision: Precision | None) -> CachedDecoder:
        """Packed once for many steps."""

        def encode(rows: int) -> Encoded:
            return Encoded(None, Prefill((rows, 0)))

        return CachedDecoder(self.words, precision, encode)


def sees_of_image(config: DalleConfig) -> tuple[int, ...]:
    """What each layer sees of the image: layers 2, 6, 10 … its column, the last its
    neighbourhood, all others its row.
    """
    kinds = [COLUMN if (layer - 2) % 4 == 0 else ROW for layer in range(1, config.depth)]
    return (*kinds, NEIGHBOURS)


def layer_masks(config: DalleConfig) -> LayerMasks:
    """Those of all layers."""
    text, grid, kernel = config.text, config.grid, config.kernel
    return LayerMasks(
        (
            lambda device: masks.image_rows(text, grid, device=device),
            lambda device: masks.image_columns(text, grid, device=device),
            lambda device: masks.image_neighbours(text, grid, kernel, device=device),
        ),
        sees_of_image(config),
    )


PRESETS: dict[str, ModelConfig] = {
    "dalle-nano": DalleConfig(text=32, codes=512, grid=8, width=128, depth=4, heads=4),
    "dalle-mini": DalleConfig(
        text=32, codes=128, grid=16, width=384, depth=8, heads=6, dropout=0.1
    ),
    "dalle-small": DalleConfig(text=64, codes=1024, grid=16, width=512, depth=12, heads=8),
    "dalle-12b": DalleConfig(vocabulary=16384, width=3968, depth=64, heads=62),
}

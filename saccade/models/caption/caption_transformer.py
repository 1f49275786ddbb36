"""Transformers that tell what they see: a CNN's cells or a ViT's patches, then the words.

With a CNN as its image encoder the cells of the last grid are told where they lie and read by
encoder layers (the shape of DETR, Carion et al. 2020, arXiv:2005.12872, and of its captioner catr,
from which it departs in adding positions once, below the first layer, and in an output that is the
embedding).
With a ViT there is no convolution and nothing in between: its patches are the memory, as in CPTR
(Liu et al. 2021, arXiv:2101.10804). Words are decoded as in a translator.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import TARGET, Axis
from saccade.attention.kernels.train.linear import Linear
from saccade.attention.segments import Segments
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.memories import Prefill
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added, FixedPositions, GridPositions, sinusoids
from saccade.blocks.residual import ResidualKind
from saccade.blocks.stack import WholeSequences, run_blocks
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.caption.captioner import (
    IMAGE_GRID,
    Captioner,
    CaptionerConfig,
    CaptionHidden,
)
from saccade.models.inference.cached_decoder import CachedDecoder, Encoded, decoding_dtype
from saccade.models.text.word_decoder import DecoderState, WordDecoder
from saccade.models.vision.grid_encoder import GridEncoder
from saccade.models.vision.vit import Vit


@dataclass(frozen=True, kw_only=True)
class CaptionTransformerConfig(CaptionerConfig):
    """Sizes of a captioner without recurrence.

    Args:
        width: of a hidden state.
        depth: layers that write.
        encoder_depth: layers that read the cells of the image; a ViT needs none.
        heads: of attention in a layer.
        hidden: width inside the MLP of a layer.
        dropout: share of a sublayer's output that is dropped in training.
        residual: normalise after each residual, or before each sublayer.
        longest: captions are cut after so many tokens.
    """

    width: int = 256
    depth: int = 6
    encoder_depth: int = 6
    heads: int = 8
    hidden: int = 2048
    dropout: float = 0.1
    residual: ResidualKind = "pre"
    longest: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "vocabulary", "width", "depth", "heads", "hidden", "longest")
        check_fraction(self, "dropout")
        if self.encoder_depth < 0:
            raise ConfigError(f"encoder_depth={self.encoder_depth} must be 0 (none) or more")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    def build(self) -> "CaptionTransformer":
        return CaptionTransformer(self)


class CaptionTransformer(Captioner):
    """Image → image encoder → encoder → memory; words + memory → decoder → the next word.

    c = encoder(W z + P)        yₜ = decoder(y₀ … yₜ₋₁, c)
    """

    def __init__(self, config: CaptionTransformerConfig) -> None:
        super().__init__()
        self.config, self.longest = config, config.longest
        names = ("width", "heads", "hidden", "dropout", "residual")
        width, sizes = config.width, {name: getattr(config, name) for name in names}
        self.image_encoder = GridEncoder(config.encoder, stage=config.stage, frozen=config.frozen)
        knows_where = isinstance(self.image_encoder.encoder, Vit)
        same = knows_where and self.image_encoder.channels == width
        self.project = nn.Identity() if same else Linear(self.image_encoder.channels, width)
        self.places = None if knows_where else GridPositions(width)
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.positions = Added(FixedPositions(sinusoids, width))
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(**sizes, axis=IMAGE_GRID) for _ in range(config.encoder_depth)
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(**sizes, source=IMAGE_GRID) for _ in range(config.depth)
        )
        # Pre-norm never normalises the sum of its residuals, so a stack ends with a norm.
        last = nn.LayerNorm if config.residual == "pre" else nn.Identity
        self.encoder_norm = last(width) if config.encoder_depth else nn.Identity()
        self.decoder_norm = last(width)
        self._initialise()

    def _initialise(self) -> None:
        for part in (self.project, self.encoder, self.decoder):
            for parameter in part.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=self.embedding.embedding_dim**-0.5)

    @property
    def words(self) -> WordDecoder:
        """The half that writes."""
        parts = self.embedding, self.positions, self.dropout, self.decoder, self.decoder_norm
        assert self.longest is not None
        return WordDecoder(*parts, scale=self.embedding.embedding_dim**0.5, longest=self.longest)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return self.words.output

    def forward(
        self, images: UInt8[Tensor, "B 3 H W"], captions: Rows, of: Int[Tensor, " R"]
    ) -> CaptionHidden:
        """All captions end to end, those of an image side by side: they share its memory."""
        memory = self.see(images)
        if captions.rectangular:  # nothing to ask a GPU for
            return CaptionHidden(self.words.decode(captions.padded(), memory[of]).flatten(0, 1))
        across = _across(captions, of, len(memory), memory.shape[1])
        return CaptionHidden(self.words.packed(captions, memory.flatten(0, 1)[None], across))

    def teacher_forced(
        self, images: UInt8[Tensor, "B 3 H W"], tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        return self.words.decode(tokens, self.see(images))

    def see(self, images: UInt8[Tensor, "B 3 H W"]) -> Float[Tensor, "B cells D"]:
        """The memory that words are told from."""
        cells, grid = self.image_encoder(images)
        self._say_what_is_seen(grid)
        x = self.project(cells)
        if self.places is not None:
            x = self.dropout(x + self.places((grid.height, grid.width)))
        return run_blocks(self.encoder, self.encoder_norm, x, WholeSequences())

    def for_decoding(self, precision: Precision | None) -> CachedDecoder:
        """Words packed once for many steps; it sees as the model does."""
        dtype = decoding_dtype(self.words, precision)

        def encode(images: UInt8[Tensor, "B 3 H W"]) -> Encoded:
            half = precision == "bfloat16" and images.is_cuda
            with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
                memory = self.see(images)
            prefill = Prefill((memory.shape[0], memory.shape[1]))
            return Encoded(memory.flatten(0, 1).to(dtype), prefill)

        return CachedDecoder(self.words, precision, encode)

    def start(self, images: UInt8[Tensor, "B 3 H W"]) -> DecoderState:
        return self.for_decoding(None).start(images)

    def step(
        self, tokens: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], DecoderState]:
        return self.for_decoding(None).step(tokens, state)

    def _say_what_is_seen(self, grid: Axis) -> None:
        """Who watches is told the image's grid."""
        for layer in [*self.encoder, *self.decoder]:
            reads = isinstance(layer, EncoderLayer)
            site: Any = layer.self_attention if reads else layer.cross_attention
            if site.watcher is not None:
                site.rows, site.columns = grid if reads else TARGET, grid


def _across(captions: Rows, of: Int[Tensor, " R"], images: int, cells: int) -> Segments:
    """The words of all captions of an image look at its cells."""
    numbers = torch.arange(images + 1, device=of.device)
    first = torch.searchsorted(of, numbers.to(of))  # caption of each image
    words = captions.starts[first]
    keys = numbers.mul(cells).to(words)
    kernels = words.is_cuda and torch.is_autocast_enabled("cuda")
    # Kernels take any bound, and asking a GPU for the true number would be waiting for it.
    longest = len(captions.tokens) if kernels else int(words.diff().max())
    return Segments(words, keys, longest, cells)


PRESETS: dict[str, ModelConfig] = {
    "cnn-transformer-nano": CaptionTransformerConfig(
        stage=3, width=192, depth=2, encoder_depth=1, heads=4, hidden=512, dropout=0.0
    ),
    "cnn-transformer-base": CaptionTransformerConfig(
        encoder="resnet-101-dilated", vocabulary=30522
    ),
    "vit-captioner-nano": CaptionTransformerConfig(
        encoder="vit-micro", width=192, depth=2, encoder_depth=0, heads=4, hidden=512, dropout=0.0
    ),
    "vit-captioner-base": CaptionTransformerConfig(
        encoder="vit-b-16", width=768, depth=4, encoder_depth=0, heads=12, hidden=3072
    ),
}

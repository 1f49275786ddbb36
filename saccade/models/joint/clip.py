"""CLIP: an encoder of images and one of texts, whose vectors are alike where both belong together
(Radford et al. 2021, arXiv:2103.00020).

The encoder of texts is the published one: pre-norm blocks that look back, read at the last token.
The encoder of images is any of ours, read as the one vector that its class scores would be; their
ViT has a norm before its first block and ours has none, so their weights are not ours. Texts lie
end to end, so no padding is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import UnbiasedLinear
from saccade.attention.parameters import FREE, Role
from saccade.blocks.dropout import Dropout
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.mlp import quick_gelu
from saccade.blocks.positions import Added, LearnedPositions
from saccade.config import ModelConfig, WordModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.joint.contrast import first_log_scale, scale_of, scaled_cosines, unit
from saccade.models.text.text_encoder import state_read
from saccade.models.text.word_decoder import WordDecoder
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.standard_pixels import StandardPixels

BENDS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "quick-gelu": quick_gelu}


@dataclass(frozen=True, kw_only=True)
class ClipConfig(WordModelConfig):
    """Sizes of a CLIP.

    Args:
        width: of a word's hidden state.
        depth: layers of words.
        heads: of attention in a layer.
        longest: how many tokens a text may have.
        dropout: share of a sublayer's output that is dropped in training.
        activation: of the MLPs: GELU, or x · sigmoid(1.702 x), as published.
        joint: width of the vectors that are compared.
        encoder: the image encoder.
        weights: a file of published weights that the image encoder starts from; none: fresh ones.
        frozen: keep the image encoder as it is.
    """

    vocabulary: int = 49408
    width: int = 512
    depth: int = 12
    heads: int = 8
    longest: int = 77
    dropout: float = 0.0
    activation: Literal["gelu", "quick-gelu"] = "quick-gelu"
    joint: int = 512
    encoder: str = "vit-b-32"
    weights: str = ""
    frozen: bool = False

    def __post_init__(self) -> None:
        encoder_config(self.encoder)
        check_positive(self, "vocabulary", "width", "depth", "heads", "longest", "joint")
        check_fraction(self, "dropout")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def most_words(self) -> int | None:
        return self.longest

    def build(self) -> "Clip":
        return Clip(self)


class Clip(nn.Module):
    """Words → causal blocks → the last token's state ┐
    pixels → image encoder → one vector               ┘ → vectors of length one, compared

        x(t) = unit(W blocks(E[t] + P)_last)        y(i) = unit(V encoder(i))

        z(t, i) = τ x(t) · y(i)        τ ≤ 100 is learnt
    """

    capturable = True

    def __init__(self, config: ClipConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = Added(LearnedPositions(config.longest, config.width))
        self.dropout = Dropout(config.dropout)
        self.text_encoder = nn.ModuleList(
            EncoderLayer(
                config.width,
                heads=config.heads,
                hidden=4 * config.width,
                dropout=config.dropout,
                residual="pre",
                activation=BENDS[config.activation],
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.width)
        self.text_projection = UnbiasedLinear(config.width, config.joint)
        self._initialise()
        self.standard = StandardPixels()
        self.image_encoder = replace(encoder_config(config.encoder), classes=0).build()
        channels = self.image_encoder.channels()
        self.image_projection = UnbiasedLinear(channels, config.joint)
        nn.init.normal_(self.image_projection.weight, std=channels**-0.5)
        if config.frozen:
            self.image_encoder.freeze()
        self.log_scale = first_log_scale()

    def roles(self) -> dict[str, Role]:
        return {"log_scale": FREE}

    def _initialise(self) -> None:
        """That of texts, as published: what writes into the residual stream is smaller."""
        width, depth = self.config.width, self.config.depth
        stds = {
            "to_output.weight": (width * 2 * depth) ** -0.5,
            "narrow.weight": (width * 2 * depth) ** -0.5,
            "widen.weight": (2 * width) ** -0.5,
            "embedding.weight": 0.02,
        }
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif name.startswith("positions"):
                nn.init.normal_(parameter, std=0.01)
            elif parameter.dim() == 2:
                known = (std for ending, std in stds.items() if name.endswith(ending))
                nn.init.normal_(parameter, std=next(known, width**-0.5))

    @property
    def longest(self) -> int | None:
        return self.config.longest

    @property
    def slow_part(self) -> nn.Module:
        """The image encoder, which others may have trained."""
        return self.image_encoder

    @property
    def published(self) -> Path | None:
        """Where that encoder's published weights lie, if the config names any."""
        return Path(self.config.weights) if self.config.weights else None

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.text_encoder)

    @property
    def words(self) -> WordDecoder:
        """The blocks that read texts; they look back, as those of a language model."""
        parts = self.embedding, self.positions, self.dropout, self.text_encoder, self.norm
        return WordDecoder(*parts, scale=1.0, longest=self.config.longest)

    def hidden(self, rows: Rows) -> Float[Tensor, "words D"]:
        """The state of every word, of texts end to end."""
        return self.words.packed(rows)

    def texts(self, rows: Rows) -> Float[Tensor, "T J"]:
        """Texts as vectors of length one; what only fills a shape gets one, too."""
        return self.text_vectors(self.hidden(rows), rows)

    def text_vectors(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "T J"]:
        """The same from the states of their words."""
        return unit(self.text_projection(state_read(hidden, rows, "last")))

    def images(self, images: UInt8[Tensor, "I 3 H W"]) -> Float[Tensor, "I J"]:
        """Images as vectors of length one."""
        return self.image_vectors(self.image_encoder(self.standard(images)))

    def image_vectors(self, features: Float[Tensor, "I C"]) -> Float[Tensor, "I J"]:
        """The same from what the encoder makes of each."""
        return unit(self.image_projection(features))

    @property
    def scale(self) -> Float[Tensor, ""]:
        """τ, by which cosines become logits."""
        return scale_of(self.log_scale)

    def logits(
        self, texts: Float[Tensor, "T J"], images: Float[Tensor, "I J"]
    ) -> Float[Tensor, "T I"]:
        """How well each text fits each image."""
        return scaled_cosines(texts, images, self.scale)

    def forward(self, rows: Rows, images: UInt8[Tensor, "I 3 H W"]) -> Float[Tensor, "T I"]:
        return self.logits(self.texts(rows), self.images(images))


PRESETS: dict[str, ModelConfig] = {
    "clip-nano": ClipConfig(
        vocabulary=2000,
        width=96,
        depth=2,
        heads=4,
        longest=64,
        activation="gelu",
        joint=128,
        encoder="resnet-mini",
    ),
    "clip-small": ClipConfig(
        vocabulary=10_000,
        width=384,
        depth=6,
        heads=6,
        longest=128,
        dropout=0.1,
        activation="gelu",
        joint=384,
        encoder="mobilenet-v2",
    ),
}

"""ViLBERT: words and regions in two streams that look at one another (Lu et al. 2019,
arXiv:1908.02265).

Departs from the published code in having no dropout on the attention weights, in one logit for
whether a text fits where that has two, and in seeing images itself: published regions come from a
detector's file. Sequences lie end to end, so no padding is computed in either stream.
"""

from pathlib import Path
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.attention.parameters import FREE, Role
from saccade.attention.segments import Segments
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.output import OutputLayer
from saccade.blocks.stack import WholeSequences, run_blocks
from saccade.config import ModelConfig
from saccade.data.batching.rows import Rows
from saccade.models.joint.co_attention import REGIONS, CoAttention
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.contrast import first_log_scale, scale_of, scaled_cosines, unit
from saccade.models.joint.regions import (
    Beside,
    RegionEmbeddings,
    RegionFeatures,
    RegionRows,
    SeenRegions,
)
from saccade.models.text.bert import TextEmbeddings, WordFiller, encoder_layers, initialise


class Streams(NamedTuple):
    """The hidden states of all words, and of all regions, end to end: those of text i and of image
    i, or of pair i once they have met.
    """

    words: Float[Tensor, "words D"]
    regions: Float[Tensor, "regions E"]
    word_starts: Int[Tensor, " boundaries"]
    region_starts: Int[Tensor, " boundaries"]
    longest: tuple[int, int]  # bounds of how many words and how many regions there are to each
    slots: int | None  # a bound of how many regions there are to each, where it is known
    equal: bool  # just so many
    beside: Beside | None = None  # which region of which pair each is, once they have met

    @property
    def first_words(self) -> Float[Tensor, "B D"]:
        return _first(self.words, self.word_starts)

    @property
    def first_regions(self) -> Float[Tensor, "B E"]:
        return _first(self.regions, self.region_starts)


class RegionTeller(nn.Module):
    """What a region shows, of which the features were hidden: its class, or those features.

    y = W₂ norm(gelu(W₁ x + b₁)) + b₂
    """

    def __init__(self, width: int, told: int, epsilon: float) -> None:
        super().__init__()
        self.dense, self.norm = Linear(width, width), nn.LayerNorm(width, epsilon)
        self.told = Linear(width, told)

    def forward(self, x: Float[Tensor, "n E"]) -> Float[Tensor, "n told"]:
        return self.told(self.norm(F.gelu(self.dense(x))))


class Contrast(nn.Module):
    """Texts and images as vectors of one length, before any has seen the other.

    z(t, i) = τ cos(W x(t), V y(i))
    """

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.of_words = Linear(config.width, config.join_width)
        self.of_regions = Linear(config.region_width, config.join_width)
        self.log_scale = first_log_scale()

    def roles(self) -> dict[str, Role]:
        return {"log_scale": FREE}

    def forward(
        self, words: Float[Tensor, "T D"], regions: Float[Tensor, "I E"]
    ) -> Float[Tensor, "T I"]:
        texts, images = unit(self.of_words(words)), unit(self.of_regions(regions))
        return scaled_cosines(texts, images, scale_of(self.log_scale))


class Vilbert(nn.Module):
    """Words → layers ┐ look at ┌ → layers → …        one vector for both: relu(W x₁) ⊙ relu(V y₁)
    Regions → layers  ┘ one another └ → layers → …
    """

    capturable = True

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.config = config
        text, head = config.text, config.head
        self.image_encoder = RegionFeatures(config)
        self.embeddings = TextEmbeddings(text)
        self.encoder = encoder_layers(text, config.width, config.heads, config.hidden)
        self.region_input = RegionEmbeddings(self.image_encoder.features, config)
        self.region_encoder = nn.ModuleList(
            EncoderLayer(
                config.region_width,
                heads=config.region_heads,
                hidden=config.region_hidden,
                dropout=config.dropout,
                inner_dropout=0.0,
                epsilon=text.epsilon,
                activation=F.gelu,
                axis=REGIONS,
            )
            for _ in range(config.region_depth)
        )
        self.joins = nn.ModuleList(CoAttention(config) for _ in range(config.joins))
        pools = head != "regions"
        self.pool_words = Linear(config.width, config.join_width) if pools else None
        self.pool_regions = Linear(config.region_width, config.join_width) if pools else None
        self.contrast = Contrast(config) if config.contrast else None
        self._add_head(config)
        for part in self.children():
            if part is not self.image_encoder:
                initialise(part)

    def _add_head(self, config: VilbertConfig) -> None:
        """Only the parts that its config names; the others are None."""
        head, epsilon = config.head, config.text.epsilon
        width, joint = config.region_width, config.join_width
        pretrains = head == "pretraining"
        told = config.region_classes or self.image_encoder.features
        self.words = WordFiller(config.width, config.text) if pretrains else None
        self.tells = RegionTeller(width, told, epsilon) if pretrains else None
        self.fit = Linear(joint, 1) if head in ("pretraining", "fit") else None
        self.choose = Linear(width, 1) if head == "regions" else None
        self.answer = (
            nn.Sequential(
                Linear(joint, 2 * joint),
                nn.GELU(),
                nn.LayerNorm(2 * joint, epsilon),
                Linear(2 * joint, config.labels),
            )
            if head == "answers"
            else None
        )

    @property
    def longest(self) -> int | None:
        return self.config.longest

    @property
    def slow_part(self) -> nn.Module:
        """The image encoder, which others may have trained."""
        return self.image_encoder.grid.encoder

    @property
    def published(self) -> Path | None:
        """Where that encoder's published weights lie, if the config names any."""
        return Path(self.config.weights) if self.config.weights else None

    def layers_upwards(self) -> list[nn.Module]:
        return list(self.encoder)

    def see(
        self, images: UInt8[Tensor, "B 3 H W"], boxes: Float[Tensor, "B R 4"] | None
    ) -> SeenRegions:
        """The regions of images; `boxes` where the model was built for them."""
        seen = self.image_encoder(images, boxes if self.config.regions == "boxes" else None)
        for layer in self.region_encoder:
            assert isinstance(layer, EncoderLayer)
            layer.self_attention.rows = layer.self_attention.columns = seen.axis
        for join in self.joins:
            assert isinstance(join, CoAttention)
            join.words.cross_attention.columns = join.regions.cross_attention.rows = seen.axis
        return seen

    def recall(
        self, features: Float[Tensor, "B n F"], boxes: Float[Tensor, "B R 4"]
    ) -> SeenRegions:
        """The same, of regions that were seen before."""
        return SeenRegions.recalled(features.to(self.region_input.norm.weight.dtype), boxes)

    def alone(self, text: Rows, types: Int[Tensor, " words"], regions: RegionRows) -> Streams:
        """Both streams up to where they meet."""
        depths = self.config.depth, self.config.region_depth
        x, y = self.embeddings(text, types), self.region_input(regions)
        itself = Segments.among(text.starts, text.longest)
        x = _through(self.encoder[: depths[0] - self.config.joins], x, itself)
        themselves = Segments.among(regions.starts, regions.longest)
        y = _through(self.region_encoder[: depths[1] - self.config.joins], y, themselves)
        longest, count = (text.longest, regions.longest), (regions.slots, regions.equal)
        return Streams(x[0], y[0], text.starts, regions.starts, longest, *count)

    def joined(
        self, alone: Streams, of: Int[Tensor, " B"], texts: Int[Tensor, " B"] | None = None
    ) -> Streams:
        """On from there, pair i of text i (or `texts[i]`) and image `of[i]`: they meet, then go on
        by themselves; again.
        """
        if texts is not None:
            alone = _repeated(alone, texts)
        beside = Beside.of(alone.region_starts, of, alone.slots, equal=alone.equal)
        at, themselves = beside.segments(alone.word_starts, alone.longest)
        itself = Segments.among(alone.word_starts, alone.longest[0])
        x, y = alone.words[None], alone.regions.index_select(0, beside.which)[None]
        count = len(self.joins)
        for join, words, others in zip(
            self.joins, self.encoder[-count:], self.region_encoder[-count:]
        ):
            x, y = join(x, y, at)
            x, y = _through([words], x, itself), _through([others], y, themselves)
        return alone._replace(words=x[0], regions=y[0], region_starts=beside.starts, beside=beside)

    def forward(
        self,
        text: Rows,
        types: Int[Tensor, " words"],
        regions: RegionRows,
        of: Int[Tensor, " B"],
    ) -> Streams:
        return self.joined(self.alone(text, types, regions), of)

    def compared(self, alone: Streams) -> Float[Tensor, "T I"]:
        """How well each text fits each image, before they have met."""
        assert self.contrast is not None, "it was built without contrast"
        return self.contrast(alone.first_words, alone.first_regions)

    def pooled(self, found: Streams) -> Float[Tensor, "B J"]:
        """One vector for a text and its image."""
        assert self.pool_words is not None, f"a head for {self.config.head} pools nothing"
        assert self.pool_regions is not None
        x, y = self.pool_words(found.first_words), self.pool_regions(found.first_regions)
        return F.relu(x) * F.relu(y)

    def fits(self, found: Streams) -> Float[Tensor, " B"]:
        """Logits of: the text is about the image."""
        assert self.fit is not None, f"a head for {self.config.head} does not tell what fits"
        return self.fit(self.pooled(found))[:, 0]

    def answers(self, found: Streams) -> Float[Tensor, "B labels"]:
        """Logits of each answer by itself."""
        assert self.answer is not None, f"a head for {self.config.head} answers nothing"
        return self.answer(self.pooled(found))

    def chosen(self, found: Streams) -> Float[Tensor, " regions"]:
        """How well each region fits its phrase."""
        assert self.choose is not None, f"a head for {self.config.head} chooses no regions"
        return self.choose(found.regions)[:, 0]

    def told(self, found: Streams) -> Float[Tensor, "regions told"]:
        """Logits of each region's class, or its features."""
        assert self.tells is not None, f"a head for {self.config.head} tells no regions"
        return self.tells(found.regions)

    def transformed(self, hidden: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        """Hidden states of words, made ready for the output layer."""
        assert self.words is not None, f"a head for {self.config.head} fills no words"
        return self.words(hidden)

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round, and a bias."""
        assert self.words is not None, f"a head for {self.config.head} fills no words"
        return OutputLayer(self.embeddings.words.weight, self.words.bias)


def _through(
    layers: nn.ModuleList | list[nn.Module], x: Float[Tensor, "1 n D"], at: Segments
) -> Float[Tensor, "1 n D"]:
    return run_blocks(layers, nn.Identity(), x, WholeSequences(at))


def _repeated(alone: Streams, texts: Int[Tensor, " B"]) -> Streams:
    """With some of the texts, each as often as it is named."""
    words = Beside.of(alone.word_starts, texts)
    return alone._replace(words=alone.words.index_select(0, words.which), word_starts=words.starts)


def _first(
    states: Float[Tensor, "n D"], starts: Int[Tensor, " boundaries"]
) -> Float[Tensor, "B D"]:
    """Of each sequence; an empty one gets any."""
    return states.index_select(0, starts[:-1].clamp(max=len(states) - 1))


PRESETS: dict[str, ModelConfig] = {
    "vilbert-nano": VilbertConfig(
        vocabulary=2000,
        width=96,
        depth=4,
        heads=4,
        hidden=384,
        longest=64,
        region_width=96,
        region_depth=3,
        region_heads=4,
        region_hidden=192,
        joins=2,
        join_width=96,
        join_heads=4,
        dropout=0.0,
        encoder="resnet-mini",
        stage=3,
        regions="boxes",
        bins=2,
        contrast=True,
    ),
    "vilbert-small": VilbertConfig(
        vocabulary=10_000,
        width=384,
        depth=6,
        hidden=1536,
        longest=128,
        region_width=384,
        region_depth=4,
        region_heads=6,
        region_hidden=1536,
        joins=3,
        join_width=384,
        join_heads=6,
        encoder="mobilenet-v2",
        contrast=True,
    ),
    "vilbert-base": VilbertConfig(encoder="resnet-101", regions="boxes", region_classes=1601),
}

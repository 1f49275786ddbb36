"""The half of a Transformer that writes: words so far and a memory of what was read → the next.

Translators and captioners share it; what they read and how is their own.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention.cache import KeyValues, Lineage, followed
from saccade.attention.segments import Segments
from saccade.blocks.decoder import DecoderLayer, LayerMemory
from saccade.blocks.dropout import Dropout
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added
from saccade.data.rows import Rows


@dataclass
class TransformerState:
    """What decoding needs of the source and of the words so far; beams share both."""

    layers: list[LayerMemory]
    source_mask: Bool[Tensor, "B 1 1 S"] | None
    position: int
    lineage: Lineage | None = None

    def select(self, rows: Int[Tensor, " B2"]) -> "TransformerState":
        mask = None if self.source_mask is None else self.source_mask[rows]
        layers = [layer.select(rows) for layer in self.layers]
        lineage = None if self.lineage is None else self.lineage.select(rows)
        return TransformerState(layers, mask, self.position, lineage)

    def spread(self, beams: int) -> "TransformerState":
        past = self._past
        lineage = Lineage.parting(len(past.keys), beams, past.length, past.keys.device)
        return self._led_by(lineage)

    def follow(self, parents: Int[Tensor, "B k"]) -> "TransformerState":
        assert self.lineage is not None
        length, step = self._past.length, self.position
        return self._led_by(*followed(self.lineage, parents, length, step))

    @property
    def _past(self) -> KeyValues:
        past = self.layers[0].past
        assert past is not None
        return past

    def _led_by(
        self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None
    ) -> "TransformerState":
        layers = [layer.led_by(lineage, kept) for layer in self.layers]
        return TransformerState(layers, self.source_mask, self.position, lineage)


@dataclass(frozen=True)
class WordDecoder:
    """Words → decoder layers that look back and across → what is known of the next word.

        x = √D E[words] + P        y = norm(layers(x, memory))        scores = E y

    It is no module: the parts are its model's own, under the names that the model gives them.
    """

    embedding: nn.Embedding
    positions: Added | None
    dropout: Dropout
    layers: list[DecoderLayer]
    norm: nn.Module

    @property
    def width(self) -> int:
        return self.embedding.embedding_dim

    @property
    def heads(self) -> int:
        return self.layers[0].self_attention.heads

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round."""
        return OutputLayer(self.embedding.weight)

    def embed(self, tokens: Int[Tensor, "B T"], *, start: int = 0) -> Float[Tensor, "B T D"]:
        x = self.embedding(tokens) * self.width**0.5
        return self.dropout(x if self.positions is None else self.positions(x, start=start))

    def embed_rows(self, rows: Rows) -> Float[Tensor, "1 T D"]:
        x = self.embedding(rows.tokens[None]) * self.width**0.5
        if self.positions is not None:
            x = self.positions.at(x, rows.places[None], rows.longest)
        return self.dropout(x)

    def remember(
        self, memory: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"] | None = None
    ) -> TransformerState:
        """What every layer looks at, projected once; no past is kept."""
        return TransformerState([layer.remember(memory) for layer in self.layers], mask, 0)

    def start(
        self, memory: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"] | None = None
    ) -> TransformerState:
        """The same, to go on from word by word."""
        state, width = self.remember(memory, mask), self.width // self.heads
        for layer in state.layers:
            like = layer.source_keys[:, 0, 0]
            layer.past = KeyValues.empty(like, heads=self.heads, width=width)
        return state

    def decode(self, target: Int[Tensor, "R T"], state: TransformerState) -> Tensor:
        """What is known after each word; without a past all of the words are there."""
        x = self.embed(target, start=state.position)
        for layer, memory in zip(self.layers, state.layers):
            x = layer(x, memory, source_mask=state.source_mask)
        return self.norm(x)

    def packed(
        self, target: Rows, memory: Float[Tensor, "1 S D"], across: Segments
    ) -> Float[Tensor, "words D"]:
        """What is known after each word of sequences end to end, whose memories are so as well."""
        x, itself = self.embed_rows(target), Segments.among(target.starts, target.longest)
        for layer in self.layers:
            x = layer(x, memory, mask=itself, source_mask=across)
        return self.norm(x)[0]

    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        features = self.decode(tokens[:, None], state)
        state.position += 1
        return self.output(features[:, 0]), state

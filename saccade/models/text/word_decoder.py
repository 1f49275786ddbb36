"""The half of a Transformer that writes: words so far, perhaps a source → the next word.

Translators, captioners and language models share it; what they read and how is their own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.attention.cache import KeyValues, Lineage, followed
from saccade.attention.segments import Segments
from saccade.attention.sparse import LayerMasks
from saccade.blocks.dropout import Dropout
from saccade.blocks.inference.memories import SourceKeys
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import Added
from saccade.blocks.stack import WholeSequences, run_blocks
from saccade.data.batching.rows import Rows


@dataclass
class DecoderState:
    """What decoding needs of the words so far, and of a source if there is one; beams share both.

    Every layer has keys and values of its own.
    """

    caches: list[KeyValues]
    sources: list[SourceKeys]
    source_mask: Bool[Tensor, "B 1 1 S"] | None
    position: int = 0
    lineage: Lineage | None = None

    def select(self, rows: Int[Tensor, " B2"]) -> "DecoderState":
        mask = None if self.source_mask is None else self.source_mask[rows]
        caches = [layer.select(rows) for layer in self.caches]
        sources = [layer.select(rows) for layer in self.sources]
        lineage = None if self.lineage is None else self.lineage.select(rows)
        return DecoderState(caches, sources, mask, self.position, lineage)

    def spread(self, beams: int) -> "DecoderState":
        past = self.caches[0]
        lineage = Lineage.parting(len(past.keys), beams, past.length, past.keys.device)
        return self._led_by(lineage)

    def follow(self, parents: Int[Tensor, "B k"]) -> "DecoderState":
        assert self.lineage is not None
        length, step = self.caches[0].length, self.position
        return self._led_by(*followed(self.lineage, parents, length, step))

    def _led_by(self, lineage: Lineage, kept: Int[Tensor, "B E2"] | None = None) -> "DecoderState":
        caches = [layer.led_by(lineage, kept) for layer in self.caches]
        return DecoderState(caches, self.sources, self.source_mask, self.position, lineage)


@dataclass(frozen=True)
class WordDecoder:
    """Words → layers that look back, and perhaps across → the hidden state after each word.

        x = scale · E[words] + P        y = norm(layers(x, memory))        scores = E y + b

    It is no module: the parts are its model's own, under the names that the model gives them.
    `longest` bounds the positions that there are; most have no `output_bias` b, and no output layer
    of their own. With `layer_masks` each layer sees only some of what came before.
    """

    embedding: nn.Embedding
    positions: Added | None
    dropout: Dropout
    layers: Iterable[nn.Module]
    norm: nn.Module
    scale: float
    longest: int
    output_bias: Float[Tensor, " V"] | None = None
    own_output: OutputLayer | None = None
    layer_masks: LayerMasks | None = None

    @property
    def output(self) -> OutputLayer:
        """The embedding read the other way round, unless there is another."""
        if self.own_output is not None:
            return self.own_output
        return OutputLayer(self.embedding.weight, self.output_bias)

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return self.dropout(self.at_positions(tokens))

    def at_positions(self, tokens: Int[Tensor, "B T"], *, start: int = 0) -> Float[Tensor, "B T D"]:
        """Words as vectors, each told its position."""
        x = self._scaled(tokens)
        return x if self.positions is None else self.positions(x, start=start)

    def embed_rows(self, rows: Rows) -> Float[Tensor, "1 T D"]:
        x = self._scaled(rows.tokens[None])
        if self.positions is not None:
            x = self.positions.at(x, rows.places[None], rows.longest)
        return self.dropout(x)

    def _scaled(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        x = self.embedding(tokens)
        return x if self.scale == 1 else x * self.scale

    def decode(
        self,
        target: Int[Tensor, "B T"],
        source: Float[Tensor, "B S D"] | None = None,
        mask: Bool[Tensor, "B 1 1 S"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The hidden state after each word, all of which are there."""
        memory = WholeSequences(None, True, source, mask, self.layer_masks)
        return self._run(self.embed(target), memory)

    def packed(
        self,
        target: Rows,
        source: Float[Tensor, "1 S D"] | None = None,
        across: Segments | None = None,
    ) -> Float[Tensor, "words D"]:
        """The same of sequences end to end, whose sources are so as well."""
        x, itself = self.embed_rows(target), Segments.among(target.starts, target.longest)
        return self._run(x, WholeSequences(itself, True, source, across))[0]

    def _run(self, x: Float[Tensor, "B T D"], memory: WholeSequences) -> Float[Tensor, "B T D"]:
        return run_blocks(self.layers, self.norm, x, memory)

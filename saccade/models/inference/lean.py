"""The Transformers as decoding runs them: the same function of the same weights, packed once.

`step` gives what the model's own gives (to rounding, or to the precision asked for) and takes the
same states. Nobody can look into it: for that the models themselves are run.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from saccade.attention import masks
from saccade.attention.cache import KeyValues
from saccade.attention.kernels.decode.few_queries import step_attention
from saccade.blocks.decoder import LayerMemory
from saccade.blocks.inference.affine import Precision, scores
from saccade.blocks.inference.lean import LeanStack, can_be_lean, embed, joined
from saccade.blocks.inference.slots import Room, Slots
from saccade.blocks.kernels import runs_kernels
from saccade.models.caption.caption_transformer import CaptionTransformer
from saccade.models.inference.lean_rnn import LeanRnnAttention
from saccade.models.text.gpt import Gpt, GptState
from saccade.models.text.rnn_attention import RnnAttention
from saccade.models.text.transformer import Transformer
from saccade.models.text.word_decoder import TransformerState, WordDecoder


class Whole:
    """All positions of a batch see one another, or with `caches` what came before."""

    def __init__(
        self,
        shape: tuple[int, int],
        heads: int,
        *,
        mask: Bool[Tensor, "B 1 1 S"] | None = None,
        caches: list[KeyValues] | None = None,
    ) -> None:
        self.shape, self.heads, self.mask, self.caches = shape, heads, mask, caches
        # On a GPU padding costs less than waiting to hear where it is.
        self.real = None
        if mask is not None and not mask.is_cuda:
            self.real = mask.flatten().nonzero()[:, 0]

    def without_padding(self, x: Float[Tensor, "padded D"]) -> Float[Tensor, "R D"]:
        """Only what is real of the positions of all rows, one after another."""
        return x if self.real is None else x[self.real]

    def padded(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "padded D"]:
        """Every position at its place again."""
        if self.real is None:
            return x
        places = x.new_zeros(self.shape[0] * self.shape[1], x.shape[1])
        return places.index_copy_(0, self.real, x)

    def look_back(self, layer: int, qkv: Float[Tensor, "R joined"]) -> Float[Tensor, "R D"]:
        qkv = self.padded(qkv)
        q, k, v = qkv.view(*self.shape, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (B, N, T, K)
        mask = self.mask
        if self.caches is not None:
            k, v = self.caches[layer].write(k, v)
            mask = masks.causal(q.shape[2], k.shape[2], device=q.device)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.without_padding(read.transpose(1, 2).reshape(len(qkv), -1))

    def look_across(self, layer: int, q: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        raise NotImplementedError


class Next:
    """One more position of every beam; keys and values of the beams of a sentence share a pool."""

    def __init__(
        self,
        caches: list[KeyValues],
        heads: int,
        *,
        sources: list[LayerMemory] | None = None,
        source_mask: Bool[Tensor, "B 1 1 S"] | None = None,
    ) -> None:
        self.caches, self.heads = caches, heads
        self.sources = sources
        self.sentences = len(caches[0].keys)
        lineage = caches[0].lineage
        beams = 1 if lineage is None else lineage.beams
        mask = None if lineage is None else lineage.mask(caches[0].length + beams)
        self.bias = None if mask is None else _bias(mask, caches[0].keys.dtype)
        self.source_bias = (
            None if source_mask is None else _bias(source_mask[:, 0], caches[0].keys.dtype)
        )

    def look_back(self, layer: int, qkv: Float[Tensor, "R joined"]) -> Float[Tensor, "R D"]:
        by_head = qkv.view(self.sentences, -1, 3, self.heads, qkv.shape[-1] // 3 // self.heads)
        q, k, v = by_head.permute(2, 0, 3, 1, 4)  # (B, N, k, K)
        k, v = self.caches[layer].write(k, v)
        return step_attention(q, k, v, self.bias).transpose(1, 2).reshape(len(qkv), -1)

    def look_across(self, layer: int, q: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        assert self.sources is not None
        source = self.sources[layer]
        by_head = q.view(self.sentences, -1, self.heads, q.shape[-1] // self.heads).transpose(1, 2)
        keys, values = source.source_keys, source.source_values
        read = step_attention(by_head, keys, values, self.source_bias)
        return read.transpose(1, 2).reshape(len(q), -1)


def _bias(mask: Bool[Tensor, "B #k S"], dtype: torch.dtype) -> Float[Tensor, "B 1 #k S"]:
    """What a mask adds to scores: nothing, or −∞."""
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)[:, None]


class LeanWords(ABC):
    """The half of a Transformer that writes. What it reads is projected for all layers at once."""

    def __init__(self, words: WordDecoder, *, longest: int, precision: Precision) -> None:
        self.words, self.longest, self.precision = words, longest, precision
        self.heads = words.heads
        self._tables: dict[int, Tensor] = {}
        self.decoder = LeanStack(words.layers, words.norm, precision)
        across = [layer.cross_attention for layer in words.layers]
        self.source = joined([y for x in across for y in (x.to_k, x.to_v)], precision)
        self.output = scores(words.embedding.weight, None, precision=precision)
        self.table = words.embedding.weight.detach()
        self.dtype = torch.bfloat16 if precision == "bfloat16" else self.table.dtype

    @property
    @abstractmethod
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU."""

    def remember(
        self, read: Float[Tensor, "R D"], whole: Whole, mask: Bool[Tensor, "B 1 1 S"] | None = None
    ) -> TransformerState:
        """What was read at every position; nothing decoded yet."""
        kv = whole.padded(self.source(read))
        kv = kv.view(*whole.shape, len(self.words.layers), 2, self.heads, -1)
        kv = kv.permute(2, 3, 0, 4, 1, 5).contiguous()  # (depth, 2, B, N, S, K)
        like = kv[0, 0, :, 0, 0]
        layers = [
            LayerMemory(keys, values, KeyValues.empty(like, heads=self.heads, width=kv.shape[-1]))
            for keys, values in kv
        ]
        return TransformerState(layers, mask, 0)

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        caches = [layer.past for layer in state.layers if layer.past is not None]
        memory = Next(caches, self.heads, sources=state.layers, source_mask=state.source_mask)
        x = self.embed(tokens[:, None], start=state.position)[:, 0]
        features = self.decoder(x, memory)
        state.position += 1
        return self.output(features), state

    def sizes(self, state: TransformerState) -> dict[str, int]:
        """How much of a `Room` a state takes before the first step."""
        return {"source": state.layers[0].source_keys.shape[2]}

    def slots(self, room: Room) -> Slots:
        """A memory at fixed places for `at`."""
        return _slots(self, room, depth=len(self.words.layers), width=self.words.width)

    def fill(self, slots: Slots, first: Int[Tensor, " B"], state: TransformerState) -> None:
        """Put a state that has just started into fixed places."""
        keys = state.layers[0].source_keys
        lengths = torch.full((len(keys),), keys.shape[2], device=keys.device)
        if state.source_mask is not None:
            lengths = state.source_mask.flatten(1).sum(dim=1)
        slots.fill(first, sources=state.layers, lengths=lengths)

    def at(self, slots: Slots) -> Float[Tensor, "R V"]:
        """A step whose every place in memory is fixed: the scores that follow `slots.tokens`."""
        scale, steps = self.words.width**0.5, slots.room.steps
        x = embed(slots.tokens, self.table, scale, self._positions(steps), slots.clock, self.dtype)
        return self.output(self.decoder(x, slots))

    def _positions(self, steps: int) -> Float[Tensor, "T D"]:
        """A table that stays where it is, for captured steps read it there."""
        if steps not in self._tables:
            positions = self.words.positions
            nothing = self.table.new_zeros(1, min(steps, self.longest), self.words.width)
            encoded = nothing if positions is None else positions(nothing)
            self._tables[steps] = encoded[0].detach()
        return self._tables[steps]

    def embed(self, tokens: Int[Tensor, "B T"], *, start: int) -> Float[Tensor, "B T D"]:
        positions = self.words.positions
        x = self.words.embedding(tokens) * self.words.width**0.5
        return (x if positions is None else positions(x, start=start)).to(self.dtype)


class LeanTransformer(LeanWords):
    """A Transformer for decoding only."""

    def __init__(self, model: Transformer, precision: Precision) -> None:
        super().__init__(model.words, longest=model.config.longest, precision=precision)
        self.model = model
        self.encoder = LeanStack(list(model.encoder), model.encoder_norm, precision)

    @property
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU, with positions that do not depend on the length."""
        return runs_kernels(self.table) and self.model.config.positions != "fraction"

    @torch.inference_mode()
    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> TransformerState:
        """Read the source once; nothing decoded yet."""
        ragged = int(lengths.min()) < source.shape[1]
        mask = masks.padding(lengths.to(source.device), source.shape[1]) if ragged else None
        x = self.embed(source, start=0)
        whole = Whole((source.shape[0], source.shape[1]), self.heads, mask=mask)
        x = self.encoder(whole.without_padding(x.flatten(0, 1)), whole)
        return self.remember(x, whole, mask)


class LeanCaptioner(LeanWords):
    """A Transformer that tells of pictures, for decoding only; it sees as the model does."""

    def __init__(self, model: CaptionTransformer, precision: Precision) -> None:
        super().__init__(model.words, longest=model.longest, precision=precision)
        self.model = model

    @property
    def can_be_captured(self) -> bool:
        return runs_kernels(self.table)

    @torch.inference_mode()
    def start(self, pictures: UInt8[Tensor, "B 3 H W"]) -> TransformerState:
        """Look at the pictures once; nothing told yet."""
        half = self.precision == "bfloat16" and pictures.is_cuda
        with torch.autocast(pictures.device.type, torch.bfloat16, enabled=half):
            memory = self.model.see(pictures)
        whole = Whole((memory.shape[0], memory.shape[1]), self.heads)
        return self.remember(memory.flatten(0, 1).to(self.dtype), whole)


class LeanGpt:
    """A language model for generation only."""

    def __init__(self, model: Gpt, precision: Precision) -> None:
        self.model, self.heads = model, model.config.heads
        self.decoder = LeanStack(list(model.decoder), model.norm, precision)
        self.output = scores(model.embedding.weight, None, precision=precision)
        self.table = model.embedding.weight.detach()
        self.dtype = torch.bfloat16 if precision == "bfloat16" else self.table.dtype

    @property
    def can_be_captured(self) -> bool:
        """Whether `at` runs here: on a GPU."""
        return runs_kernels(self.table)

    def start(self, rows: int) -> GptState:
        """Nothing read yet."""
        like = self.model.embedding.weight.new_empty(rows, 0, dtype=self.dtype)
        width = self.model.config.width // self.heads
        depth = self.model.config.depth
        return GptState(
            [KeyValues.empty(like, heads=self.heads, width=width) for _ in range(depth)]
        )

    @torch.inference_mode()
    def read(
        self, tokens: Int[Tensor, "B T"], state: GptState | None
    ) -> tuple[Float[Tensor, "B T D"], GptState]:
        """Go on from a state, which is changed."""
        state = state or self.start(len(tokens))
        x = self._embed(tokens, start=state.position)
        shape = tokens.shape[0], tokens.shape[1]
        features = self.decoder(x.flatten(0, 1), Whole(shape, self.heads, caches=state.layers))
        state.position += tokens.shape[1]
        return features.view(*shape, -1), state

    @torch.inference_mode()
    def step(
        self, tokens: Int[Tensor, " R"], state: GptState
    ) -> tuple[Float[Tensor, "R V"], GptState]:
        x = self._embed(tokens[:, None], start=state.position)[:, 0]
        features = self.decoder(x, Next(state.layers, self.heads))
        state.position += 1
        return self.output(features), state

    def sizes(self, state: GptState) -> dict[str, int]:
        """How much of a `Room` a state takes before the first step."""
        return {"prompt": state.position}

    def slots(self, room: Room) -> Slots:
        """A memory at fixed places for `at`."""
        config = self.model.config
        return _slots(self, room, depth=config.depth, width=config.width)

    def fill(self, slots: Slots, first: Int[Tensor, " B"], state: GptState) -> None:
        """Put what was read into fixed places."""
        slots.fill(first, prompts=state.layers)

    def at(self, slots: Slots) -> Float[Tensor, "R V"]:
        """A step whose every place in memory is fixed: the scores that follow `slots.tokens`."""
        positions: Any = self.model.positions.positions
        x = embed(slots.tokens, self.table, 1.0, positions.table.detach(), slots.clock, self.dtype)
        return self.output(self.decoder(x, slots))

    def _embed(self, tokens: Int[Tensor, "B T"], *, start: int) -> Float[Tensor, "B T D"]:
        x = self.model.positions(self.model.embedding(tokens), start=start)
        return x.to(self.dtype)


def _slots(model: LeanWords | LeanGpt, room: Room, *, depth: int, width: int) -> Slots:
    like = model.table.new_empty(0, dtype=model.dtype)
    return Slots(room, depth=depth, heads=model.heads, width=width // model.heads, like=like)


Lean = LeanTransformer | LeanCaptioner | LeanGpt | LeanRnnAttention


def lean(model: Any, precision: Precision) -> Lean | None:
    """The model stripped for decoding, if it is one that can be."""
    if isinstance(model, RnnAttention) and precision != "int8":
        return LeanRnnAttention(model, precision)
    if isinstance(model, Transformer) and can_be_lean(model):
        return LeanTransformer(model, precision)
    if isinstance(model, CaptionTransformer):
        return LeanCaptioner(model, precision)
    return LeanGpt(model, precision) if isinstance(model, Gpt) else None

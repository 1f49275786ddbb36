"""The Transformer and the GPT as functions of tensors."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from saccade.app.export.graphs import Graphs, Positions, Slot, linear, source_mask
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.residual import PreNorm
from saccade.models.text.gpt import Gpt
from saccade.models.text.transformer import Transformer


def _look(
    site: MultiHeadAttention,
    x: Float[Tensor, "B T D"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S K"],
    mask: Bool[Tensor, "#B #N #T S"] | None = None,
) -> Float[Tensor, "B T D"]:
    """What `MultiHeadAttention.read` computes."""
    q = _split(site, linear(site.to_q, x))
    read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return linear(site.to_output, read.transpose(1, 2).flatten(2))


def _memory(site: MultiHeadAttention, y: Float[Tensor, "B S D"]) -> tuple[Tensor, Tensor]:
    return _split(site, linear(site.to_k, y)), _split(site, linear(site.to_v, y))


def _split(site: MultiHeadAttention, x: Float[Tensor, "B T inner"]) -> Float[Tensor, "B N T K"]:
    return x.unflatten(-1, (site.heads, site.head_width)).transpose(1, 2)


def _around(residual: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    if isinstance(residual, PreNorm):
        return x + sublayer(residual.norm(x))
    return residual.norm(x + sublayer(x))


def _think(layer: Any, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
    """The MLP with its residual."""
    mlp = layer.mlp
    return _around(
        layer.around_mlp, x, lambda x: linear(mlp.narrow, mlp.activation(linear(mlp.widen, x)))
    )


class _Embedding(nn.Module):
    """Words, scaled, plus positions."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.words, self.scale = model.embedding, model.config.width**0.5
        added = model.positions
        kind = None if added is None else added.positions
        self.positions = None if kind is None else Positions(kind, longest=model.config.longest)

    def forward(self, tokens: Int[Tensor, "B T"], start: int) -> Float[Tensor, "B T D"]:
        x = self.words(tokens) * self.scale
        return x if self.positions is None else x + self.positions(start, tokens.shape[1])


class TransformerEncoder(nn.Module):
    """Source → which words are real, and keys and values for each decoder layer."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model, self.embed = model, _Embedding(model)

    def forward(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> list[Tensor]:
        real = source_mask(lengths, source)
        mask = real[:, None, None]
        x = self.embed(source, 0)
        for layer in self.model.encoder:
            block: Any = layer

            def look(x: Tensor, site: MultiHeadAttention = block.self_attention) -> Tensor:
                return _look(site, x, *_memory(site, x), mask)

            x = _think(block, _around(block.around_attention, x, look))
        x = self.model.encoder_norm(x)
        memory = [part for one in self.model.decoder for part in _memory(one.cross_attention, x)]  # type: ignore[union-attr]
        return [real, *memory]


class TransformerDecoder(nn.Module):
    """One word further."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model, self.embed = model, _Embedding(model)

    def forward(self, tokens: Int[Tensor, "R 1"], *state: Tensor) -> list[Tensor]:
        depth = len(self.model.decoder)
        mask, source, past = (
            state[0][:, None, None],
            state[1 : 1 + 2 * depth],
            state[1 + 2 * depth :],
        )
        x = self.embed(tokens, past[0].shape[2])
        grown: list[Tensor] = []
        for number, layer in enumerate(self.model.decoder):
            at = slice(2 * number, 2 * number + 2)
            x, new = _decoder_layer(layer, x, source[at], past[at], mask)
            grown += new
        x = self.model.decoder_norm(x)
        return [F.linear(x[:, -1], self.model.embedding.weight), *grown]


def _decoder_layer(
    layer: Any, x: Tensor, source: tuple[Tensor, ...], past: tuple[Tensor, ...], mask: Tensor
) -> tuple[Tensor, list[Tensor]]:
    grown: list[Tensor] = []

    def look_back(x: Tensor) -> Tensor:
        new = _memory(layer.self_attention, x)
        keys, values = (torch.cat(pair, dim=2) for pair in zip(past, new))
        grown.extend((keys, values))
        return _look(layer.self_attention, x, keys, values)

    def look_across(x: Tensor) -> Tensor:
        return _look(layer.cross_attention, x, source[0], source[1], mask)

    x = _around(layer.around_cross, _around(layer.around_self, x, look_back), look_across)
    return _think(layer, x), grown


class GptDecoder(nn.Module):
    """Some words further: a whole prompt, or one word."""

    def __init__(self, model: Gpt) -> None:
        super().__init__()
        self.model = model
        kind: Any = model.positions.positions
        self.positions = Positions(kind, longest=model.config.longest)

    def forward(self, tokens: Int[Tensor, "R T"], *past: Tensor) -> list[Tensor]:
        before, count = past[0].shape[2], tokens.shape[1]
        # As in `masks.causal`, whose sizes would be fixed in the graph.
        seen = torch.arange(before + count) <= torch.arange(before, before + count)[:, None]
        x = self.model.embedding(tokens) + self.positions(before, count)
        grown: list[Tensor] = []
        for number, layer in enumerate(self.model.decoder):
            block: Any = layer
            held = past[2 * number : 2 * number + 2]

            def look(x: Tensor, site: Any = block.self_attention, held: Any = held) -> Tensor:
                both = [torch.cat(pair, dim=2) for pair in zip(held, _memory(site, x))]
                grown.extend(both)
                return _look(site, x, *both, mask=seen[None, None])

            x = _think(block, _around(block.around_attention, x, look))
        x = self.model.norm(x)[:, -1]
        return [F.linear(x, self.model.embedding.weight), *grown]


def transformer_graphs(model: Transformer) -> Graphs:
    config = model.config
    sizes = (config.heads, config.width // config.heads)
    real = Slot("source_mask", ("rows", "source"), changes=False, dtype="bool")
    source = _key_values("source", config.depth, sizes, changes=False)
    return Graphs(
        TransformerEncoder(model),
        TransformerDecoder(model),
        [real, *source, *_key_values("past", config.depth, sizes)],
    )


def gpt_graphs(model: Gpt) -> Graphs:
    config = model.config
    sizes = (config.heads, config.width // config.heads)
    return Graphs(None, GptDecoder(model), _key_values("past", config.depth, sizes))


def _key_values(
    name: str, depth: int, sizes: tuple[int, int], *, changes: bool = True
) -> list[Slot]:
    heads, width = sizes
    return [
        Slot(f"{name}_{what}_{number}", ("rows", heads, name, width), changes)
        for number in range(depth)
        for what in ("keys", "values")
    ]

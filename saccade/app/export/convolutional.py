"""The convolutional translator as functions of tensors."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.export.graphs import Graphs, Positions, Slot, linear, source_mask
from saccade.blocks.conv import HALF, pad_around
from saccade.models.text.convolutional import ConvSeq2Seq


class _Gate(nn.Module):
    """What `GatedConv` computes; the norm of its weights is a constant in use."""

    def __init__(self, gated: Any) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(gated.conv.weight.detach()), gated.conv.bias

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T2 D"]:
        return F.glu(F.conv1d(x.mT, self.weight, self.bias), dim=1).mT


def _look(site: Any, z: Tensor, y: Tensor, keys: Tensor, values: Tensor, real: Tensor) -> Tensor:
    """What `ConvAttention` computes."""
    q = (linear(site.to_query, z) + y) * HALF
    scores = (q @ keys.mT).masked_fill(~real[:, None], -torch.inf)  # (R, T, S)
    return linear(site.to_output, scores.softmax(dim=-1) @ values)


class ConvEncoder(nn.Module):
    """Source → which words are real, keys and values, and what the kernels see before word one."""

    def __init__(self, model: ConvSeq2Seq) -> None:
        super().__init__()
        self.model = model
        self.gates = nn.ModuleList(map(_Gate, model.encoder))
        self.positions = Positions(model.source_positions, longest=model.config.longest)

    def forward(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> list[Tensor]:
        config = self.model.config
        real = source_mask(lengths, source)
        embedded = self.model.source_embedding(source) + self.positions(0, source.shape[1])
        x = embedded
        for gate in self.gates:
            # Padding is zeroed before every layer, or it would leak into its neighbours.
            x = x.masked_fill(~real[:, :, None], 0.0)
            x = (gate(pad_around(x, config.kernel)) + x) * HALF
        first = x.new_zeros(x.shape[0], config.kernel - 1, config.width)
        position = torch.zeros_like(lengths)
        return [real, x, (x + embedded) * HALF, position, *[first] * config.depth]


class ConvDecoder(nn.Module):
    """One word further; every layer keeps the last words that its kernel still needs."""

    table: Float[Tensor, "positions D"]

    def __init__(self, model: ConvSeq2Seq) -> None:
        super().__init__()
        self.model = model
        self.gates = nn.ModuleList(_Gate(layer.conv) for layer in model.decoder)
        self.register_buffer("table", model.target_positions.table.detach())

    def forward(self, tokens: Int[Tensor, "R 1"], *state: Tensor) -> list[Tensor]:
        real, keys, values, position, *recent = state
        there = F.embedding(position, self.table)
        x = y = self.model.target_embedding(tokens) + there[:, None]
        after: list[Tensor] = []
        for layer, gate, before in zip(self.model.decoder, self.gates, recent):
            seen = torch.cat([before, x], dim=1)
            after.append(seen[:, 1:])
            z = gate(seen)
            c = _look(layer.cross_attention, z, y, keys, values, real)
            x = ((z + c) * HALF + x) * HALF
        return [linear(self.model.readout, x[:, -1]), position + 1, *after]


def convolutional_graphs(model: ConvSeq2Seq) -> Graphs:
    config = model.config
    state = [
        Slot("source_mask", ("rows", "source"), changes=False, dtype="bool"),
        Slot("source_keys", ("rows", "source", config.width), changes=False),
        Slot("source_values", ("rows", "source", config.width), changes=False),
        Slot("position", ("rows",), dtype="int64"),
        *(
            Slot(f"recent_{number}", ("rows", config.kernel - 1, config.width))
            for number in range(config.depth)
        ),
    ]
    return Graphs(ConvEncoder(model), ConvDecoder(model), state)

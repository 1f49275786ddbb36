"""ONNX's own operators for recurrent layers, which stand in for torch's while a graph is written.

Those know ragged batches, so nothing has to be packed. Their gates stand in another order:

    LSTM   torch i f g o → ONNX i o f g        GRU   torch r z n → ONNX z r n
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.recurrent.rnn import RnnState, SourceReader

ORDERS: dict[type[nn.RNNBase], tuple[str, tuple[int, ...]]] = {
    nn.RNN: ("RNN", (0,)),
    nn.GRU: ("GRU", (1, 0, 2)),
    nn.LSTM: ("LSTM", (0, 3, 1, 2)),
}
States = Tensor | tuple[Tensor, ...]  # hidden states of all layers and ways, an LSTM's cells


def use_operators(model: nn.Module) -> None:
    """Let ONNX's operators compute all recurrent layers of a model, from now on."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.forward = partial(run_layers, module)
        elif isinstance(module, SourceReader):
            module.forward = partial(read_source, module)


def read_source(
    reader: SourceReader, x: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"]
) -> tuple[Float[Tensor, "B S H"], RnnState]:
    """What `SourceReader` computes; the ways of a layer stand side by side."""
    output, last = reader.layers(x, lengths=lengths)
    hidden, *cell = (
        part.transpose(0, 1).unflatten(1, (-1, reader.ways)).flatten(2)
        for part in (last if isinstance(last, tuple) else (last,))
    )
    return output, RnnState(hidden, cell[0] if cell else None)


def run_layers(
    rnn: nn.RNNBase, x: Tensor, state: States | None = None, lengths: Tensor | None = None
) -> tuple[Tensor, States]:
    """What torch's layers compute, each row up to its own length."""
    rows, ways = x.shape[0], 2 if rnn.bidirectional else 1
    if state is None:
        zero = x.new_zeros(rnn.num_layers * ways, rows, rnn.hidden_size)
        state = (zero, zero) if isinstance(rnn, nn.LSTM) else zero
    first = state if isinstance(state, tuple) else (state,)
    lengths = torch.full((rows,), x.shape[1]) if lengths is None else lengths
    ends: list[list[Tensor]] = []
    for number in range(rnn.num_layers):
        here = slice(number * ways, (number + 1) * ways)
        x, last = _layer(rnn, number, x, lengths, [part[here] for part in first])
        ends.append(last)
    joined = tuple(torch.cat(parts) for parts in zip(*ends))
    return x, joined if len(joined) == 2 else joined[0]


def _layer(
    rnn: nn.RNNBase, number: int, x: Tensor, lengths: Tensor, first: list[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    kind, order = ORDERS[type(rnn)]
    endings = [f"l{number}", f"l{number}_reverse"][: 2 if rnn.bidirectional else 1]

    def gates(name: str) -> Tensor:
        split = (rnn.get_parameter(f"{name}_{end}").split(rnn.hidden_size) for end in endings)
        return torch.stack([torch.cat([parts[gate] for gate in order]) for parts in split])

    bias = torch.cat([gates("bias_ih"), gates("bias_hh")], dim=1)
    attributes: dict[str, Any] = {"hidden_size": rnn.hidden_size}
    attributes["direction"] = "bidirectional" if rnn.bidirectional else "forward"
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    y, *last = torch.onnx.ops.symbolic_multi_out(
        kind,
        (x.transpose(0, 1), gates("weight_ih"), gates("weight_hh"), bias, lengths.int(), *first),
        attributes,
        dtypes=[torch.float32] * (1 + len(first)),
        shapes=[(x.shape[1], *first[0].shape), *(part.shape for part in first)],
        version=14,
    )
    return y.permute(2, 0, 1, 3).flatten(2), last  # (T, ways, B, H) → (B, T, ways · H)

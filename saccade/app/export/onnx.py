"""Any model as ONNX: encoder.onnx reads the source, decoder.onnx is one step of decoding.

Rows, source words and words so far are free sizes. `interface.json` names what goes in and out.
"""

import copy
import json
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.app.export.attentive import gpt_graphs, transformer_graphs
from saccade.app.export.convolutional import convolutional_graphs
from saccade.app.export.graphs import Graphs, Slot
from saccade.app.export.readme import onnx_readme
from saccade.app.export.recurrent import (
    rnn_attention_graphs,
    rnn_language_graphs,
    seq2seq_graphs,
)
from saccade.errors import ConfigError
from saccade.models.text.convolutional import ConvSeq2Seq
from saccade.models.text.gpt import Gpt
from saccade.models.text.rnn_attention import RnnAttention
from saccade.models.text.rnn_language import RnnLanguageModel
from saccade.models.text.seq2seq import Seq2Seq
from saccade.models.text.transformer import Transformer

# No two are the same, so that the exporter cannot take one size for another.
EXAMPLE = {"rows": 3, "source": 5, "past": 4, "words": 2}
LARGEST_FILE = 1_500_000_000  # a file of this format ends at two gigabytes; weights go beside it
DTYPES = {"float32": torch.float32, "bool": torch.bool, "int64": torch.int64}
MAKERS: dict[type[nn.Module], Any] = {
    Transformer: transformer_graphs,
    Gpt: gpt_graphs,
    ConvSeq2Seq: convolutional_graphs,
    Seq2Seq: seq2seq_graphs,
    RnnAttention: rnn_attention_graphs,
    RnnLanguageModel: rnn_language_graphs,
}


def graphs_of(model: nn.Module) -> Graphs:
    """The two functions of a model."""
    if type(model) not in MAKERS:
        raise ConfigError(f"{type(model).__name__} cannot be written as ONNX")
    return MAKERS[type(model)](model)


def write_onnx(model: nn.Module, folder: Path, name: str) -> str:
    """Write the graphs and their interface into a folder; gives the text of its README."""
    graphs = graphs_of(copy.deepcopy(model).float())
    tokens = Slot("tokens", ("rows", 1 if graphs.encoder else "words"), dtype="int64")
    scores = Slot("scores", ("rows", model.config.vocabulary))  # type: ignore[union-attr]
    after = [Slot(f"next_{slot.name}", _grown(slot.shape)) for slot in graphs.state if slot.changes]
    if graphs.encoder is not None:
        source = Slot("source", ("rows", "source"), dtype="int64")
        lengths = Slot("lengths", ("rows",), dtype="int64")
        started = [slot for slot in graphs.state if "past" not in slot.shape]
        _write(graphs.encoder, [source, lengths], started, folder / "encoder.onnx")
    _write(graphs.decoder, [tokens, *graphs.state], [scores, *after], folder / "decoder.onnx")
    interface = {"encoder": graphs.encoder is not None, "state": list(map(asdict, graphs.state))}
    (folder / "interface.json").write_text(json.dumps(interface, indent=2))
    return onnx_readme(name, graphs.state, translates=graphs.encoder is not None)


def _grown(shape: tuple[str | int, ...]) -> tuple[str | int, ...]:
    return tuple("past_and_words" if size == "past" else size for size in shape)


def _write(module: nn.Module, inputs: list[Slot], outputs: list[Slot], path: Path) -> None:
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    with _quiet(), torch.no_grad():
        program: Any = torch.onnx.export(
            module.eval(),
            tuple(map(_example, inputs)),
            input_names=[slot.name for slot in inputs],
            output_names=[slot.name for slot in outputs],
            dynamic_shapes=_dynamic(inputs),
            dynamo=True,
            verbose=False,
        )
        program.save(str(path), external_data=size > LARGEST_FILE)


def _example(slot: Slot) -> Tensor:
    shape = [EXAMPLE[size] if isinstance(size, str) else size for size in slot.shape]
    return torch.ones(shape, dtype=DTYPES[slot.dtype])


def _dynamic(inputs: list[Slot]) -> tuple[Any, ...]:
    first, *rest = (
        {axis: size for axis, size in enumerate(slot.shape) if isinstance(size, str)}
        for slot in inputs
    )
    # The state comes as `*state`, one group; an encoder has two plain arguments.
    return (first, *rest) if inputs[0].name == "source" else (first, tuple(rest))


@contextmanager
def _quiet() -> Generator[None, None, None]:
    """The exporter speaks of its own insides, which no user can mend."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)

"""Any model as ONNX: encoder.onnx reads the source, decoder.onnx is one step of decoding.

Rows, source words and words so far are free sizes. `interface.json` names what goes in and out.
"""

import copy
import json
import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils import parametrize

from saccade.app.export.graphs import EXAMPLE, FURTHEST, Slot, StartGraph, StepGraph, graphs_of
from saccade.app.export.recurrence import use_operators
from saccade.blocks.positions import FixedPositions
from saccade.errors import ConfigError

LARGEST_FILE = 1_500_000_000  # a file of this format ends at two gigabytes; weights go beside it


class Interface(NamedTuple):
    """What goes in and out of the graphs: of the encoder, if there is one, and of a step."""

    inputs: list[Slot]
    tokens: Slot
    state: list[Slot]


def write_onnx(
    model: nn.Module, folder: Path, settings: Mapping[str, Any] | None = None
) -> Interface:
    """Write the graphs and their interface into a folder; settings of the task fix sizes."""
    model = copy.deepcopy(model).float().cpu().eval()
    # Weights made of others, such as normed ones, are computed once and not in every step.
    with torch.no_grad(), parametrize.cached():
        inputs, decoder = graphs_of(model, settings)
        _prepare(model)
        slots = _write_decoder(decoder, folder / "decoder.onnx")
        if inputs:
            started = {key: slot for key, slot in slots.items() if "past" not in slot.shape}
            encoder = StartGraph(decoder.model, started)
            program = _program(encoder, inputs, [slot.name for slot in started.values()])
            save_program(program, encoder, folder / "encoder.onnx")
    table = {"encoder": bool(inputs), "state": [asdict(slot) for slot in slots.values()]}
    (folder / "interface.json").write_text(json.dumps(table, indent=2))
    return Interface(inputs, decoder.tokens, list(slots.values()))


def _write_decoder(decoder: StepGraph, path: Path) -> dict[str, Slot]:
    """Write a step; gives its state, of which what no step reads is no part."""
    slots = decoder.slots
    after = [f"next_{slot.name}" for slot in slots.values() if slot.changes]
    program = _program(decoder, [decoder.tokens, *slots.values()], ["scores", *after])
    given = program.model.graph.inputs
    for value in [value for value in given if not value.uses()]:
        given.remove(value)
    save_program(program, decoder, path)
    names = {value.name for value in given}
    return {key: slot for key, slot in slots.items() if slot.name in names}


def _prepare(model: nn.Module) -> None:
    """Let a copy of a model be traced."""
    use_operators(model)
    furthest = max(FURTHEST, asdict(model.config).get("longest", 0))  # type: ignore[arg-type]
    for module in model.modules():
        if isinstance(module, FixedPositions):
            module(0, furthest)


def _program(module: StartGraph | StepGraph, inputs: list[Slot], outputs: list[str]) -> Any:
    free = [{i: d for i, d in enumerate(slot.shape) if isinstance(d, str)} for slot in inputs]
    first, *rest = free
    # The state comes as `*state`, one group.
    dynamic = (first, tuple(rest)) if isinstance(module, StepGraph) else (tuple(free),)
    try:
        with quiet_exporter():
            return torch.onnx.export(
                module.eval(),
                tuple(slot.example(EXAMPLE) for slot in inputs),
                input_names=[slot.name for slot in inputs],
                output_names=outputs,
                dynamic_shapes=dynamic,
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        part = "its step of decoding" if isinstance(module, StepGraph) else "what it reads first"
        raise ConfigError(
            f"{type(module.model).__name__} cannot be written as ONNX: torch finds no graph of "
            f"{part}; use the run itself, by `saccade predict` or `saccade serve`"
        ) from error


def save_program(program: Any, module: nn.Module, path: Path) -> None:
    size = sum(tensor.nbytes for tensor in module.state_dict().values())
    with quiet_exporter():
        program.save(str(path), external_data=size > LARGEST_FILE)


@contextmanager
def quiet_exporter() -> Generator[None, None, None]:
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

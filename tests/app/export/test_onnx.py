"""ONNX graphs of every family decode what we decode, run by another program's runtime."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import config

from saccade.app.export.make import export_run
from saccade.app.export.onnx import graphs_of, write_onnx
from saccade.config import ModelConfig
from saccade.data.batches import pad
from saccade.data.vocabulary import END, PAD, START
from saccade.decode.greedy import extend
from saccade.errors import ConfigError
from saccade.train.folder import RunFolder
from tests.models import zoo

pytestmark = pytest.mark.slow

FAMILIES: dict[str, ModelConfig] = {
    "transformer pre": replace(zoo.TRANSLATORS["transformer pre sinusoids"], depth=1),  # type: ignore[call-arg]
    "transformer post fraction batch": replace(
        zoo.TRANSLATORS["transformer post sinusoids"],
        depth=1,  # type: ignore[call-arg]
        positions="fraction",
        norm="batch",
    ),
    "gpt": zoo.LANGUAGE["gpt-nano"],
    "seq2seq": zoo.TRANSLATORS["seq2seq lstm reverse=True"],
    "rnn-attention gru": zoo.TRANSLATORS["rnn-attention gru input depth=2"],
    "rnn-attention vanilla": zoo.TRANSLATORS["rnn-attention vanilla layer depth=1"],
    "convolutional": zoo.TRANSLATORS["convolutional kernel=3 depth=2"],
    "rnn-language": zoo.LANGUAGE["rnn-language lstm embedded tied=True depth=2"],
}
STEPS = 8


class Runtime:
    """An exported folder, used as its README says and with nothing of ours."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        self.interface = json.loads((folder / "interface.json").read_text())
        self.decoder = onnxruntime.InferenceSession(folder / "decoder.onnx")
        self.encoder = (
            onnxruntime.InferenceSession(folder / "encoder.onnx")
            if self.interface["encoder"]
            else None
        )

    def start(self, source: torch.Tensor, lengths: torch.Tensor) -> dict[str, np.ndarray]:
        state: dict[str, Any] = {}
        if self.encoder is not None:
            given = {"source": source.numpy(), "lengths": lengths.numpy()}
            names = [output.name for output in self.encoder.get_outputs()]
            state = dict(zip(names, self.encoder.run(None, given)))
        sizes = {"rows": len(source), "past": 0}
        for slot in self.interface["state"]:
            shape = [sizes.get(size, size) for size in slot["shape"]]
            if slot["name"] not in state:
                state[slot["name"]] = np.zeros(shape, dtype=slot["dtype"])
        return state

    def step(self, tokens: np.ndarray, state: dict[str, np.ndarray]) -> Any:
        names = [output.name for output in self.decoder.get_outputs()]
        found = dict(zip(names, self.decoder.run(None, {"tokens": tokens, **state})))
        after = {name: found.get(f"next_{name}", value) for name, value in state.items()}
        return found["scores"], after

    def greedy(self, source: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
        state = self.start(source, lengths)
        last = np.full((len(source), 1), START)
        rows: list[list[int]] = [[] for _ in source]
        for _ in range(STEPS):
            scores, state = self.step(last, state)
            last = scores.argmax(axis=-1)[:, None]
            for row, token in zip(rows, last[:, 0].tolist()):
                row.append(token)
        return [row[: row.index(END)] if END in row else row for row in rows]


@contextmanager
def unchecked() -> Generator[None, None, None]:
    """While a graph is traced its sizes are symbols, which no annotation allows for."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module", params=FAMILIES)
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Runtime]:
    model = zoo.build(FAMILIES[request.param], torch.float32)
    folder = tmp_path_factory.mktemp("onnx")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with unchecked():
        assert "decoder.onnx" in write_onnx(model, folder, "a model")
    after = model.state_dict()
    assert all(after[name].equal(tensor) for name, tensor in before.items())
    return model, Runtime(folder)


def sentences(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    rows = [
        torch.cat([torch.randint(4, 11, (length - 1,), generator=rng), torch.tensor([END])])
        for length in lengths
    ]
    return pad(rows, value=PAD), torch.tensor(lengths)


@pytest.mark.parametrize("lengths", [(1,), (7,), (5, 3, 4), (2, 9, 1, 6, 6)])
def test_greedy_decoding_of_ragged_batches_gives_our_words(
    lengths: tuple[int, ...], exported: tuple[Any, Runtime]
) -> None:
    model, runtime = exported
    source, sizes = sentences(*lengths)
    first = torch.full((len(source),), START)
    limits = torch.full((len(source),), STEPS)
    ours = extend(model, zoo.begin(model, source, sizes), first, limits=limits)
    assert runtime.greedy(source, sizes) == [one.tokens for one in ours]


def test_scores_of_given_words_are_ours_at_every_step(exported: tuple[Any, Runtime]) -> None:
    model, runtime = exported
    state = runtime.start(zoo.SOURCE, zoo.LENGTHS)
    with torch.no_grad():
        expected = model.output(zoo.features(model, zoo.TARGET))  # (B, T, V)
    for t, tokens in enumerate(zoo.TARGET.T):
        scores, state = runtime.step(tokens[:, None].numpy(), state)
        if getattr(model.config, "positions", "") != "fraction":  # whose past changes with time
            torch.testing.assert_close(torch.from_numpy(scores), expected[:, t], rtol=0, atol=1e-4)


def test_rows_of_a_state_can_be_kept_and_repeated(exported: tuple[Any, Runtime]) -> None:
    _, runtime = exported
    rows = np.array([2, 0, 2, 1])
    tokens = zoo.TARGET[:, :2].numpy()
    _, state = runtime.step(tokens[:, :1], runtime.start(zoo.SOURCE, zoo.LENGTHS))
    all_scores, _ = runtime.step(tokens[:, 1:], state)
    kept = {name: value[rows] for name, value in state.items()}
    scores, _ = runtime.step(tokens[rows, 1:], kept)
    np.testing.assert_allclose(scores, all_scores[rows], atol=1e-5)


@pytest.mark.parametrize("exported", ["gpt", "rnn-language"], indirect=True)
def test_a_language_model_reads_a_prompt_at_once(exported: tuple[Any, Runtime]) -> None:
    model, runtime = exported
    at_once, _ = runtime.step(zoo.TARGET.numpy(), runtime.start(zoo.SOURCE, zoo.LENGTHS))
    with torch.no_grad():
        expected = model.output(model(zoo.TARGET))[:, -1]
    torch.testing.assert_close(torch.from_numpy(at_once), expected, rtol=0, atol=1e-4)


def test_a_run_becomes_a_folder_that_says_what_goes_in_and_out(
    translator_run: Path, tmp_path: Path
) -> None:
    with unchecked():
        out, written = export_run(RunFolder(translator_run), "onnx", out=tmp_path / "out")
    assert written
    names = {path.name for path in out.iterdir()}
    graphs = {"encoder.onnx", "decoder.onnx", "interface.json"}
    assert names == graphs | {"README.md", "tokenizer.json", "saccade.json"}
    text = (out / "README.md").read_text()
    for slot in json.loads((out / "interface.json").read_text())["state"]:
        assert f"`{slot['name']}`" in text


def test_what_is_no_model_of_ours_is_refused() -> None:
    with pytest.raises(ConfigError, match="Linear cannot be written as ONNX"):
        graphs_of(torch.nn.Linear(1, 1))

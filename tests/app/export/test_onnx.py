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
from saccade.app.export.onnx import write_onnx
from saccade.config import ModelConfig
from saccade.data.batching.batches import pad
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.greedy import Greedy
from saccade.decode.search import search
from saccade.errors import ConfigError
from saccade.train.storage.folder import RunFolder
from tests.models import captioners, gallery, zoo

END, PAD, START = OURS.end, OURS.pad, OURS.start

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
CAPTIONERS: dict[str, ModelConfig] = {
    "show-and-tell": gallery.CAPTIONERS["show-and-tell always"],
    "cnn-transformer": captioners.CONFIGS["cnn pre"],
    "vit-captioner": captioners.CONFIGS["vit of another width"],
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

    def start(self, *given: torch.Tensor) -> dict[str, np.ndarray]:
        """From a source and its lengths, or from images."""
        state: dict[str, Any] = {}
        if self.encoder is not None:
            inputs = [one.name for one in self.encoder.get_inputs()]
            names = [output.name for output in self.encoder.get_outputs()]
            numbers = {name: tensor.numpy() for name, tensor in zip(inputs, given)}
            state = dict(zip(names, self.encoder.run(None, numbers)))
        sizes = {"rows": len(given[0]), "past": 0}
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

    def greedy(self, *given: torch.Tensor) -> list[list[int]]:
        state = self.start(*given)
        last = np.full((len(given[0]), 1), START)
        rows: list[list[int]] = [[] for _ in given[0]]
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
        write_onnx(model, folder)
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


def greedy(model: Any, state: Any, rows: int) -> list[list[int]]:
    first, limits = torch.full((rows,), START), torch.full((rows,), STEPS)
    found = search(model, state, first, limits=limits, end=END, method=Greedy())
    return [one.tokens for (one,) in found]


@pytest.mark.parametrize("lengths", [(1,), (7,), (5, 3, 4), (2, 9, 1, 6, 6)])
def test_greedy_decoding_of_ragged_batches_gives_our_words(
    lengths: tuple[int, ...], exported: tuple[Any, Runtime]
) -> None:
    model, runtime = exported
    source, sizes = sentences(*lengths)
    assert runtime.greedy(source, sizes) == greedy(
        model, zoo.begin(model, source, sizes), len(source)
    )


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


@pytest.mark.parametrize("config", CAPTIONERS.values(), ids=CAPTIONERS)
def test_a_captioner_writes_what_ours_writes(config: Any, tmp_path: Path) -> None:
    model = gallery.build(config, torch.float32)
    with unchecked():
        write_onnx(model, tmp_path, {"image": gallery.PICTURES.shape[-1]})
    runtime = Runtime(tmp_path)
    for images in (gallery.PICTURES, gallery.PICTURES[:1], gallery.PICTURES[[1, 0, 1]]):
        assert runtime.greedy(images) == greedy(model, model.start(images), len(images))


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


class Listener(torch.nn.Linear):
    """Starts from what nobody can give it."""

    def start(self, sound: torch.Tensor) -> None: ...

    def step(self, tokens: torch.Tensor, state: None) -> tuple[torch.Tensor, None]:
        raise NotImplementedError


class Moody(torch.nn.Module):
    """Does what its words tell it, which no graph can say."""

    config = zoo.LANGUAGE["gpt-nano"]

    def start(self, rows: int) -> list[torch.Tensor]:
        return [torch.zeros(rows)]

    def step(self, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        return (tokens.float() if int(tokens.sum()) % 2 else 2 * tokens.float()), state


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (torch.nn.Linear(1, 1), "Linear cannot be written as ONNX: it decodes no words"),
        (Listener(1, 1), "Listener cannot be written as ONNX: it reads sound"),
        (Moody(), "Moody cannot be written as ONNX: torch finds no graph of its step"),
    ],
)
def test_what_no_graph_can_say_is_refused(
    model: torch.nn.Module, reason: str, tmp_path: Path
) -> None:
    with unchecked(), pytest.raises(ConfigError, match=reason):
        write_onnx(model, tmp_path)

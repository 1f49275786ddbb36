"""A run folder from a stranger: what is not sound is refused, and no code of theirs is run."""

import hashlib
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import CheckpointError, RunError, SaccadeError
from saccade.train.run import train
from saccade.train.storage.checkpoint import load_newest, read_tensors
from saccade.train.storage.files import read_json, replace_file
from saccade.train.storage.folder import RunFolder
from tests.marks import one_fast
from tests.train.small import ignore, small_recipe, write_corpus

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(small_recipe(write_corpus(folder / "data"), steps=5), folder / "run", ignore)
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """One that nobody vouches for: whoever forges its files forges the list of digests, too."""
    copied = Path(shutil.copytree(trained, tmp_path / "run"))
    (copied / "manifest.json").unlink()
    return copied


def test_what_was_trained_can_be_loaded(trained: Path) -> None:
    model = RunFolder(trained).load_model(CPU)
    kept = load_file(trained / "model.safetensors")
    assert not model.training
    assert all(kept[name].equal(tensor) for name, tensor in model.state_dict().items())


class Sentinel:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def header(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(content) if length is None else length) + content


def entry(dtype: str, shape: list[int], *offsets: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


def craft(path: Path, kind: str) -> None:
    """Write one of the files that have broken other readers."""
    trace = path.parent / "trace"
    zeros = bytes(64)
    tables: dict[str, dict[str, Any]] = {
        "overlap": {"a": entry("F32", [8], 0, 32), "b": entry("F32", [8], 16, 48)},
        "hole": {"a": entry("F32", [4], 0, 16), "b": entry("F32", [4], 48, 64)},
        "dtype lie": {"a": entry("F64", [16], 0, 64)},
        "shape lie": {"a": entry("F32", [1 << 40], 0, 64)},
        "overflow": {"a": entry("F32", [1 << 62, 8], 0, 64)},
        "beyond the end": {"a": entry("F32", [1 << 20], 0, 4 << 20)},
        "backwards": {"a": entry("F32", [4], 64, 48)},
        "unknown dtype": {"a": entry("X99", [16], 0, 64)},
    }
    bomb = b'{"a":' * 100_000
    made: dict[str, Callable[[], bytes]] = {
        "pickle": lambda: pickle.dumps(Sentinel(trace)),
        "nothing": lambda: b"",
        "huge header": lambda: header(b"{}", 1 << 60) + zeros,
        "large header": lambda: header(b"{}", 90_000_000) + zeros,
        "depth bomb": lambda: header(bomb),
        "no JSON": lambda: header(b"\xff" * 32),
    }
    if kind == "torch.save":
        torch.save({"a": Sentinel(trace)}, path)
    elif kind in made:
        path.write_bytes(made[kind]())
    else:
        path.write_bytes(header(json.dumps(tables[kind]).encode()) + zeros)


CRAFTED = (
    "pickle torch.save nothing overlap hole overflow backwards huge\u00a0header large\u00a0header "
    "depth\u00a0bomb no\u00a0JSON dtype\u00a0lie shape\u00a0lie beyond\u00a0the\u00a0end "
    "unknown\u00a0dtype"
)
KINDS = [kind.replace("\u00a0", " ") for kind in CRAFTED.split(" ")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_crafted_file_of_weights_is_refused_and_runs_no_code(kind: str, run: Path) -> None:
    craft(run / "model.safetensors", kind)
    with pytest.raises(RunError, match=r"model\.safetensors is not a sound safetensors file"):
        RunFolder(run).load_model(CPU)
    assert not (run / "trace").exists()


def test_the_trap_itself_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Sentinel(tmp_path / "trace")))
    assert (tmp_path / "trace").is_dir()


def sign(checkpoint: Path) -> None:
    """Give a manifest the digests of the files as they now are."""
    path = checkpoint / "manifest.json"
    names = json.loads(path.read_text())
    path.write_text(
        json.dumps({n: hashlib.sha256((checkpoint / n).read_bytes()).hexdigest() for n in names})
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["model", "optimizer"])
def test_a_crafted_checkpoint_is_refused_and_runs_no_code_even_if_its_digests_are_right(
    kind: str, part: str, run: Path
) -> None:
    (checkpoint,) = [p for p in (run / "checkpoints").iterdir() if p.name == "step-00000005"]
    craft(checkpoint / f"{part}.safetensors", kind)
    sign(checkpoint)
    found, (trouble,) = load_newest(run / "checkpoints")
    assert found is not None
    assert found.step == 3
    assert f"{part}.safetensors is not a sound safetensors file" in trouble
    assert not (checkpoint / "trace").exists()


BOMBS = ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, '{"a": "', "", "\x00", "[" * 999 + "]" * 999]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_in_place_of_the_settings_is_refused(bomb: str, run: Path) -> None:
    (run / "config.json").write_text(bomb)
    with pytest.raises(RunError, match=r"config\.json"):
        RunFolder(run).load_recipe()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_in_place_of_the_tokenizer_is_refused(bomb: str, run: Path) -> None:
    (run / "tokenizer.json").write_text(bomb)
    with pytest.raises(RunError, match=r"tokenizer\.json is not a tokenizer"):
        Vocabulary.load(run / "tokenizer.json")


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("name", ["state.json", "manifest.json"])
def test_a_bomb_in_a_checkpoint_is_passed_over(bomb: str, name: str, run: Path) -> None:
    checkpoint = run / "checkpoints" / "step-00000005"
    (checkpoint / name).write_text(bomb)
    if name == "state.json":
        sign(checkpoint)
    found, (trouble,) = load_newest(run / "checkpoints")
    assert found is not None
    assert found.step == 3
    assert f"step-00000005/{name}" in trouble


def test_a_huge_json_file_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(CheckpointError, match=r"huge\.json is too large"):
        read_json(path)


@pytest.mark.slow
def test_no_crafted_folder_takes_much_memory(run: Path) -> None:
    """All of them, one after another, in a process whose whole memory stays below 500 MB."""
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "import torch\n"
        "from saccade.errors import SaccadeError\n"
        "from saccade.train.storage.folder import RunFolder\n"
        "from saccade.train.storage.checkpoint import load_newest\n"
        "refused = 0\n"
        "for folder in map(Path, sys.argv[1:]):\n"
        "    for act in (lambda: RunFolder(folder).load_model(torch.device('cpu')),\n"
        "                lambda: load_newest(folder / 'checkpoints')):\n"
        "        try:\n"
        "            act()\n"
        "        except SaccadeError:\n"
        "            refused += 1\n"
        # Not ru_maxrss: a new process begins with that of its parent, the test itself.
        "status = Path('/proc/self/status').read_text()\n"
        "peak = int(status.split('VmHWM:')[1].split()[0]) / 1024\n"
        "print(json.dumps([refused, peak]))\n"
    )
    folders = []
    for i, kind in enumerate(KINDS):
        folder = Path(shutil.copytree(run, run.parent / f"crafted {i}"))
        shutil.rmtree(folder / "checkpoints" / "step-00000003")
        craft(folder / "model.safetensors", kind)
        craft(folder / "checkpoints" / "step-00000005" / "model.safetensors", kind)
        sign(folder / "checkpoints" / "step-00000005")
        folders.append(str(folder))
    ended = subprocess.run(
        [sys.executable, "-c", script, *folders],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    refused, megabytes = json.loads(ended.stdout)
    assert refused == 2 * len(KINDS)
    assert megabytes < 500
    assert not list(run.parent.rglob("trace"))


def test_sound_weights_of_another_model_are_refused(run: Path) -> None:
    weights = load_file(run / "model.safetensors")
    weights["embedding.weight"] = torch.zeros(3, 16)
    save_file(weights, run / "model.safetensors")
    with pytest.raises(RunError, match=r"does not fit .*config\.json: embedding\.weight has shape"):
        RunFolder(run).load_model(CPU)


@pytest.mark.parametrize("change", ["missing", "extra"])
def test_weights_with_a_name_too_many_or_too_few_are_refused(change: str, run: Path) -> None:
    weights = load_file(run / "model.safetensors")
    if change == "missing":
        del weights["embedding.weight"]
    else:
        weights["more"] = torch.zeros(1)
    save_file(weights, run / "model.safetensors")
    with pytest.raises(RunError, match=r"None"):
        RunFolder(run).load_model(CPU)


def test_a_folder_that_is_no_run_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a run: it has no config\.json"):
        RunFolder(tmp_path).load_recipe()


def test_a_run_without_weights_is_told_so(run: Path) -> None:
    (run / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"has no model\.safetensors yet"):
        RunFolder(run).load_model(CPU)


@pytest.mark.parametrize("content", [b"old", None])
def test_a_file_is_replaced_at_once_or_not_at_all(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaccadeError, match=r"file: No space left .*\(3 bytes needed, [\d,]+ free"):
        replace_file(path, b"new")
    assert (path.read_bytes() if path.exists() else None) == content
    assert not list(tmp_path.glob(".tmp-*"))
    monkeypatch.undo()
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_missing_file_of_tensors_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none\.safetensors"):
        read_tensors(tmp_path / "none.safetensors")


@pytest.mark.parametrize("sizes", one_fast([{"width": 10**9}, {"depth": 10**7}]))
def test_sizes_that_no_machine_has_are_refused(sizes: dict[str, int], run: Path) -> None:
    table = json.loads((run / "config.json").read_text())
    table["model"] |= sizes
    (run / "config.json").write_text(json.dumps(table))
    with pytest.raises(SaccadeError) as refused:
        RunFolder(run).load_model(CPU)
    assert "\n" not in str(refused.value)

"""A run whose files are not what was written is refused; at no instant is a sound one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saccade.app.api import load
from saccade.errors import RunError
from saccade.train.run import train
from saccade.train.storage import files, manifest
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.manifest import MANIFEST, Manifest
from tests.train.small import ignore, small_recipe, train_noting, write_corpus

CPU = torch.device("cpu")
LISTED = ("config.json", "model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(small_recipe(data, steps=5), folder, ignore)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def flip(path: Path, where: float = 0.7, bit: int = 2) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 1 << bit
    path.write_bytes(content)


def test_every_file_that_using_a_run_reads_is_listed(trained: Path) -> None:
    assert set(json.loads((trained / MANIFEST).read_text())) == set(LISTED)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    name=st.sampled_from(LISTED),
    where=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_no_flipped_bit_of_a_run_goes_unnoticed(
    name: str, where: float, bit: int, run: Path
) -> None:
    sound = (run / name).read_bytes()
    flip(run / name, where, bit)
    try:
        with pytest.raises(RunError, match=rf"{name} is damaged: its SHA-256"):
            load(run, device="cpu")
    finally:
        (run / name).write_bytes(sound)


def test_the_way_out_for_one_who_changed_a_file_works(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "about": "mine"}))
    with pytest.raises(RunError, match=r"if you changed it yourself, remove manifest\.json"):
        load(run, device="cpu")
    (run / MANIFEST).unlink()
    assert RunFolder(run).load_recipe().about == "mine"
    load(run, device="cpu")


def test_a_run_of_an_earlier_version_loads_and_is_listed_once_it_goes_on(
    run: Path, data: Path
) -> None:
    (run / MANIFEST).unlink()
    load(run, device="cpu")
    train(small_recipe(data, steps=10), run, ignore)
    assert {"config.json", "tokenizer.json"} <= set(json.loads((run / MANIFEST).read_text()))
    load(run, device="cpu")


@pytest.mark.parametrize("content", ["[]", "{", '{"config.json": "abc"}', '{"../x": ["0"]}'])
def test_a_list_that_is_none_is_refused_and_the_way_out_works(content: str, run: Path) -> None:
    (run / MANIFEST).write_text(content)
    with pytest.raises(RunError, match="remove it to go on without checking"):
        load(run, device="cpu")
    (run / MANIFEST).unlink()
    load(run, device="cpu")


@pytest.mark.parametrize("old", [b"old", None])
def test_at_every_instant_the_file_that_is_there_is_listed(
    old: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, seen = Manifest(tmp_path), list[bytes | None]()
    if old is not None:
        (tmp_path / "file").write_bytes(old)  # as a run of an earlier version has it

    def spied(act: Callable[..., Any]) -> Callable[..., Any]:
        def act_between_looks(*arguments: Any) -> None:
            for doing in (lambda: None, lambda: act(*arguments)):
                doing()
                listed.check()
                path = tmp_path / "file"
                seen.append(path.read_bytes() if path.exists() else None)

        return act_between_looks

    monkeypatch.setattr(files, "write_synced", spied(files.write_synced))
    monkeypatch.setattr(files, "sync_folder", spied(files.sync_folder))
    for content in (b"first", b"second", b"second"):
        listed.replace("file", content)
    assert list(dict.fromkeys(seen)) == [old, b"first", b"second"]


def test_a_file_replaced_between_two_looks_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, digest = Manifest(tmp_path), manifest.sha256
    listed.replace("file", b"first")
    waiting = [b"second"]

    def training_goes_on(path: Path) -> str:
        if waiting:
            listed.replace("file", waiting.pop())
        return digest(path)

    monkeypatch.setattr(manifest, "sha256", training_goes_on)
    listed.check()
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"second"


@pytest.mark.parametrize("harm", [flip, Path.unlink])
@pytest.mark.parametrize("steps", [5, 10])
def test_training_further_writes_damaged_weights_anew(
    harm: Callable[[Path], None], steps: int, run: Path, data: Path
) -> None:
    harm(run / "model.safetensors")
    with pytest.raises(RunError):
        load(run, device="cpu")
    _, notes = train_noting(small_recipe(data, steps=steps), run)
    assert any("is missing or damaged: the next validation writes it anew" in n for n in notes)
    load(run, device="cpu")

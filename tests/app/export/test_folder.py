"""An export is whole or not there, and is made anew when its run has changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from saccade.app.export.folder import CARD, describe, is_fresh, require, write_export
from saccade.errors import ConfigError, WriteError
from saccade.tasks.tokenizer import TOKENIZER
from saccade.train.storage.folder import RunFolder


def fill_with(text: str) -> Any:
    def fill(folder: Path) -> None:
        (folder / "model").write_text(text)

    return fill


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_export_is_fresh_until_any_thing_it_was_made_of_changes(
    translator_run: Path, tmp_path: Path
) -> None:
    run, out = RunFolder(translator_run), tmp_path / "out"
    description = describe(run, "ctranslate2", "int8", TOKENIZER)
    assert not is_fresh(out, description)
    write_export(run, out, description, fill_with("one"), TOKENIZER)
    assert is_fresh(out, description)
    assert files(out) == {"model", "tokenizer.json", CARD}
    for name in description:
        assert not is_fresh(out, {**description, name: "another"}), name
    (out / CARD).write_text("{")
    assert not is_fresh(out, description)


@pytest.mark.parametrize("harm", ["cut", "flipped", "missing", "added", "card"])
@pytest.mark.parametrize("name", ["model", "tokenizer.json"])
def test_a_damaged_export_is_not_fresh_and_is_made_anew(
    harm: str, name: str, translator_run: Path, tmp_path: Path
) -> None:
    run, out = RunFolder(translator_run), tmp_path / "out"
    write_export(run, out, {"of": "this"}, fill_with("one"), TOKENIZER)
    assert is_fresh(out, {"of": "this"})
    (out / "README.md").write_text("notes of mine")
    assert is_fresh(out, {"of": "this"})
    raw = (out / name).read_bytes()
    match harm:
        case "cut":
            (out / name).write_bytes(raw[:-1])
        case "flipped":
            (out / name).write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        case "missing":
            (out / name).unlink()
        case "added":
            (out / "more").mkdir()
        case _:
            (out / CARD).write_text("[]")
    assert not is_fresh(out, {"of": "this"})
    write_export(run, out, {"of": "this"}, fill_with("one"), TOKENIZER)
    assert is_fresh(out, {"of": "this"})


@pytest.mark.parametrize("name", [".tmp-out", ".old-out"])
def test_a_stray_in_the_way_goes_and_where_it_leads_stays(
    name: str, translator_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("")
    (tmp_path / name).symlink_to(tmp_path / "mine")
    write_export(RunFolder(translator_run), tmp_path / "out", {}, fill_with("one"), TOKENIZER)
    assert files(tmp_path) == {"mine", "out"}
    assert files(tmp_path / "mine") == {"precious"}


def test_a_new_export_takes_the_place_of_the_old_and_leaves_nothing_behind(
    translator_run: Path, tmp_path: Path
) -> None:
    run, out = RunFolder(translator_run), tmp_path / "out"
    for text in ("one", "two"):
        write_export(run, out, {"of": text}, fill_with(text), TOKENIZER)
    assert (out / "model").read_text() == "two"
    assert json.loads((out / CARD).read_text())["of"] == "two"
    assert files(tmp_path) == {"out"}


NO_ROOM = "No space left on device"


@pytest.mark.parametrize(
    "error", [OSError(28, NO_ROOM), SafetensorError(f"I/O error: {NO_ROOM}"), KeyboardInterrupt()]
)
def test_an_export_that_fails_leaves_the_old_one(
    error: BaseException, translator_run: Path, tmp_path: Path
) -> None:
    run, out = RunFolder(translator_run), tmp_path / "out"
    write_export(run, out, {}, fill_with("old"), TOKENIZER)

    def fail(folder: Path) -> None:
        (folder / "model").write_text("half")
        raise error

    fails = pytest.raises(WriteError, match=rf"cannot write .*out: .*{NO_ROOM} \(.* bytes needed")
    with fails if isinstance(error, Exception) else pytest.raises(KeyboardInterrupt):
        write_export(run, out, {}, fail, TOKENIZER)
    assert (out / "model").read_text() == "old"
    assert files(tmp_path) == {"out"}


def test_a_folder_that_is_no_export_is_never_overwritten(
    translator_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ConfigError, match="is there and is not an export; name another folder"):
        write_export(RunFolder(translator_run), tmp_path, {}, fill_with("one"), TOKENIZER)
    assert files(tmp_path) == {"mine"}


def test_a_missing_package_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"no_such_engine .* pip install 'saccade\[export\]'"):
        require("no_such_engine")

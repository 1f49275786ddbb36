"""Models by their name on the Hub: what is asked for, and what is said where it cannot be had."""

import sys
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest
from safetensors.torch import save_file

from saccade.errors import ConfigError
from saccade.models.text.gpt import GptConfig
from saccade.train.recipe import Recipe
from saccade.train.starting.hub import local_folder
from tests.data.tokenizers_made import gpt_like, write_byte_pairs
from tests.train.small import small_language, train_noting

OFFLINE = "We couldn't connect to 'https://huggingface.co'\nand more lines"


class Hub(ModuleType):
    """As much of huggingface_hub as is used: files of a folder, copied where they match."""

    def __init__(self, there: Path, cache: Path) -> None:
        super().__init__("huggingface_hub")
        self.there, self.cache, self.asked = there, cache, list[str]()
        self.offline = False

    def snapshot_download(self, name: str, *, allow_patterns: list[str]) -> str:
        if self.offline:
            raise ConnectionError(OFFLINE)
        self.asked.append(name)
        folder = self.cache / "0123abc"
        folder.mkdir(exist_ok=True, parents=True)
        for path in self.there.iterdir():
            if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                (folder / path.name).write_bytes(path.read_bytes())
        return str(folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    there = tmp_path / "there"
    there.mkdir()
    found = Hub(there, tmp_path / "cache")
    monkeypatch.setitem(sys.modules, "huggingface_hub", found)
    return found


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_path_is_itself() -> None:
    assert local_folder("runs/a") == Path("runs/a")


def test_only_sizes_tokens_and_weights_are_fetched_and_the_safe_form_first(hub: Hub) -> None:
    about = {"config.json", "tokenizer.json", "vocab.txt", "merges.txt", "vocab.json"}
    safe = {"model.safetensors"}
    write(hub.there, *about, *safe, "pytorch_model.bin", "modeling_x.py", "tf_model.h5", "a.onnx")
    assert names(local_folder("hf:owner/name")) == about | safe
    assert hub.asked == ["owner/name"]


def test_weights_in_parts_come_with_their_index(hub: Hub) -> None:
    parts = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    write(hub.there, *parts, "model.safetensors.index.json")
    assert names(local_folder("hf:name")) == {*parts, "model.safetensors.index.json"}


def test_without_the_safe_form_the_other_is_fetched(hub: Hub) -> None:
    write(hub.there, "config.json", "pytorch_model.bin", "evil.bin")
    assert names(local_folder("hf:owner/na.me-2")) == {"config.json", "pytorch_model.bin"}


def start_from(init: str) -> Recipe:
    recipe = small_language(steps=1, validate_every=1)
    return replace(recipe, init=init, model=GptConfig(width=16, depth=1, heads=2, longest=32))


def test_a_run_starts_from_a_name_and_remembers_it_with_its_revision(
    hub: Hub, tmp_path: Path
) -> None:
    write_byte_pairs(hub.there, gpt_like())
    model = GptConfig(vocabulary=330, width=16, depth=1, heads=2, longest=32).build()
    save_file(model.state_dict(), hub.there / "model.safetensors")
    _, notes = train_noting(start_from("hf:owner/name"), tmp_path / "run")
    assert any(n.startswith("starting from hf:owner/name: ") and "loaded" in n for n in notes)
    assert "  its tokenizer of 330 tokens, whatever the options say of tokens" in notes
    card = (tmp_path / "run" / "README.md").read_text()
    assert "from the weights of hf:owner/name@0123abc." in card
    hub.offline = True  # a run that goes on needs no network
    _, notes = train_noting(start_from("hf:owner/name"), tmp_path / "run")
    assert notes[-1] == "already trained to step 1 of 1"


def refused(init: str) -> str:
    with pytest.raises(ConfigError) as error:
        local_folder(init)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_without_a_network_it_is_said_in_one_line(hub: Hub) -> None:
    hub.offline = True
    assert refused("hf:owner/name") == (
        "hf:owner/name cannot be fetched (We couldn't connect to 'https://huggingface.co'); check "
        "its name and the network, or download the folder and name it with --init"
    )


def test_without_the_package_it_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused("hf:owner/name") == (
        "init=hf:owner/name needs the package huggingface_hub; pip install it, or download the "
        "folder and name it with --init"
    )


@pytest.mark.parametrize("name", ["", "a/b/c", "../x", "a b", "a/\x1b[31m", "/etc", "a/.."])
def test_what_is_no_name_is_refused(name: str, hub: Hub) -> None:
    assert "must be hf:owner/name, as on the Hub" in refused(f"hf:{name}")
    assert not hub.asked

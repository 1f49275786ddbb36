"""A tokenizer of somebody else: what it asks for in silence is not done, and it cannot end us."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from saccade.data.tokens import vocabulary as module
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError, RunError, SaccadeError

WORDS = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4}


def written(path: Path, **changed: Any) -> Path:
    base: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
    }
    path.write_text(json.dumps({**base, **changed}))
    return path


def model(**changed: Any) -> dict[str, Any]:
    return {"model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]", **changed}}


LOADING: dict[str, tuple[dict[str, Any], str]] = {
    "a panic": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
        "is not a tokenizer: Precompiled",
    ),
    "a gap": (model(vocab={**WORDS, "z": 70_000}), "6 tokens and numbers up to 70,000"),
    "a number past all": (model(vocab={**WORDS, "z": 2**32 - 1}), "numbers up to 4,294,967,295"),
    "no special tokens": (model(vocab={"[UNK]": 0}), "no tokens for start and end"),
    "no model": ({"model": {}}, "is not a tokenizer"),
}


@pytest.mark.parametrize("what", LOADING)
def test_what_cannot_be_used_is_refused_when_it_is_loaded(what: str, tmp_path: Path) -> None:
    changed, told = LOADING[what]
    with pytest.raises(RunError, match=rf"tokenizer\.json .*{told}"):
        Vocabulary.load(written(tmp_path / "tokenizer.json", **changed))


@pytest.mark.parametrize("kind", ["fifo", "folder", "nothing", "device"])
def test_what_is_no_file_is_refused_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    with pytest.raises(RunError, match=r"is not a regular file|is a directory|does not exist"):
        Vocabulary.load(path)


def test_one_that_is_too_large_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(RunError, match="over 100 bytes"):
        Vocabulary.load(written(tmp_path / "tokenizer.json"))


def test_an_error_while_encoding_is_one_line(tmp_path: Path) -> None:
    vocabulary = Vocabulary.load(written(tmp_path / "tokenizer.json", **model(unk_token="none")))
    assert vocabulary.encode("a a") == [4, 4]
    for act in (vocabulary.encode, vocabulary.spans, lambda text: vocabulary.encode_all([text])):
        with pytest.raises(DataError, match=r"fails on this text: WordLevel error: Missing"):
            act("b")


def test_a_panic_while_encoding_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As the library's own, which derives from no Exception."""

    vocabulary = Vocabulary.load(written(tmp_path / "tokenizer.json"))

    class Hostile:
        def encode_batch(self, *_: Any, **__: Any) -> Any:
            raise Panic("index out of bounds\nat line 3")

    monkeypatch.setattr(vocabulary, "_tokenizer", Hostile())
    with pytest.raises(SaccadeError, match=r"fails on this text: index out of bounds$"):
        vocabulary.encode("a")


def test_no_number_past_the_vocabulary_gets_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = Vocabulary.load(written(tmp_path / "tokenizer.json"))
    monkeypatch.setattr(vocabulary, "_size", 4)
    with pytest.raises(DataError, match="gives the number 4, and has 4"):
        vocabulary.encode("a")


def test_text_is_neither_cut_nor_padded_in_silence(tmp_path: Path) -> None:
    cut = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    pad = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    pad |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    vocabulary = Vocabulary.load(written(tmp_path / "x.json", truncation=cut, padding=pad))
    assert vocabulary.encode("a a a") == [4, 4, 4]
    assert vocabulary.encode_all(["a a a", "a"]) == [[4, 4, 4], [4]]

"""A folder of somebody else reads texts as it did at home, and cannot harm by being odd."""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import BertTokenizer, GPT2Tokenizer, MPNetTokenizer, RobertaTokenizer

from saccade.data.tokens import foreign_tokenizer as module
from saccade.data.tokens.foreign_tokenizer import read_tokenizer
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import RunError
from tests.data.tokenizers_made import (
    TEXTS,
    bert_like,
    gpt_like,
    roberta_like,
    write_byte_pairs,
    write_word_pieces,
)
from tests.models.foreigners import albert_like, t5_like, xlnet_like

READ = [*TEXTS, "Naïve BAKERS' 麺 cafés", "", "[MASK] </s> <mask>", "  two  blanks\tand\nlines "]
PAIRS = list(pairwise(READ))


def check_same(found: Vocabulary | None, peer: Any, *, template: bool = True) -> None:
    assert found is not None
    assert len(found) == len(peer)
    single = peer(READ, add_special_tokens=template, return_offsets_mapping=True)
    if not template:
        assert found.encode_all(READ) == single["input_ids"]
        assert [found.spans(text) for text in READ] == single["offset_mapping"]
        return
    readings = found.readings([(text,) for text in READ])
    assert [one.tokens for one in readings] == single["input_ids"]
    assert [one.spans for one in readings] == single["offset_mapping"]
    both = peer(*zip(*PAIRS), return_token_type_ids=True)
    assert [one.tokens for one in found.readings(PAIRS)] == both["input_ids"]
    assert [one.types for one in found.readings(PAIRS)] == both["token_type_ids"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_lower_case": False},
        {"strip_accents": False, "tokenize_chinese_chars": False},
        {"strip_accents": None, "chat_template": "…"},
    ],
)
def test_a_vocab_txt_reads_as_berts(options: dict[str, Any], tmp_path: Path) -> None:
    write_word_pieces(tmp_path, bert_like(), **options)
    peer = BertTokenizer.from_pretrained(tmp_path, split_special_tokens=True)
    found = read_tokenizer(tmp_path)
    check_same(found, peer)
    assert found is not None
    assert found.special == (0, 2, 3, 1, 4)


def test_a_vocab_txt_that_begins_with_a_start_is_mpnets(tmp_path: Path) -> None:
    """Its vocabulary holds all of BERT's special tokens too, as mere words."""
    entries = sorted(bert_like().get_vocab().items(), key=lambda entry: entry[1])
    names = ["<s>", "<pad>", "</s>", "<unk>", *(token for token, _ in entries), "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join(names))
    peer = MPNetTokenizer.from_pretrained(tmp_path, split_special_tokens=True)
    found = read_tokenizer(tmp_path)
    check_same(found, peer)
    assert found is not None
    assert found.special == (1, 0, 2, names.index("[UNK]"), len(names) - 1)


@pytest.mark.parametrize("prefix", [False, True])
def test_vocab_json_and_merges_txt_read_as_robertas(prefix: bool, tmp_path: Path) -> None:
    write_byte_pairs(tmp_path, roberta_like(), add_prefix_space=prefix)
    peer = RobertaTokenizer.from_pretrained(tmp_path, split_special_tokens=True)
    found = read_tokenizer(tmp_path)
    check_same(found, peer)
    assert found is not None
    assert found.special == (1, 0, 2, 3, 4)


def test_vocab_json_and_merges_txt_read_as_gpt_2s(tmp_path: Path) -> None:
    write_byte_pairs(tmp_path, gpt_like())
    peer = GPT2Tokenizer.from_pretrained(tmp_path, split_special_tokens=True)
    found = read_tokenizer(tmp_path)
    check_same(found, peer, template=False)
    assert found is not None
    assert found.special == (0, 0, 0, None, None)


@pytest.mark.parametrize("make", [bert_like, roberta_like, gpt_like])
def test_tokenizer_json_comes_before_all_and_is_as_it_was(
    make: Callable[[], Tokenizer], tmp_path: Path
) -> None:
    write_word_pieces(tmp_path, bert_like(90))
    make().save(str(tmp_path / "tokenizer.json"))
    found = read_tokenizer(tmp_path)
    assert found is not None
    assert found.readings(PAIRS) == Vocabulary(make()).readings(PAIRS)


def test_the_older_forms_survive_as_tokenizer_json(tmp_path: Path) -> None:
    write_byte_pairs(tmp_path, roberta_like())
    found = read_tokenizer(tmp_path)
    assert found is not None
    (tmp_path / "kept.json").write_text(found.to_json())
    again = Vocabulary.load(tmp_path / "kept.json")
    assert again.special == found.special
    assert again.readings(PAIRS) == found.readings(PAIRS)


@pytest.mark.parametrize("name", ["nothing", "vocab.json", "merges.txt", "source.spm"])
def test_where_there_is_none_there_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    assert read_tokenizer(tmp_path) is None
    assert read_tokenizer(tmp_path / name) is None
    assert read_tokenizer(tmp_path / "nowhere") is None


WORDS = json.dumps({"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3})
HOSTILE: dict[str, tuple[dict[str, str | bytes], str]] = {
    "no special tokens": ({"vocab.txt": "a\nb\n"}, r"vocab\.txt is not a tokenizer"),
    "an empty list": ({"vocab.txt": ""}, r"vocab\.txt is not a tokenizer"),
    "twice the same": (
        {"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n"},
        r"vocab\.txt has 5 tokens and numbers up to 5: .*renumber",
    ),
    "no text": ({"vocab.txt": b"\xff\xfe"}, r"vocab\.txt is not of a tokenizer: 'utf-8' codec"),
    "an odd option": (
        {"vocab.txt": "a", "tokenizer_config.json": '{"do_lower_case": "\\u001b[31m"}'},
        r"tokenizer_config\.json says do_lower_case=\\x1b\[31m; it must be true or false$",
    ),
    "an option file that is a list": (
        {"vocab.txt": "a", "tokenizer_config.json": "[1]"},
        r"tokenizer_config\.json is not of a tokenizer",
    ),
    "a list of words": ({"vocab.json": "[1]", "merges.txt": ""}, r"vocab\.json is not of a tok"),
    "words without numbers": (
        {"vocab.json": '{"a": "b"}', "merges.txt": ""},
        r"merges\.txt does not fit .*vocab\.json: ",
    ),
    "deep": ({"vocab.json": "[" * 100_000, "merges.txt": ""}, r"vocab\.json is not of a tok"),
    "three pieces": (
        {"vocab.json": WORDS, "merges.txt": "#version: 0.2\na b c\n"},
        r"merges\.txt has the line 'a b c'; each must hold two pieces and a blank between them$",
    ),
    "an unknown piece": (
        {"vocab.json": WORDS, "merges.txt": "a z\n"},
        r"merges\.txt does not fit .*vocab\.json: .*z",
    ),
    "no end": (
        {"vocab.json": '{"a": 0}', "merges.txt": ""},
        r"vocab\.json is not a tokenizer: .*start and end",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_cannot_be_used_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    files, told = HOSTILE[what]
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(RunError, match=told) as error:
        read_tokenizer(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_file_is_not_waited_for(kind: str, name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name) if kind == "fifo" else (tmp_path / name).mkdir()
    with pytest.raises(RunError, match=r"is not a regular file|is a directory"):
        read_tokenizer(tmp_path)


def test_one_that_is_too_large_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_word_pieces(tmp_path, bert_like())
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(RunError, match=r"vocab\.txt is not of a tokenizer: it has over 100 bytes"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("made", "special", "read"),
    [
        (albert_like, (0, 2, 3, 1, 4), [2, ..., 3]),
        (xlnet_like, (5, 3, 4, 0, 6), [..., 4, 3]),  # it has RoBERTa's names too
        (t5_like, (0, 0, 1, 2, None), [..., 1]),
    ],
)
def test_special_tokens_of_other_families_are_found(
    made: Callable[[], Tokenizer], special: tuple[int | None, ...], read: list[Any], tmp_path: Path
) -> None:
    made().save(str(tmp_path / "tokenizer.json"))
    found = read_tokenizer(tmp_path)
    assert found is not None
    assert found.special == special
    (reading,) = found.readings([("a",)])
    assert [None if one is ... else one for one in read] == [
        token if side is None else None for token, side in zip(reading.tokens, reading.sides)
    ]


def test_a_sentence_piece_model_is_read_by_transformers_or_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spiece.model").write_bytes(b"pieces")

    def absent(name: str) -> Any:
        raise ImportError(name=name)

    monkeypatch.setattr(module, "import_module", absent)
    with pytest.raises(RunError, match=r"needs sentencepiece, which is not installed.*huggingface"):
        read_tokenizer(tmp_path)
    asked: dict[str, Any] = {}

    def from_pretrained(folder: str, **given: Any) -> Any:
        asked.update(given, folder=folder)
        return SimpleNamespace(backend_tokenizer=t5_like())

    def there(name: str) -> Any:
        return library

    library = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=from_pretrained))
    monkeypatch.setattr(module, "import_module", there)
    found = read_tokenizer(tmp_path)
    assert found is not None
    assert found.encode("bread") == t5_like().encode("bread", add_special_tokens=False).ids
    assert (asked["trust_remote_code"], asked["local_files_only"]) == (False, True)
    library.AutoTokenizer.from_pretrained = None
    with pytest.raises(RunError, match="has no tokenizer that transformers can read"):
        read_tokenizer(tmp_path)

"""The tokenizer that lies in a folder of somebody else: one file, or the older two.

tokenizer.json says everything by itself. Before it there were a vocab.txt for WordPiece, as BERT
and MPNet have it, and a vocab.json with a merges.txt for byte-level pairs, as GPT-2 and RoBERTa
have it; tokenizer_config.json then says what becomes of capitals. A model of SentencePiece is put
into that form by transformers, where it is installed. Nothing in a folder is run.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from saccade.data.tokens.vocabulary import (
    BERT,
    GPT_2,
    MAX_BYTES,
    MPNET,
    ROBERTA,
    SpecialNames,
    Vocabulary,
    refused_as,
)
from saccade.errors import RunError
from saccade.printable import printable
from saccade.regular import regular_file

SENTENCE_PIECE = ("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")


def read_tokenizer(folder: Path) -> Vocabulary | None:
    """That of a folder, None where there is none."""
    if (folder / "tokenizer.json").exists():
        return Vocabulary.load(folder / "tokenizer.json")
    if (folder / "vocab.txt").exists():
        return _word_pieces(folder)
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        return _byte_pairs(folder)
    if any((folder / name).is_file() for name in SENTENCE_PIECE):
        return _converted(folder)
    return None


def _converted(folder: Path) -> Vocabulary:
    """As transformers makes one file of a SentencePiece model."""
    name = printable(folder)
    try:
        import_module("sentencepiece")
        library: Any = import_module("transformers")
    except ImportError as error:
        raise RunError(
            f"the tokenizer of {name} is SentencePiece's, and to read it needs {error.name}, which "
            "is not installed: pip install 'saccade[huggingface]', or put a tokenizer.json there"
        ) from error
    with refused_as(RunError, f"{name} has no tokenizer that transformers can read"):
        given = {"local_files_only": True, "trust_remote_code": False}
        found = library.AutoTokenizer.from_pretrained(str(folder), **given)
        text = found.backend_tokenizer.to_str()
        return Vocabulary.checked(Tokenizer.from_str(text), folder)


def _word_pieces(folder: Path) -> Vocabulary:
    """As BERT splits texts: at blanks and marks, then words from the left into the longest pieces.

    The number of a line is that of its token.
    """
    path = folder / "vocab.txt"
    options = _Options(folder / "tokenizer_config.json")
    lowercase, accents = options.yes("do_lower_case", True), options.yes("strip_accents", None)
    lines = _text(path).removesuffix("\n").split("\n")
    with refused_as(RunError, f"{printable(path)} is not a tokenizer"):
        words = {line: number for number, line in enumerate(lines)}
        names = MPNET if lines[0] == MPNET.start else BERT
        tokenizer = Tokenizer(models.WordPiece(words, unk_token=names.unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(
            handle_chinese_chars=bool(options.yes("tokenize_chinese_chars", True)),
            strip_accents=accents,
            lowercase=bool(lowercase),
        )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix="##")
        _declare(tokenizer, words, names)
        if names is MPNET:
            _around_as_roberta(tokenizer, words, names)
        else:
            tokenizer.post_processor = processors.BertProcessing(
                (names.end, words[names.end]), (names.start, words[names.start])
            )
    return Vocabulary.checked(tokenizer, path)


def _byte_pairs(folder: Path) -> Vocabulary:
    """As GPT-2 splits texts: words with the blank before them, then bytes merged in pairs."""
    path, merges = folder / "vocab.json", folder / "merges.txt"
    options = _Options(folder / "tokenizer_config.json")
    words, pairs = _json(path), _pairs(merges)
    names = ROBERTA if ROBERTA.start in words else GPT_2
    with refused_as(RunError, f"{printable(merges)} does not fit {printable(path)}"):
        tokenizer = Tokenizer(models.BPE(words, pairs))
    with refused_as(RunError, f"{printable(path)} is not a tokenizer"):
        prefix = bool(options.yes("add_prefix_space", False))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
        tokenizer.decoder = decoders.ByteLevel()
        _declare(tokenizer, words, names)
        if names is ROBERTA:
            _around_as_roberta(tokenizer, words, names, prefix=prefix)
    return Vocabulary.checked(tokenizer, path)


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in _text(path).split("\n") if line and not line.startswith("#version")]
    pairs = [line.rstrip("\r").split(" ") for line in lines]
    for line, pair in zip(lines, pairs):
        if len(pair) != 2:
            raise RunError(
                f"{printable(path)} has the line '{printable(line[:50])}'; each must hold two "
                "pieces and a blank between them"
            )
    return [(first, second) for first, second in pairs]


def _around_as_roberta(
    tokenizer: Tokenizer, words: dict[str, int], names: SpecialNames, *, prefix: bool = False
) -> None:
    tokenizer.post_processor = processors.RobertaProcessing(
        (names.end, words[names.end]),
        (names.start, words[names.start]),
        trim_offsets=True,
        add_prefix_space=prefix,
    )


def _declare(tokenizer: Tokenizer, words: dict[str, int], names: SpecialNames) -> None:
    """Which of its tokens are no text; the one for a hidden word takes the blank before it."""
    special = {name: None for name in names if name in words}
    tokenizer.add_special_tokens(
        [AddedToken(name, lstrip=name == ROBERTA.mask, special=True) for name in special]
    )


class _Options:
    """What tokenizer_config.json says, where there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._said = _json(path) if path.exists() else {}

    def yes(self, name: str, default: bool | None) -> bool | None:
        value = self._said.get(name, default)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise RunError(
            f"{printable(self.path)} says {name}={printable(value)}; it must be true or false"
        )


def _json(path: Path) -> dict[str, Any]:
    text = _text(path)
    with refused_as(RunError, f"{printable(path)} is not of a tokenizer"):
        return dict(json.loads(text))


def _text(path: Path) -> str:
    name = printable(path)
    if regular_file(path, RunError).st_size > MAX_BYTES:
        raise RunError(f"{name} is not of a tokenizer: it has over {MAX_BYTES:,} bytes")
    with refused_as(RunError, f"{name} is not of a tokenizer"):
        return path.read_text(encoding="utf-8")

"""Small tokenizers of the kinds that others have, trained on the spot."""

import json
from functools import cache
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
    trainers,
)

TEXTS = [
    "I think therefore I am, and so are you.",
    "Machine learning is not just a neural network (of 12 layers)!",
    "The agreement on the European Economic Area was signed in August 1992.",
    "They are eating the bread that the baker's daughter has baked.",
]
BERT_NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_NAMES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def bert_like(size: int = 150) -> Tokenizer:
    """Words in pieces, capitals and accents dropped."""
    return Tokenizer.from_str(_bert_like(size))


@cache
def _bert_like(size: int) -> str:
    """Learnt once: among equally frequent pieces the trainer does not choose alike twice."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=BERT_NAMES, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer.to_str()


def byte_pairs(names: list[str | AddedToken], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=names,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def roberta_like(size: int = 330) -> Tokenizer:
    mask = AddedToken("<mask>", lstrip=True, special=True)
    tokenizer = byte_pairs([*ROBERTA_NAMES[:-1], mask], size)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def gpt_like(size: int = 330) -> Tokenizer:
    return byte_pairs(["<|endoftext|>"], size)


def write_word_pieces(folder: Path, tokenizer: Tokenizer, **options: Any) -> None:
    """The older form of a folder: a token a line, and what becomes of capitals."""
    entries = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token, _ in entries))
    if options:
        (folder / "tokenizer_config.json").write_text(json.dumps(options))


def write_byte_pairs(folder: Path, tokenizer: Tokenizer, **options: Any) -> None:
    tokenizer.model.save(str(folder))
    if options:
        (folder / "tokenizer_config.json").write_text(json.dumps(options))

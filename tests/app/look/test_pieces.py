"""Tokens read as words, whoever's tokenizer made them."""

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from saccade.app.look.pieces import readable, word_ranges
from saccade.data.tokens.vocabulary import Vocabulary

TEXT = "the employee eats an apple , naively"
SPECIAL = ["<s>", "</s>"]


def word_pieces() -> Tokenizer:
    names = ["[CLS]", "[SEP]", "[UNK]", "[PAD]", "the", "employ", "##ee", "eats"]
    made = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.add_special_tokens(names[:4])
    made.decoder = decoders.WordPiece()
    return made


def trained(kind: str) -> Tokenizer:
    """Byte-level pieces (Ġ), or pieces after a blank (▁)."""
    made = Tokenizer(models.BPE())
    if kind == "bytes":
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
    else:
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer: Any = trainers.BpeTrainer(vocab_size=60, special_tokens=SPECIAL)
    made.train_from_iterator([TEXT] * 3, trainer)
    return made


def of_transformers(made: Tokenizer) -> Any:
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("kind", ["bytes", "blanks"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_pieces_put_together_are_the_text_and_special_tokens_keep_their_names(
    kind: str, wrapped: bool
) -> None:
    made = trained(kind)
    ids = [0, *made.encode(TEXT).ids, 1]
    pieces = readable(of_transformers(made) if wrapped else made, ids)
    assert (pieces[0], pieces[-1]) == ("<s>", "</s>")
    assert "".join(pieces[1:-1]).strip() == TEXT
    assert len(pieces) == len(ids)


def test_pieces_of_words_lose_their_marks() -> None:
    pieces = readable(word_pieces(), [0, 4, 5, 6, 7, 1])
    assert pieces == ["[CLS]", " the", " employ", "ee", " eats", "[SEP]"]
    assert word_ranges(pieces) == [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)]


def test_our_own_vocabulary_reads_its_pieces() -> None:
    vocabulary = Vocabulary.train([TEXT] * 3, level="words", size=20)
    assert readable(vocabulary, vocabulary.encode("the employee")) == ["the", " employee"]

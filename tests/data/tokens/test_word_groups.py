"""Tokens are put together to the words that the tokenizer's own splitting made of the text."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from saccade.data.tokens.vocabulary import Level, Vocabulary
from tests.data.tokenizers_made import TEXTS, bert_like, gpt_like, roberta_like


def sentence_piece_like() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    names = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=names, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


MADE = {
    "bert": bert_like,
    "roberta": roberta_like,
    "gpt-2": gpt_like,
    "sentencepiece": sentence_piece_like,
}
RAW = {name: make() for name, make in MADE.items()}
READ = {name: Vocabulary(make()) for name, make in MADE.items()}
WORDS = sorted({word for text in TEXTS for word in text.split() if "'" not in word})
LINES = st.lists(st.sampled_from([*WORDS, "(a)", "12b", "3.5!"]), max_size=10).map(" ".join)


@pytest.mark.parametrize("name", MADE)
@given(text=LINES)
def test_words_are_those_that_the_tokenizer_split_off(name: str, text: str) -> None:
    found = RAW[name].encode(text, add_special_tokens=False)
    runs = [len(list(run)) for _, run in groupby(found.word_ids)]
    expected = [(sum(runs[:i]), sum(runs[: i + 1])) for i in range(len(runs))]
    assert READ[name].encode(text) == found.ids
    assert READ[name].word_groups(found.ids) == expected


@pytest.mark.parametrize("name", MADE)
def test_special_tokens_are_in_no_word_and_part_words(name: str) -> None:
    vocabulary = READ[name]
    [reading] = vocabulary.readings([(TEXTS[0], TEXTS[1])])
    covered = {
        i for start, end in vocabulary.word_groups(reading.tokens) for i in range(start, end)
    }
    assert covered == {i for i, side in enumerate(reading.sides) if side is not None}


@pytest.mark.parametrize("level", ["words", "characters"])
def test_where_tokens_are_words_each_is_its_own(level: Level) -> None:
    vocabulary = Vocabulary.train(TEXTS, level=level, masks=True)
    tokens = vocabulary.encode("I am")
    assert vocabulary.word_groups(tokens) == [(i, i + 1) for i in range(len(tokens))]


def test_an_unknown_word_is_a_word_and_a_hidden_one_is_none() -> None:
    vocabulary = READ["bert"]
    unknown, mask = vocabulary.special.unknown, vocabulary.mask
    assert unknown is not None
    assert mask is not None
    assert vocabulary.word_groups([vocabulary.start, unknown, mask, unknown]) == [(1, 2), (3, 4)]

"""What is said of texts: together as alone, whatever the tokenizer; words found in their texts."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError
from saccade.tasks.understanding.classifier import TextClassifier
from saccade.tasks.understanding.encode import NO_PIECE, EncodedTexts, first_pieces, word_places
from tests.tasks.understanding.texts import model_for, sentence, task_for, write_texts

KINDS = ("classes", "number", "labels", "tags")


def classifier(folder: Path, kind: str, *, pairs: bool = False, **more: Any) -> TextClassifier:
    task = task_for(write_texts(folder, kind, pairs=pairs), kind, **more)
    return TextClassifier(model_for(task), task.vocabulary, task.labels, task.settings)


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_give_what_each_gives_alone(kind: str, tmp_path: Path) -> None:
    tool, told = classifier(tmp_path, kind), list[tuple[int, int]]()
    texts = [(sentence(n),) for n in range(7)]
    together = tool.answers(texts, progress=lambda done, of: told.append((done, of)))
    for text, one in zip(texts, together):
        (alone,) = tool.answers([text])
        assert (one.texts, one.said, one.words) == (alone.texts, alone.said, alone.words)
        assert [g.label for g in one.guesses] == [g.label for g in alone.guesses]
        assert one.number == (alone.number if alone.number is None else pytest.approx(alone.number))
        chances = [guess.probability for guess in one.guesses]
        assert chances == sorted(chances, reverse=True)
    assert told[-1] == (7, 7)
    assert tool.answers([]) == []


def test_classes_sum_to_one_and_of_several_those_are_said_that_are_likely(tmp_path: Path) -> None:
    (one,) = classifier(tmp_path / "a", "classes").answers([("the old dog",)], best=9)
    assert sum(guess.probability for guess in one.guesses) == pytest.approx(1)
    assert one.text == one.guesses[0].label
    (one,) = classifier(tmp_path / "b", "labels").answers([("the old dog",)], best=9)
    assert set(one.said) == {guess.label for guess in one.guesses if guess.probability >= 0.5}


def test_each_word_has_a_tag_also_those_that_were_cut_off(tmp_path: Path) -> None:
    tool = classifier(tmp_path, "tags", longest=8)
    (one,) = tool.answers([("the old dog sings very very very very loudly.",)])
    assert one.words == ("the", "old", "dog", "sings", *["very"] * 4, "loudly", ".")
    assert len(one.said) == len(one.words) == len(one.word_guesses)
    assert one.cut
    assert one.said[-1] == ""
    assert one.text.endswith("–")
    assert not tool.answers([("the dog",)])[0].cut


def test_pairs_are_two_texts_and_the_order_matters(tmp_path: Path) -> None:
    tool = classifier(tmp_path, "classes", pairs=True)
    one, other = tool.answers([("the old dog", "a tree"), ("a tree", "the old dog")])
    assert one.guesses[0].probability != other.guesses[0].probability
    assert tool.parted("the old dog\ta tree") == ("the old dog", "a tree")
    for wrong in ("one", "a\tb\tc"):
        with pytest.raises(DataError, match="where a pair is read; give two with a tab between"):
            tool.parted(wrong)
    alone = classifier(tmp_path / "alone", "classes")
    assert alone.parted("a\tb") == ("a\tb",)
    with pytest.raises(DataError, match="2 texts where one is read; give them one by one"):
        alone.checked(("a", "b"))


words = st.lists(st.text("abcdeé中", min_size=1, max_size=5), min_size=1, max_size=8)
VOCABULARIES = [
    Vocabulary.train(["abc dea bcd éa 中 b"], size=320),
    Vocabulary.train(["abc dea bcd éa 中 b"], level="words", size=50),
    Vocabulary.train(["abc dea bcd éa 中 b"], level="characters", size=50),
]


@given(words=words, number=st.integers(0, 2), longest=st.integers(6, 40))
def test_the_first_piece_of_a_word_is_the_first_token_that_has_a_part_of_it(
    words: list[str], number: int, longest: int
) -> None:
    text, vocabulary = " ".join(words), VOCABULARIES[number]
    (reading,) = vocabulary.readings([(text,)], longest=longest)
    places = word_places(text, words)
    assert [text[start:end] for start, end in places] == words
    for (start, end), found in zip(places, first_pieces(reading, places)):
        having = [
            place
            for place, ((a, b), side) in enumerate(zip(reading.spans, reading.sides))
            if side == 0 and a < end and b > start
        ]
        assert found == (having[0] if having else NO_PIECE)


def test_words_that_are_not_in_the_text_are_refused() -> None:
    with pytest.raises(DataError, match="'cat' is not in 'the dog' after the words before it"):
        word_places("the dog", ["the", "cat"])


def test_only_what_was_too_long_is_cut() -> None:
    texts = [("a b c",), ("a b c d",), ("a",)]
    vocabulary = Vocabulary.train(["a b c d"], level="words", size=20)
    found = EncodedTexts.of(vocabulary, texts, longest=5)
    assert found.cut == {1}
    assert found.tokens.lengths.tolist() == [5, 5, 3]
    assert not EncodedTexts.of(vocabulary, texts, longest=None).cut
    torch.testing.assert_close(
        found.rows(torch.tensor([2, 0]))[1], torch.zeros(8, dtype=torch.long)
    )

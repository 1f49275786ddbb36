"""All contenders get the same words."""

import torch

from saccade.app.bench.sentences import (
    SentencePairs,
    language_task,
    numbered,
    translation_task,
    word,
)
from saccade.data.tokens.vocabulary import OURS

END, PAD, START = OURS.end, OURS.pad, OURS.start

SENTENCES = SentencePairs.draw(7, vocabulary=40, source=(3, 6), target=(2, 9), seed=1)


def test_lengths_are_between_the_two_given_with_the_end_counted() -> None:
    many = SentencePairs.draw(300, vocabulary=40, source=(3, 6), target=(2, 9))
    assert set(many.source_lengths) == {3, 4, 5, 6}
    assert set(many.target_lengths) == set(range(2, 10))


def test_the_task_holds_exactly_these_sentences_in_one_batch() -> None:
    task = translation_task(SENTENCES, vocabulary=40)
    assert task.batches_per_epoch == 1
    batch = task.batch(0)
    assert batch.tokens == sum(SENTENCES.target_lengths)
    source, lengths = batch.source.padded(), batch.source.lengths.tolist()
    read = sorted(row[:length].tolist() for row, length in zip(source, lengths))
    assert read == sorted(row.tolist() for row in SENTENCES.inputs)


def test_padded_rows_are_shifted_by_one_and_filled_up() -> None:
    padded = SENTENCES.padded()
    for row, target, labels in zip(SENTENCES.targets, padded.target, padded.labels):
        assert target[: len(row) + 1].tolist() == [START, *row.tolist()]
        assert labels[: len(row) + 1].tolist() == [*row.tolist(), END]
        assert labels[len(row) + 1 :].eq(PAD).all()
    real = (padded.source != PAD).sum() + (padded.labels != PAD).sum()
    assert real == SENTENCES.tokens
    assert SENTENCES.padding == 1 - SENTENCES.tokens / (
        padded.source.numel() + padded.target.numel()
    )


def test_the_language_task_has_one_batch_of_all_rows() -> None:
    task = language_task(rows=3, window=5, vocabulary=40)
    assert task.batches_per_epoch == 1
    batch = task.batch(0)
    assert batch.words.padded().shape == (3, 5)
    assert batch.tokens == 15


def test_a_word_is_the_number_of_its_token() -> None:
    vocabulary = numbered(1200)
    assert len(vocabulary) == 1200
    tokens = torch.randint(4, 1200, (50,)).tolist()
    assert vocabulary.encode(" ".join(word(token) for token in tokens)) == tokens

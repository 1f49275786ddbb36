"""The laws of every task: reproducible, balanced, disjoint, of the lengths asked for."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.lingua import SPLITS, LinguaSettings, pairs
from saccade.data.lingua.tasks import TASKS, LabelledSentence
from saccade.errors import ConfigError

tasks, splits = pytest.mark.parametrize("task", TASKS), st.sampled_from(SPLITS)
LABELS = {
    "acceptable": {"acceptable", "not acceptable"},
    "entails": {"entails", "contradicts", "neutral"},
    "paraphrase": {"same", "different"},
    "tags": {""},
}


@settings(max_examples=20, deadline=None)
@given(
    task=st.sampled_from(sorted(TASKS)),
    split=splits,
    seed=st.integers(0, 99),
    few=st.integers(0, 4),
    more=st.integers(0, 3),
)
def test_a_smaller_count_is_a_prefix_of_a_larger_one(
    task: str, split: str, seed: int, few: int, more: int
) -> None:
    chosen = LinguaSettings(seed=seed)
    assert TASKS[task](split, few + more, chosen)[:few] == TASKS[task](split, few, chosen)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            "acceptable",
            LabelledSentence(
                (
                    "You will not always visit my dangerous town although his houses not are "
                    "photographed by a cousin.",
                ),
                "not acceptable",
            ),
        ),
        (
            "entails",
            LabelledSentence(
                (
                    "Every nurse found your biscuit easily with Andrew in London on 25 December "
                    "1974, and a strange debate was long.",
                    "Every nurse found your biscuit easily in London on 27 December 1974.",
                ),
                "contradicts",
            ),
        ),
        (
            "paraphrase",
            LabelledSentence(
                (
                    "The strong cousin will not protect three kitchens.",
                    "The strong cousin won't protect three kitchens.",
                ),
                "same",
            ),
        ),
    ],
)
def test_the_data_are_the_same_in_every_process(task: str, expected: LabelledSentence) -> None:
    assert TASKS[task]("train", 1) == [expected]


@tasks
def test_another_seed_gives_other_items(task: str) -> None:
    assert TASKS[task]("train", 10) != TASKS[task]("train", 10, LinguaSettings(seed=1))


@tasks
@pytest.mark.parametrize("split", SPLITS)
def test_labels_are_balanced_at_every_size(task: str, split: str) -> None:
    labels = [item.label for item in TASKS[task](split, 48)]
    assert set(labels) == LABELS[task]
    kinds = len(LABELS[task])
    for start in range(0, 48, kinds):
        assert set(labels[start : start + kinds]) == LABELS[task]


@tasks
def test_the_order_of_the_labels_is_not_periodic(task: str) -> None:
    kinds = len(LABELS[task])
    labels = [item.label for item in TASKS[task]("train", 60)]
    runs = {tuple(labels[start : start + kinds]) for start in range(0, 60, kinds)}
    assert len(runs) > 1 or kinds == 1


@pytest.mark.slow
def test_no_sentence_is_in_two_splits_of_any_task_or_of_the_translations() -> None:
    seen: Counter[str] = Counter()
    for split, count in (("train", 1500), ("valid", 60), ("test", 60), ("compositional", 300)):
        short = LinguaSettings(seed=5, longest=7)
        texts = {pair.source for pair in pairs(split, count)}
        for task in TASKS.values():
            for item in (*task(split, count), *task(split, count // 2, short)):
                texts.update(item.texts)
        seen.update(texts)
    assert max(seen.values()) == 1


@tasks
@pytest.mark.parametrize(("shortest", "longest"), [(3, 6), (8, 12)])
def test_sentences_have_the_length_asked_for(task: str, shortest: int, longest: int) -> None:
    for item in TASKS[task]("train", 30, LinguaSettings(shortest=shortest, longest=longest)):
        for text in item.texts:
            assert shortest <= len(text.replace(",", " ,").split()) <= longest
            assert text.endswith(".")
            assert text[0] == text[0].upper()


@pytest.mark.slow
def test_a_length_that_a_task_cannot_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no sentence of 79 to 80 words turned up for 'train'"):
        TASKS["paraphrase"]("train", 1, LinguaSettings(shortest=79))


@tasks
def test_an_unknown_split_and_a_negative_count_are_refused(task: str) -> None:
    with pytest.raises(ConfigError, match=r"no split 'dev'; try one of: train, valid"):
        TASKS[task]("dev", 1)
    with pytest.raises(ConfigError, match="count=-1 is negative"):
        TASKS[task]("train", -1)

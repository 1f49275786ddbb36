"""Tags: one for each word, from the list, and true of words that only their place tells apart."""

from collections import defaultdict

import pytest

from saccade.data.lingua.tasks import TAGS, tagging
from saccade.data.lingua.words.lexicon import adjectives, nouns, verbs
from saccade.data.tokens.words import words

ITEMS = tagging("train", 1500)
# Closed classes, written down here from an English grammar, not from ours.
CLOSED = {
    "determiner": "the a an this these every all some any many several my his our your their",
    "pronoun": "i he she we you they it him them who whom there",
    "preposition": "of in on at by with without for from behind near about",
    "conjunction": "and but because although while when if",
    "auxiliary": "will can cannot must do does did has have had",
    "negation": "not never",
    "punctuation": ", .",
}


@pytest.mark.parametrize("split", ["train", "compositional"])
def test_every_word_has_one_tag_of_the_list(split: str) -> None:
    for item in tagging(split, 300):
        assert list(item.words) == words(item.texts[0])
        assert len(item.words) == len(item.tags)
        assert set(item.tags) <= set(TAGS)


def test_every_tag_occurs() -> None:
    assert {tag for item in ITEMS for tag in item.tags} == set(TAGS)


def test_words_of_closed_classes_have_their_tag() -> None:
    tag_of = {word: tag for tag, text in CLOSED.items() for word in text.split()}
    for item in ITEMS:
        for word, tag in zip(item.words, item.tags):
            assert tag_of.get(word.lower(), tag) == tag, (word, tag, item.texts)


def test_nouns_verbs_and_adjectives_come_from_their_tables() -> None:
    known = {
        "noun": {form for n in nouns() for form in (n.english, n.english_plural)},
        "adjective": {adjective.english for adjective in adjectives()},
        "verb": {form for verb in verbs("transitive") for form in verb.english},
    }
    for item in ITEMS:
        for word, tag in zip(item.words, item.tags):
            for wanted, forms in known.items():
                others = set[str]().union(*(f for name, f in known.items() if name != wanted))
                if word in forms - others and word not in ("French", "European"):
                    assert tag in (wanted, "proper noun"), (word, tag, item.texts)


def test_ten_words_have_two_tags() -> None:
    tags: dict[str, set[str]] = defaultdict(set)
    for item in ITEMS:
        for word, tag in zip(item.words, item.tags):
            tags[word].add(tag)
    assert {word for word, found in tags.items() if len(found) > 1} == {
        *("her", "that", "to", "European", "am", "is", "are", "was", "were", "be")
    }


@pytest.mark.parametrize(
    ("word", "before", "tag"),
    [
        ("to", {"goes", "go", "went", "speaks", "listens", "spoke"}, "preposition"),
        ("to", {"wants", "tried", "refuses", "began", "hopes"}, "particle"),
        ("that", {"says", "said", "declares", "announced", "knew"}, "conjunction"),
        ("that", {"book", "letters", "house", "dog"}, "pronoun"),
    ],
)
def test_a_word_is_told_apart_by_the_one_before_it(word: str, before: set[str], tag: str) -> None:
    found = [
        item.tags[place]
        for item in ITEMS
        for place in range(1, len(item.words))
        if item.words[place] == word and item.words[place - 1] in before
    ]
    assert found
    assert set(found) == {tag}

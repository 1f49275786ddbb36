"""The word lists hold together: every link, kind and trait that a table names exists."""

import pytest

from saccade.data.lingua.tokens import TAGS
from saccade.data.lingua.words.lexicon import adjectives, expressions, nouns, nouns_of, verbs
from saccade.data.lingua.words.tables import rows

LISTS = "people entities countries cities months numbers weekdays past present future manner middle"
USES = ("intransitive", "transitive", "placed", "catenative", "saying", "weather")


@pytest.mark.parametrize("name", [*LISTS.split(), "any time"])
def test_each_french_word_of_an_expression_renders_an_english_one(name: str) -> None:
    assert expressions(name)
    for one in expressions(name):
        links = [int(link) for link in one.links.split()]
        assert len(links) == len(one.french.split())
        assert set(links) <= set(range(len(one.english.split())))


def test_adjectives_and_verbs_go_with_kinds_that_have_nouns() -> None:
    kinds = {noun.kind for noun in nouns()}
    assert all(adjective.kinds and adjective.kinds <= kinds for adjective in adjectives())
    for use in USES:
        assert verbs(use)
        assert all(verb.subjects <= kinds for verb in verbs(use))
    assert all(verb.objects for verb in verbs("transitive"))
    assert sum(len(nouns_of(kind)) for kind in kinds) == len(nouns())


def test_a_table_with_other_columns_is_not_read() -> None:
    with pytest.raises(AssertionError, match=r"nouns.tsv has the columns .*, not \('english',\)"):
        rows("nouns", "english")


def test_every_word_of_an_expression_has_a_tag() -> None:
    table = rows("expressions", "list", "english", "french", "tags", "links", "gender", "number")
    for _, english, _, tags, *_ in table:
        assert len(tags.split(",")) == len(english.split()), english
        assert set(tags.split(",")) <= set(TAGS), english

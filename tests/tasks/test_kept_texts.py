"""Many captions are encoded once: what is kept is what they become, and serves them alone."""

from pathlib import Path

import pytest

from saccade.data.tokens.streamed_encoding import encode_ragged
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks import corpus, kept_texts
from saccade.tasks.base import Preparation
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.kept_texts import KeptTexts

ABOUT = [("a dog runs", "the dog"), (), ("a cat sleeps",), ("dog cat dog", "a", "cat runs")]
EACH = [text for some in ABOUT for text in some]
HOW = Preparation(budget=100, seed=0)
SETTINGS = CaptioningSettings(data="photos")
VOCABULARY = Vocabulary.train(EACH, level="words", size=20)


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of a few texts."""
    monkeypatch.setattr(kept_texts, "KEPT_FROM", 0)
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be encoded or learnt any more."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(kept_texts, "shards_of_tokens", refuse)
    monkeypatch.setattr(kept_texts, "learnt", refuse)


def tokens(texts: KeptTexts, vocabulary: Vocabulary = VOCABULARY) -> list[list[int]]:
    found = texts.encode(vocabulary)
    return [found[row].tolist() for row in range(len(found))]


def plain(texts: list[str], vocabulary: Vocabulary = VOCABULARY) -> list[list[int]]:
    found = encode_ragged(vocabulary, texts)
    return [found[row].tolist() for row in range(len(found))]


def test_they_are_what_they_would_be_and_are_not_made_again(
    request: pytest.FixtureRequest,
) -> None:
    told = list[tuple[int, int]]()
    first = KeptTexts(ABOUT, lambda *how: told.append(how))
    made = first.tokenizer(SETTINGS, HOW)
    assert made.to_json() == kept_texts.learnt(SETTINGS, EACH).to_json()
    assert tokens(first) == plain(EACH)
    assert told == [(6, 6)]
    request.getfixturevalue("forgetful")
    again = KeptTexts(ABOUT)
    assert again.tokenizer(SETTINGS, HOW).to_json() == made.to_json()
    assert tokens(again) == plain(EACH)


def test_other_texts_and_tokenizers_have_their_own() -> None:
    other = Vocabulary.train(["another text"], level="characters", size=20)
    for about in ([("ab", "c")], [("a", "bc")], [("abc", "")], ABOUT, ABOUT[:-1]):
        each = [text for some in about for text in some]
        for vocabulary in (VOCABULARY, other):
            assert tokens(KeptTexts(about), vocabulary) == plain(each, vocabulary)


def test_other_settings_learn_another_tokenizer() -> None:
    fewer = CaptioningSettings(data="photos", vocabulary=6)
    made = [len(KeptTexts(ABOUT).tokenizer(how, HOW)) for how in (SETTINGS, fewer)]
    assert made[1] == 6 < made[0]


def test_no_room_is_a_line_and_they_are_encoded_all_the_same(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (large / "file").write_text("")
    monkeypatch.setenv("SACCADE_CACHE", str(large / "file"))
    texts = KeptTexts(ABOUT)
    assert len(texts.tokenizer(SETTINGS, HOW)) > 6
    assert tokens(texts) == plain(EACH)
    tokenizer, encoded = texts.notes
    assert tokenizer.startswith("a tokenizer cannot be kept in")
    assert encoded.startswith("tokens cannot be kept in")
    assert "--cache" in encoded


def test_few_texts_are_not_kept(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_texts, "KEPT_FROM", corpus.KEPT_FROM)
    texts = KeptTexts(ABOUT)
    texts.encode(texts.tokenizer(SETTINGS, HOW))
    assert not list(large.iterdir())

"""Many labelled texts are encoded once: what is kept is what they become, and serves them alone."""

from pathlib import Path

import pytest

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks import corpus
from saccade.tasks.base import silent
from saccade.tasks.understanding import kept
from saccade.tasks.understanding.encode import EncodedTexts
from saccade.tasks.understanding.kept import encoded_texts
from tests.tasks.understanding.test_encode import ONES, PAIRS, VOCABULARY, WORDS, equal


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of a few texts, three to a shard."""
    monkeypatch.setattr(kept, "KEPT_FROM", 0)
    monkeypatch.setattr(kept, "SHARD", 3)
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path))
    return tmp_path


def encoded(
    texts: list[tuple[str, ...]],
    words: list[list[str]] | tuple[()] = (),
    *,
    longest: int = 9,
    vocabulary: Vocabulary = VOCABULARY,
    notes: list[str] | None = None,
) -> EncodedTexts:
    told = [] if notes is None else notes
    return encoded_texts(vocabulary, texts, words, longest=longest, progress=silent, notes=told)


def same(one: EncodedTexts, other: EncodedTexts) -> bool:
    pairs = (one.tokens, other.tokens), (one.types, other.types), (one.words, other.words)
    return all(equal(*both) for both in pairs) and one.cut == other.cut


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be encoded any more."""

    def encode(*_: object, **__: object) -> EncodedTexts:
        raise AssertionError("encoded again")

    monkeypatch.setattr(EncodedTexts, "of", encode)


@pytest.mark.parametrize("texts", [ONES, PAIRS], ids=["ones", "pairs"])
@pytest.mark.parametrize("tagged", [False, True])
def test_they_are_what_they_would_be_and_are_not_encoded_again(
    texts: list[tuple[str, ...]], tagged: bool, request: pytest.FixtureRequest
) -> None:
    words = WORDS if tagged and texts is ONES else ()
    plain = EncodedTexts.of(VOCABULARY, texts, words, longest=9)
    assert plain.cut
    assert same(encoded(texts, words), plain)
    request.getfixturevalue("forgetful")
    assert same(encoded(texts, words), plain)


def test_other_texts_words_tokenizers_and_bounds_have_their_own() -> None:
    other = Vocabulary.train(["another text"], level="bpe", size=260)
    moved: list[tuple[str, ...]] = [("ab", "c"), ("a", "bc"), ("abc", "")]
    for texts in ([moved[0]], [moved[1]], [moved[2]], ONES, ONES[:-1]):
        assert same(encoded(texts), EncodedTexts.of(VOCABULARY, texts, longest=9))
    assert same(encoded(ONES, WORDS), EncodedTexts.of(VOCABULARY, ONES, WORDS, longest=9))
    assert same(encoded(ONES, longest=5), EncodedTexts.of(VOCABULARY, ONES, longest=5))
    assert same(encoded(ONES, vocabulary=other), EncodedTexts.of(other, ONES, longest=9))


def test_a_kill_costs_one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, encode = EncodedTexts.of(VOCABULARY, ONES, longest=9), EncodedTexts.of
    begun = list[str]()

    def dies_at_the_third(*given: object, **more: object) -> EncodedTexts:
        texts: list[tuple[str, ...]] = given[1]  # pyright: ignore[reportAssignmentType]
        begun.append(texts[0][0])
        if len(begun) == 3:
            raise KeyboardInterrupt
        return encode(*given, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(EncodedTexts, "of", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        encoded(ONES)
    assert same(encoded(ONES), plain)
    assert begun[2:] == [ONES[6][0], ONES[6][0], ONES[9][0]]


def test_no_room_is_a_line_and_they_are_encoded_all_the_same(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (large / "file").write_text("")
    monkeypatch.setenv("SACCADE_CACHE", str(large / "file"))
    notes = list[str]()
    assert same(encoded(ONES, notes=notes), EncodedTexts.of(VOCABULARY, ONES, longest=9))
    (line,) = notes
    assert "tokens cannot be kept in" in line
    assert "--cache" in line


def test_few_texts_are_not_kept(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_FROM", corpus.KEPT_FROM)
    encoded(ONES)
    assert not list(large.iterdir())

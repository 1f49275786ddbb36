"""The tokenizer as an asset of a task: trained or taken over once, kept in the run's folder."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from saccade.data.tokens.foreign_tokenizer import read_tokenizer
from saccade.data.tokens.vocabulary import Level, Vocabulary
from saccade.data.tokens.words import continuous_letters
from saccade.errors import DataError
from saccade.tasks.base import Preparation

TOKENIZER = "tokenizer.json"
LONGEST_WORD = 10  # letters of a script without blanks


@runtime_checkable
class TokenizerSettings(Protocol):
    """How text becomes tokens."""

    @property
    def level(self) -> Level: ...

    @property
    def vocabulary(self) -> int: ...

    @property
    def lowercase(self) -> bool: ...


def trained_tokenizer(
    settings: TokenizerSettings, texts: Iterable[str], how: Preparation, *, masks: bool = False
) -> Vocabulary:
    """The run's own tokenizer, else that of what it starts from, else one learnt from the texts.

    `masks` asks one that is learnt for a token in place of hidden words.
    """
    given = given_tokenizer(how)
    return learnt(settings, texts, masks=masks) if given is None else given


def given_tokenizer(how: Preparation) -> Vocabulary | None:
    """The run's own tokenizer, else that of what it starts from."""
    kept = how.asset(TOKENIZER)
    if kept is not None:
        return Vocabulary.load(kept)
    return None if how.start is None else read_tokenizer(how.start)


def learnt(settings: TokenizerSettings, texts: Iterable[str], *, masks: bool = False) -> Vocabulary:
    """What a task's settings make of some texts."""
    vocabulary = Vocabulary.train(
        texts,
        level=settings.level,
        size=settings.vocabulary,
        lowercase=settings.lowercase,
        masks=masks,
    )
    if settings.level == "words":
        _refuse_without_blanks(vocabulary.entries())
    return vocabulary


def _refuse_without_blanks(words: Iterable[str]) -> None:
    """Chinese, Japanese, Thai … have no blanks between words: whole lines would be words."""
    unparted = {word: continuous_letters(word) for word in words}
    every, all_letters = sum(unparted.values()), sum(map(len, unparted))
    long = [word for word, count in unparted.items() if count > LONGEST_WORD]
    if 5 * every > all_letters and 2 * sum(unparted[word] for word in long) > every:
        raise DataError(
            f"level=words takes what stands between blanks for a word, and {long[0][:20]!r} … is "
            "one here; give --level characters or --level bpe, or part the words by blanks"
        )


def tokenizer_asset(vocabulary: Vocabulary) -> dict[str, bytes]:
    """What a run keeps of it."""
    return {TOKENIZER: vocabulary.to_json().encode()}

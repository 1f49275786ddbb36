"""The tokenizer as an asset of a task: trained or taken over once, kept in the run's folder."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from saccade.data.foreign_tokenizer import read_tokenizer
from saccade.data.vocabulary import Level, Vocabulary
from saccade.tasks.base import Preparation

TOKENIZER = "tokenizer.json"


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
    return Vocabulary.train(
        texts,
        level=settings.level,
        size=settings.vocabulary,
        lowercase=settings.lowercase,
        masks=masks,
    )


def tokenizer_asset(vocabulary: Vocabulary) -> dict[str, bytes]:
    """What a run keeps of it."""
    return {TOKENIZER: vocabulary.to_json().encode()}

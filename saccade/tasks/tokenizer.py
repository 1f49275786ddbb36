"""The tokenizer as an asset of a task: trained once, kept in the run's folder."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

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
    """The run's own tokenizer if it has one, else one that is learnt from the texts.

    With `masks` it has a token in place of hidden words.
    """
    kept = how.asset(TOKENIZER)
    if kept is not None:
        return Vocabulary.load(kept)
    return learnt(settings, texts, masks=masks)


def learnt(settings: TokenizerSettings, texts: Iterable[str], *, masks: bool = False) -> Vocabulary:
    """What a task's settings make of some texts."""
    sizes: dict[str, Any] = {"size": settings.vocabulary, "lowercase": settings.lowercase}
    return Vocabulary.train(texts, level=settings.level, **sizes, masks=masks)


def tokenizer_asset(vocabulary: Vocabulary) -> dict[str, bytes]:
    """What a run keeps of it."""
    return {TOKENIZER: vocabulary.to_json().encode()}

"""What a row says of an image: a question, a phrase for a part of it, sentences to choose from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from saccade.data.readers.images.boxes.checks import Four


@dataclass(frozen=True)
class AskedItem(ABC):
    """Something about the image of that number; `file` and `line` are for messages."""

    image: int
    file: str = field(default="", compare=False, kw_only=True)
    line: int = field(default=0, compare=False, kw_only=True)

    @property
    @abstractmethod
    def said(self) -> tuple[str, ...]:
        """Its texts: one, or all to choose from."""


@dataclass(frozen=True)
class ImageQuestion(AskedItem):
    """A question with what people answered, each as often as it was given."""

    text: str
    answers: tuple[str, ...]

    @property
    def said(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True)
class Referred(AskedItem):
    """A phrase and what it refers to: left, top, right, bottom, shares of the upright image."""

    text: str
    box: Four

    @property
    def said(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True)
class Choice(AskedItem):
    """Sentences of which one is right: that of the number `right`, from 0."""

    texts: tuple[str, ...]
    right: int

    @property
    def said(self) -> tuple[str, ...]:
        return self.texts

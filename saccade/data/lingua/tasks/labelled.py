"""What every task of understanding gives, and labels that are balanced at every size."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, Protocol

from saccade.data.lingua import LinguaSettings, belongs


class LabelledSentence(NamedTuple):
    """One or two sentences and what is true of them; for tagging, the words and their tags."""

    texts: tuple[str, ...]
    label: str
    words: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class LinguaTask(Protocol):
    """A task: the first `count` items of a split; item i depends on (settings, split, i) alone."""

    def __call__(
        self, split: str, count: int, settings: LinguaSettings = ...
    ) -> list[LabelledSentence]: ...


class TaskItem(NamedTuple):
    """Which item of a task is being made: all its randomness comes from this."""

    task: str
    split: str
    number: int
    settings: LinguaSettings

    def rng(self) -> Random:
        """The item's own stream of chance."""
        return Random(f"lingua {self.task} {self.settings.seed} {self.split} {self.number}")

    def label(self, labels: Sequence[str]) -> str:
        """Every run of len(labels) items has each label once, in an order of its own."""
        run, place = divmod(self.number, len(labels))
        order = Random(f"lingua {self.task} {self.settings.seed} {self.split} labels {run}")
        return order.sample(labels, len(labels))[place]

    def takes(self, text: str, *, held_out: bool) -> bool:
        """Whether a sentence is of the item's split and length (`text` has one full stop)."""
        size = len(text.split()) + text.count(",")
        fits = self.settings.shortest <= size <= self.settings.longest
        return fits and belongs(self.split, text, held_out=held_out)

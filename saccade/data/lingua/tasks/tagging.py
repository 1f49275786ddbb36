"""Tagging: the part of speech of every word, as the grammar knew it when it wrote the word.

Some words are told apart by their neighbours alone: "her" is a determiner in "her letter" and a
pronoun in "saw her"; "that" is a conjunction after "says" and a pronoun after a noun; "to" is a
particle in "wants to go" and a preposition in "goes to Paris"; "was" is an auxiliary in "was
signed" and a verb in "was tired".
"""

from saccade.data.lingua import LinguaSettings, check_request, drafts, no_sentence
from saccade.data.lingua.tasks.labelled import LabelledSentence, TaskItem
from saccade.data.lingua.tokens import TAGS, write_english
from saccade.data.tokens.words import words

__all__ = ["TAGS", "tagging"]

_DEFAULT = LinguaSettings()


def tagging(split: str, count: int, settings: LinguaSettings = _DEFAULT) -> list[LabelledSentence]:
    """The first `count` sentences of a split with their words and tags; the label is empty."""
    check_request(split, count)
    return [_tagged(TaskItem("tags", split, index, settings)) for index in range(count)]


def _tagged(item: TaskItem) -> LabelledSentence:
    for phrase, held_out in drafts(item.rng(), item.split, item.settings):
        text = write_english(phrase.english)
        if item.takes(text, held_out=held_out):
            tags = tuple(word.tag for word in phrase.english)
            return LabelledSentence((text,), "", tuple(words(text)), tags)
    raise no_sentence(item.split, item.settings)

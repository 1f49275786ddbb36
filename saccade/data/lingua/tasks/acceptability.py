"""Acceptability: whether a sentence is English, or has one fault in its grammar.

Drawn evenly are the label and the kind of fault. An acceptable sentence is one in which the same
fault could have been made, so that both labels begin with the same sentences.
"""

from saccade.data.lingua import LinguaSettings, check_request, drafts, no_sentence
from saccade.data.lingua.tasks.faults import FAULTS, edited
from saccade.data.lingua.tasks.labelled import LabelledSentence, TaskItem
from saccade.data.lingua.tokens import write_english

LABELS = ("acceptable", "not acceptable")
_DEFAULT = LinguaSettings()


def acceptability(
    split: str, count: int, settings: LinguaSettings = _DEFAULT
) -> list[LabelledSentence]:
    """The first `count` sentences of a split, half of them with one fault."""
    check_request(split, count)
    return [_judged(TaskItem("acceptable", split, index, settings)) for index in range(count)]


def _judged(item: TaskItem) -> LabelledSentence:
    rng, label = item.rng(), item.label(LABELS)
    faults = FAULTS[rng.choice(list(FAULTS))]
    for phrase, held_out in drafts(rng, item.split, item.settings):
        english = phrase.english
        options = [edits for fault in faults if (edits := list(fault(english)))]
        if not options:
            continue
        if label == "not acceptable":
            english = edited(english, rng.choice(rng.choice(options)))
        text = write_english(english)
        if item.takes(text, held_out=held_out):
            return LabelledSentence((text,), label)
    raise no_sentence(item.split, item.settings)

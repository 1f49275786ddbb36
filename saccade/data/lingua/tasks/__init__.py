"""Tasks of understanding over lingua's English sentences; the labels are true by construction.

TASKS["entails"]("train", 1000)      the first 1,000 items of a split
"""

from saccade.data.lingua.tasks.acceptability import acceptability
from saccade.data.lingua.tasks.entailment import entailment
from saccade.data.lingua.tasks.labelled import LabelledSentence, LinguaTask
from saccade.data.lingua.tasks.paraphrase import paraphrase
from saccade.data.lingua.tasks.tagging import TAGS, tagging

__all__ = [
    "TAGS",
    "TASKS",
    "LabelledSentence",
    "LinguaTask",
    "acceptability",
    "entailment",
    "paraphrase",
    "tagging",
]

TASKS: dict[str, LinguaTask] = {
    "acceptable": acceptability,
    "entails": entailment,
    "paraphrase": paraphrase,
    "tags": tagging,
}

"""A text or a pair that is looked into: how it was read, what was said of it, which of that."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.axis import reading_axis
from saccade.app.look.document import AxisEntry
from saccade.data.tokens.reading import Reading
from saccade.errors import ConfigError
from saccade.tasks.guesses import probabilities
from saccade.tasks.understanding.classifier import TextAnswer, TextClassifier, Texts
from saccade.tasks.understanding.encode import NO_PIECE, first_pieces, word_places
from saccade.tasks.understanding.maps import Decision, DecisionMaps, decision_maps, read_at

GUESSES = 5
MOST_WORDS = 64  # whose tags are looked into, each by a backward pass
NUMBER = "the number"


@dataclass(frozen=True)
class Understood:
    """`decisions` are one of a text, or one of each word where they have tags; `names` says what
    each is, and `words` which words they are of. `probability` is of the class asked about.
    """

    reading: Reading
    axis: AxisEntry
    answer: TextAnswer
    decisions: list[Decision]
    names: list[str]
    words: tuple[int, ...] = ()
    probability: float | None = None

    def maps(self, tool: TextClassifier) -> DecisionMaps:
        """What each decision came from."""
        return decision_maps(tool.network, self.reading.tokens, self.reading.types, self.decisions)

    @property
    def tags(self) -> list[str]:
        """What the words were said to be."""
        return [self.answer.said[place] for place in self.words]

    @property
    def caption(self) -> str:
        """In a line what was said, or what is asked about."""
        if self.probability is None:
            return self.answer.text
        return f"{self.names[0]} {self.probability:.3f}"


def understand(tool: TextClassifier, texts: Texts, of: str | None) -> Understood:
    """Read a text; `of` asks about another class than is said, or of each word another tag."""
    texts, asked = tool.checked(texts), label_number(tool, of)
    if not any(text.strip() for text in texts):
        raise ConfigError("there is nothing to look at in an empty text; give some words")
    (scores,), cut = tool.scored([texts])
    (reading,) = tool.vocabulary.readings([texts], longest=tool.longest)
    answer = tool.answer(texts, scores, best=GUESSES, cut=bool(cut))
    read = reading, reading_axis(tool.vocabulary, texts, reading), answer
    if tool.labels.kind == "tags":
        return _of_words(read, scores, asked)
    place = read_at(tool.network, len(reading.tokens))
    if tool.labels.kind == "number":
        return Understood(*read, [Decision(place, 0, 0)], [NUMBER])
    label = int(scores.argmax()) if asked is None else asked
    (chances,) = probabilities(scores[None], several=tool.labels.several)
    decision, name = Decision(place, 0, label), tool.labels.names[label]
    return Understood(*read, [decision], [name], probability=float(chances[label]))


def _of_words(
    read: tuple[Reading, AxisEntry, TextAnswer], scores: Float[Tensor, "words C"], asked: int | None
) -> Understood:
    """At the first piece of each word."""
    reading, _, answer = read
    heads = first_pieces(reading, word_places(answer.texts[0], answer.words))
    known = tuple(place for place, head in enumerate(heads) if head != NO_PIECE)[:MOST_WORDS]
    best = torch.nan_to_num(scores).argmax(dim=1).tolist()
    decisions = [
        Decision(heads[place], heads[place], best[place] if asked is None else asked)
        for place in known
    ]
    return Understood(*read, decisions, [answer.words[place] for place in known], known)


def label_number(tool: TextClassifier, name: str | None) -> int | None:
    """The label whose traces are asked for; None: the one that the model says."""
    if name is None:
        return None
    names = tool.labels.names
    if name not in names:
        some = ", ".join(names[:10]) + ", …" * (len(names) > 10)
        there = f"there are: {some}" if names else "it tells a number: leave --of out"
        raise ConfigError(f"of={name!r} is no label of this model; {there}")
    return names.index(name)

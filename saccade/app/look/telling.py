"""How the words of a look were chosen, as the document tells it."""

from typing import Any

from saccade.app.look.axis import labels
from saccade.data.vocabulary import END, Vocabulary
from saccade.decode.beam import Beam
from saccade.decode.protocol import Candidate


def history(
    vocabulary: Vocabulary, steps: list[list[Candidate]], beam: Beam
) -> list[list[dict[str, Any]]]:
    """Every step's candidates with their texts so far."""
    history: list[list[dict[str, Any]]] = []
    before: list[list[int]] = [[]]
    for t, step in enumerate(steps):
        texts = [[*before[one.parent], one.token] for one in step]
        history.append(
            [
                {
                    "text": vocabulary.decode([token for token in tokens if token != END]),
                    "token": labels(vocabulary, [one.token])[0],
                    "parent": one.parent,
                    "score": round(one.log_probability / beam.penalty(t + 1), 4),
                    "log_probability": round(one.log_probability, 4),
                    "ended": one.ended,
                }
                for one, tokens in zip(step, texts)
            ]
        )
        before = [tokens for one, tokens in zip(step, texts) if not one.ended]
    return history


def choices_of(
    vocabulary: Vocabulary, choices: list[list[tuple[int, float]]]
) -> list[list[tuple[str, float]]]:
    """What might have been said at each place, in words."""
    return [[(labels(vocabulary, [t])[0], round(p, 4)) for t, p in place] for place in choices]


def rounded(values: list[float]) -> list[float]:
    """To as many digits as anyone reads."""
    return [round(value, 4) for value in values]

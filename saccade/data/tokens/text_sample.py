"""A part of texts that stream, enough to train a tokenizer on; all of them where they are few.

Each row is drawn with the same chance, which is halved whenever too much is held, so that nobody
must count the rows before. The draws are the same in every run: runs of one corpus then have one
tokenizer, whatever their seed, and share its tokens.
"""

import random
from collections.abc import Iterable

from saccade.data.tokens.vocabulary import Level

MOST_TEXTS = 1_000_000
FEWEST_TEXTS = 200_000
FOR_A_TOKEN = 25  # texts, where tokens are byte pairs
CHARACTERS = 100  # of a text, on average


class TextSample:
    """Rows with their numbers, in order, and how many there were in all: so many texts at most."""

    def __init__(self, rows: Iterable[tuple[str, ...]], most: int = MOST_TEXTS) -> None:
        draw, chance, self.total = random.Random(0).random, 1.0, 0
        held, texts, characters = list[tuple[float, int, tuple[str, ...]]](), 0, 0
        for number, row in enumerate(rows):
            self.total, drawn = number + 1, draw()
            if drawn >= chance:
                continue
            held.append((drawn, number, row))
            texts, characters = texts + len(row), characters + sum(map(len, row))
            while len(held) > 1 and (texts > most or characters > CHARACTERS * most):
                chance /= 2
                held = [one for one in held if one[0] < chance] or held[:1]
                texts = sum(len(one) for _, _, one in held)
                characters = sum(len(text) for _, _, one in held for text in one)
        self.rows = [(number, row) for _, number, row in held]


def enough_texts(level: Level, vocabulary: int) -> int:
    """How many texts tell which tokens there are, so many of them.

    Byte pairs that are worth a token are met often, and every byte is known; words and characters
    that a sample has not are unknown for ever.
    """
    if level != "bpe":
        return MOST_TEXTS
    return min(MOST_TEXTS, max(FEWEST_TEXTS, FOR_A_TOKEN * vocabulary))

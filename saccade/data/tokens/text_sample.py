"""A part of texts that stream, enough to train a tokenizer on; all of them where they are few.

Each row is drawn with the same chance, which is halved whenever too much is held, so that nobody
must count the rows before. The draws are the same in every run: runs of one corpus then have one
tokenizer, whatever their seed, and share its tokens.
"""

import random
from collections.abc import Iterable

MOST_TEXTS = 1_000_000
MOST_CHARACTERS = 100_000_000


class TextSample:
    """Rows with their numbers, in order, and how many there were in all."""

    def __init__(self, rows: Iterable[tuple[str, ...]]) -> None:
        draw, chance, self.total = random.Random(0).random, 1.0, 0
        held, texts, characters = list[tuple[float, int, tuple[str, ...]]](), 0, 0
        for number, row in enumerate(rows):
            self.total, drawn = number + 1, draw()
            if drawn >= chance:
                continue
            held.append((drawn, number, row))
            texts, characters = texts + len(row), characters + sum(map(len, row))
            while len(held) > 1 and (texts > MOST_TEXTS or characters > MOST_CHARACTERS):
                chance /= 2
                held = [one for one in held if one[0] < chance] or held[:1]
                texts = sum(len(one) for _, _, one in held)
                characters = sum(len(text) for _, _, one in held for text in one)
        self.rows = [(number, row) for _, number, row in held]

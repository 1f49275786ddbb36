"""Lingua: English sentences, their French translations, and the true alignment of their words.

A grammar of our own builds both sides together, so the alignment is known, not guessed. The
translation is a function of the source: whatever French must decide, the English shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from zlib import crc32

from saccade.data.lingua.clauses import DeadEndError
from saccade.data.lingua.draw import Draw, is_held_out
from saccade.data.lingua.sentences import sentence
from saccade.data.lingua.tokens import Phrase, mark, pronounce, write_english, write_french
from saccade.errors import ConfigError

__all__ = ["SPLITS", "AlignedPair", "LinguaSettings", "align", "is_held_out", "pairs"]

SPLITS = ("train", "valid", "test", "compositional")

# Lengths in words, both ends included, and how often each band is drawn.
BANDS = ((3, 10, 0.45), (11, 20, 0.25), (21, 30, 0.15), (31, 50, 0.10), (51, 80, 0.05))
_SHORTEST, _LONGEST = BANDS[0][0], BANDS[-1][1]
_ATTEMPTS = 20_000
_PATIENCE = 100  # attempts at one length before another is drawn


@dataclass(frozen=True)
class AlignedPair:
    """A sentence, its translation, and which words render which.

    Links are (source word, target word), counted as `saccade.data.tokens.words.words` splits the
    texts. `possible` contains `sure`.
    """

    source: str
    target: str
    sure: tuple[tuple[int, int], ...]
    possible: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class LinguaSettings:
    """Which sentences of lingua there are; the full stop is not counted as a word.

    Args:
        seed: another one gives other sentences.
        shortest: words of a source sentence, at least.
        longest: words of a source sentence, at most.
    """

    seed: int = 0
    shortest: int = _SHORTEST
    longest: int = _LONGEST

    def __post_init__(self) -> None:
        if self.shortest < _SHORTEST:
            raise ConfigError(
                f"shortest={self.shortest} is too short: sentences have at least {_SHORTEST} words"
            )
        if self.longest > _LONGEST:
            raise ConfigError(
                f"longest={self.longest} is too long: sentences have at most {_LONGEST} words"
            )
        if self.shortest > self.longest:
            raise ConfigError(
                f"shortest={self.shortest} exceeds longest={self.longest}; swap or widen them"
            )


_DEFAULT = LinguaSettings()


def pairs(split: str, count: int, settings: LinguaSettings = _DEFAULT) -> list[AlignedPair]:
    """The first `count` pairs of a split; pair i depends on nothing but (settings, split, i).

    No sentence is in two splits, whatever the seeds and sizes.
    """
    check_request(split, count)
    return [_pair(split, index, settings) for index in range(count)]


def check_request(split: str, count: int) -> None:
    """Refuse a split that does not exist, and fewer than no sentences."""
    if split not in SPLITS:
        raise ConfigError(f"no split {split!r}; try one of: {', '.join(SPLITS)}")
    if count < 0:
        raise ConfigError(f"count={count} is negative; ask for 0 pairs or more")


def align(phrase: Phrase, source: str = "") -> AlignedPair:
    """Write both sides of a finished sentence out, unless done already, and number its links."""
    position = {word: index for index, word in enumerate(phrase.english)}
    french = pronounce(phrase.french)
    sure = [(position[mot.sure], index) for index, mot in enumerate(french)]
    possible = {
        (position[word], index) for index, mot in enumerate(french) for word in mot.possible
    }
    return AlignedPair(
        source or write_english(phrase.english),
        write_french(french),
        tuple(sorted(sure)),
        tuple(sorted(possible.union(sure))),
    )


def _pair(split: str, index: int, settings: LinguaSettings) -> AlignedPair:
    rng = Random(f"lingua {settings.seed} {split} {index}")
    for phrase, held_out in drafts(rng, split, settings):
        source = write_english(phrase.english)
        if belongs(split, source, held_out=held_out):
            return align(phrase, source)
    raise no_sentence(split, settings)


def drafts(rng: Random, split: str, settings: LinguaSettings) -> Iterator[tuple[Phrase, bool]]:
    """Sentences of the lengths asked for, and whether each has a held-out combination.

    Whether the split takes one is for `belongs` to say. They run out after many attempts.
    """
    size = 0
    for attempt in range(_ATTEMPTS):
        if attempt % _PATIENCE == 0:
            size = _size(rng, settings)
        draw = Draw(rng, compositional=split == "compositional")
        try:
            phrase = sentence(draw, size)
        except DeadEndError:
            continue
        if settings.shortest <= len(phrase.english) <= settings.longest:
            phrase.add(mark("."))
            yield phrase, draw.met_held_out


def belongs(split: str, text: str, *, held_out: bool) -> bool:
    """Whether a sentence is in a split: by its combinations, else by a hash of its text."""
    if split == "compositional" or held_out:
        return held_out and split == "compositional"
    bucket = crc32(text.encode()) % 10
    return split == ("valid" if bucket == 8 else "test" if bucket == 9 else "train")


def no_sentence(split: str, settings: LinguaSettings) -> ConfigError:
    """What to say when the attempts have run out."""
    return ConfigError(
        f"no sentence of {settings.shortest} to {settings.longest} words turned up for {split!r}; "
        "widen shortest and longest"
    )


def _size(rng: Random, settings: LinguaSettings) -> int:
    """A length within the bounds, from the bands that overlap them."""
    shortest, longest = settings.shortest, settings.longest
    open_bands = [
        (max(low, shortest), min(high, longest), weight)
        for low, high, weight in BANDS
        if low <= longest and high >= shortest
    ]
    low, high, _ = rng.choices(open_bands, [weight for *_, weight in open_bands])[0]
    return rng.randint(low, high)

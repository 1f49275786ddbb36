"""Byte pairs of which some merges are left out at random: the same text, in other pieces each time.

Provilkov et al. 2020, arXiv:1910.13267. `tokenizers` can do it too, but its randomness has no seed,
and a run that is resumed would read other pieces.
"""

import json
from collections.abc import Iterator
from itertools import chain, pairwise
from random import Random
from typing import Any

from tokenizers import Tokenizer, pre_tokenizers

from saccade.data.tokens.vocabulary import Vocabulary, refused_as
from saccade.errors import ConfigError, DataError

NEVER = 1 << 60  # the rank of a pair that is not merged
KEPT = 50_000  # words whose merges are remembered
ODDITIES = ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")

Pair = tuple[int, int]


class BpeDropout:
    """Reads as a tokenizer of byte pairs does, but for merges that are passed over by chance.

    At each step the pairs of a word that could be merged are gone through, the earliest learnt
    first; each is passed over with probability `rate`, and the first that is not is merged. If all
    are passed over, the word is done. With rate 0 this is the tokenizer itself, with 1 every byte
    stays alone.
    """

    def __init__(self, vocabulary: Vocabulary, rate: float) -> None:
        self.rate = rate
        self._tokenizer = Tokenizer.from_str(vocabulary.to_json())
        model = json.loads(vocabulary.to_json())["model"]
        self._numbers: dict[str, int] = model.get("vocab", {})
        if not self._merges_bytes(model):
            raise ConfigError(
                f"bpe_dropout={rate} is of byte pairs as those of level=bpe, and this tokenizer "
                "has others; leave it out (--bpe-dropout 0)"
            )
        # By pair: how late it was learnt, and what it becomes.
        self._merges: dict[Pair, Pair] = {
            (self._numbers[left], self._numbers[right]): (rank, self._numbers[left + right])
            for rank, (left, right) in enumerate(map(_sides, model["merges"]))
        }
        self._whole = dict[str, list[int]]()

    def encode(self, text: str, random: Random) -> list[int]:
        """The tokens of a text; the same for the same state of `random`."""
        with refused_as(DataError, "the tokenizer fails on this text"):
            normal, splits = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
            text = text if normal is None else normal.normalize_str(text)
            words = [word for word, _ in splits.pre_tokenize_str(text)]
        return [token for word in words for token in self._word(word, random)]

    def again(self, tokens: list[int], random: Random) -> list[int]:
        """The text of some tokens, in other pieces."""
        # Not as `Vocabulary.decode` has it, which leaves a blank out that belongs to the text.
        return self.encode(self._tokenizer.decode(tokens, skip_special_tokens=False), random)

    def _word(self, word: str, random: Random) -> list[int]:
        """Every merge of a word that nothing is passed over in takes one draw: if none of these
        passes over, it is as the tokenizer reads it, which is remembered.
        """
        whole = self._whole.get(word)
        if whole is None:
            whole = self._merged(word, 0.0, iter(random.random, None))
            if len(self._whole) < KEPT:
                self._whole[word] = whole
        draws = [random.random() for _ in range(len(word) - len(whole))]
        if not draws or min(draws) >= self.rate:
            return whole
        return self._merged(word, self.rate, chain(draws, iter(random.random, None)))

    def _merged(self, word: str, rate: float, draws: Iterator[float]) -> list[int]:
        merges, never = self._merges, (NEVER, -1)
        tokens = [self._numbers[letter] for letter in word]
        found = [merges.get(pair, never) for pair in pairwise(tokens)]
        while True:
            order = sorted((rank, place) for place, (rank, _) in enumerate(found) if rank < NEVER)
            place = next((place for _, place in order if not rate or next(draws) >= rate), None)
            if place is None:
                return tokens
            tokens[place : place + 2] = [found[place][1]]
            near = range(max(0, place - 1), min(place + 1, len(tokens) - 1))
            found[max(0, place - 1) : place + 2] = [
                merges.get((tokens[at], tokens[at + 1]), never) for at in near
            ]

    def _merges_bytes(self, model: dict[str, Any]) -> bool:
        """Whether each byte is a letter with a token, and pairs of tokens are all there is."""
        added = self._tokenizer.get_added_tokens_decoder().values()
        return (
            model["type"] == "BPE"
            and not any(model.get(name) for name in ODDITIES)
            and self._numbers.keys() >= set(pre_tokenizers.ByteLevel.alphabet())
            and self._tokenizer.pre_tokenizer is not None
            and all(token.special for token in added)
        )


def _sides(merge: str | list[str]) -> list[str]:
    """Older files have a pair as one string."""
    return merge.split(" ") if isinstance(merge, str) else merge

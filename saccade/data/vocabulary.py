"""Text to token numbers and back: byte-level BPE trained on the fly, words, or characters.

One vocabulary serves both sides of a translation. The four control tokens are numbers, never text:
a user who types "</s>" gets the characters, not the end of the sentence.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from saccade.errors import ConfigError, RunError


class SpecialTokens(NamedTuple):
    """The numbers of the tokens that are no text; not every tokenizer has one for the unknown."""

    pad: int
    start: int
    end: int
    unknown: int | None


OURS = SpecialTokens(pad=0, start=1, end=2, unknown=3)
# Each holds a blank, so that no word can be mistaken for one.
CONTROL = ("<no word>", "<start of text>", "<end of text>", "<unknown word>")

# Those of others, in the order of `SpecialTokens`: as in BERT, in Marian and RoBERTa, in GPT-2.
FOREIGN = (
    ("[PAD]", "[CLS]", "[SEP]", "[UNK]"),
    ("<pad>", "<s>", "</s>", "<unk>"),
    ("<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>"),
)

Level = Literal["bpe", "words", "characters"]


class Vocabulary:
    """A trained tokenizer and its special tokens: ours, at the front, or those it came with."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.special = _special(tokenizer)
        self._names = {
            number: tokenizer.id_to_token(number) for number in self.special if number is not None
        }
        self._silent = {number for number in self._names if number != self.special.unknown}

    @property
    def start(self) -> int:
        return self.special.start

    @property
    def end(self) -> int:
        return self.special.end

    @property
    def pad(self) -> int:
        return self.special.pad

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        level: Level = "bpe",
        size: int = 8000,
        lowercase: bool = False,
    ) -> "Vocabulary":
        """Learn the `size` most useful tokens of `texts`; the same texts give the same tokens."""
        least = len(CONTROL) + (256 if level == "bpe" else 1)
        if size < least:
            raise ConfigError(f"vocabulary={size} must be at least {least} for level={level}")
        return cls(_TRAINERS[level](texts, size, normalizers.Lowercase() if lowercase else None))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises plain Exception for any broken file
            raise RunError(f"{path} is not a tokenizer: {error}") from error

    def to_json(self) -> str:
        """What `tokenizer.json` holds; any program that uses `tokenizers` reads it."""
        return self._tokenizer.to_str(pretty=True)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    @property
    def highest(self) -> int:
        """The largest number of a token; of others' tokenizers some may be left out."""
        return max(self._tokenizer.get_vocab().values(), default=-1)

    def entries(self) -> list[str]:
        """Every token by its number, as the tokenizer itself writes it: no two are the same."""
        by_number = sorted(self._tokenizer.get_vocab().items(), key=lambda entry: entry[1])
        return [token for token, _ in by_number]

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        return [
            one.ids for one in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Which characters of the text each token stands for."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets

    def decode(self, tokens: list[int]) -> str:
        """The text of some tokens; control tokens have none."""
        kept = [token for token in tokens if token not in self._silent]
        return self._tokenizer.decode(kept, skip_special_tokens=False).removeprefix(" ")

    def spans_of(self, tokens: list[int]) -> list[tuple[int, int]]:
        """Which characters of `decode(tokens)` each token stands for.

        Not the spans of the decoded text: a model may spell a word in other pieces than encoding.
        """
        ends = [len(self.decode(tokens[:count])) for count in range(len(tokens) + 1)]
        return list(pairwise(ends))

    def pieces(self, tokens: list[int]) -> list[str]:
        """Each token as it reads by itself, for showing."""
        return [
            self._names.get(token) or self._tokenizer.decode([token], skip_special_tokens=False)
            for token in tokens
        ]


def _special(tokenizer: Tokenizer) -> SpecialTokens:
    for names in (CONTROL, *FOREIGN):
        numbers = [n for name in names if (n := tokenizer.token_to_id(name)) is not None]
        if len(numbers) == len(names):
            pad, start, end, unknown = numbers
            return SpecialTokens(pad, start, end, None if unknown == end else unknown)
    raise ConfigError("the tokenizer has no tokens for start and end that Saccade knows")


def _train_bpe(texts: Iterable[str], size: int, normalizer: Any) -> Tokenizer:
    """Byte pairs, merged by frequency: every text can be written, rare words in pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(CONTROL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _train_words(texts: Iterable[str], size: int, normalizer: Any) -> Tokenizer:
    """Words are what stands between blanks; the end of a line is a word of its own."""
    splitter = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[^\S\n]+"), "removed"),
            pre_tokenizers.Split("\n", "isolated"),
        ]
    )
    return _counted(texts, splitter, size, normalizer)


def _train_characters(texts: Iterable[str], size: int, normalizer: Any) -> Tokenizer:
    splitter = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer = _counted(texts, splitter, size, normalizer)
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def _counted(texts: Iterable[str], splitter: Any, size: int, normalizer: Any) -> Tokenizer:
    """The most frequent units; among equals, the alphabet decides."""
    plain = (normalizer.normalize_str(text) if normalizer else text for text in texts)
    counts = Counter(unit for text in plain for unit, _ in splitter.pre_tokenize_str(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    entries = (*CONTROL, *ranked[: size - len(CONTROL)])
    vocabulary = {word: number for number, word in enumerate(entries)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=CONTROL[-1]))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    return tokenizer


_TRAINERS: dict[Level, Callable[[Iterable[str], int, Any], Tokenizer]] = {
    "bpe": _train_bpe,
    "words": _train_words,
    "characters": _train_characters,
}

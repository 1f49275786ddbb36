"""Scores of captions against several references each: BLEU-1…4, ROUGE-L, CIDEr-D; no Java.

The definitions are those of the COCO caption evaluation: one figure for the whole corpus, the
closest reference's length for BLEU's brevity penalty. Where that evaluation splits words by the
Penn Treebank's rules, here a word is a run of letters, digits and inner apostrophes in lower case,
and punctuation is dropped, as it is there.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable

from saccade.errors import DataError

LONGEST = 4  # words of an n-gram
WORD = re.compile(r"\w+(?:['’]\w+)*")

Words = tuple[str, ...]
Grams = Counter[Words]


def caption_words(text: str) -> Words:
    """What is compared: words in lower case, without punctuation."""
    return tuple(WORD.findall(text.lower()))


def caption_scores(captions: list[str], references: list[list[str]]) -> dict[str, float]:
    """All scores of a corpus, in percent (CIDEr-D in hundredths, where 100 is common)."""
    if len(captions) != len(references) or not captions or not all(references):
        raise DataError(
            f"{len(captions)} captions and {len(references)} lists of references; there must be as "
            "many of both, at least one, and no list may be empty"
        )
    said = [caption_words(caption) for caption in captions]
    right = [[caption_words(one) for one in some] for some in references]
    bleu = bleu_scores(said, right)
    scores = {f"bleu_{n}": 100 * score for n, score in enumerate(bleu, start=1)}
    rouge = sum(map(rouge_l, said, right)) / len(said)
    return {**scores, "rouge_l": 100 * rouge, "cider_d": 100 * cider_d(said, right)}


def bleu_scores(captions: list[Words], references: list[list[Words]]) -> list[float]:
    """BLEU-1 … BLEU-4 (Papineni et al. 2002) of a corpus.

        BLEU-n = brevity · (p₁ ⋯ pₙ)^(1/n)        brevity = min(1, exp(1 − r / c))

    pₙ counts an n-gram at most as often as one reference has it; c is the length of all captions,
    r that of the references closest to each in length, the shorter of two.
    """
    matches, possible = [0] * LONGEST, [0] * LONGEST
    length = closest = 0
    for caption, some in zip(captions, references):
        length += len(caption)
        closest += min((abs(len(one) - len(caption)), len(one)) for one in some)[1]
        for n in range(1, LONGEST + 1):
            allowed: Grams = Counter()
            for one in some:
                allowed |= grams(one, n)
            said = grams(caption, n)
            matches[n - 1] += (said & allowed).total()
            possible[n - 1] += said.total()
    brevity = math.exp(min(0.0, 1 - closest / length)) if length else 0.0
    scores: list[float] = []
    product = 1.0
    for n, (found, of) in enumerate(zip(matches, possible), start=1):
        product *= found / of if of else 0.0
        scores.append(brevity * product ** (1 / n))
    return scores


def rouge_l(caption: Words, references: list[Words]) -> float:
    """ROUGE-L (Lin 2004): how long a common subsequence is, against both lengths.

        F = (1 + β²) P R / (R + β² P)

    β is 1.2; P and R are the best over the references.
    """
    common = [_common(caption, one) for one in references]
    precision = max(common) / len(caption) if caption else 0.0
    recall = max(found / len(one) if one else 0.0 for found, one in zip(common, references))
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)


def _common(a: Words, b: Words) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before = row
        row = [0]
        for j, other in enumerate(b):
            row.append(before[j] + 1 if word == other else max(before[j + 1], row[j]))
    return row[-1]


def cider_d(captions: list[Words], references: list[list[Words]]) -> float:
    """CIDEr-D (Vedantam et al. 2015, arXiv:1411.5726), averaged over the corpus.

        gₙ(s) = counts of n-grams, each times log(images / images whose references have it)
        CIDErₙ = 10 · mean over references of e^(−Δ²/2σ²) · min(g(c), g(r)) · g(r) / |g(c)| |g(r)|

    averaged over n = 1 … 4; Δ is the difference in length, in bigrams as in the released code, and
    σ = 6. A single image knows no rare words: its score is 0.
    """
    seen: Counter[Words] = Counter()
    for some in references:
        seen.update({gram for one in some for gram in _all_grams(one)})
    images = math.log(len(references))

    def weighed(words: Words) -> tuple[list[dict[Words, float]], list[float], int]:
        vectors: list[dict[Words, float]] = [{} for _ in range(LONGEST)]
        for gram, count in Counter(_all_grams(words)).items():
            vectors[len(gram) - 1][gram] = count * (images - math.log(max(1, seen[gram])))
        norms = [math.sqrt(sum(x * x for x in vector.values())) for vector in vectors]
        return vectors, norms, max(0, len(words) - 1)

    total = 0.0
    for caption, some in zip(captions, references):
        ours, our_norms, our_length = weighed(caption)
        score = 0.0
        for one in some:
            theirs, their_norms, their_length = weighed(one)
            alike = math.exp(-((our_length - their_length) ** 2) / (2 * 6.0**2))
            for n in range(LONGEST):
                shared = sum(
                    min(x, theirs[n].get(gram, 0.0)) * theirs[n].get(gram, 0.0)
                    for gram, x in ours[n].items()
                )
                size = our_norms[n] * their_norms[n]
                score += alike * (shared / size if size else shared)
        total += 10 * score / (LONGEST * len(some))
    return total / len(captions)


def grams(words: Words, n: int) -> Grams:
    """How often each sequence of n words occurs."""
    return Counter(words[i : i + n] for i in range(len(words) - n + 1))


def _all_grams(words: Words) -> Iterable[Words]:
    return (words[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1))

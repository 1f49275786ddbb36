"""METEOR (Banerjee & Lavie 2005) as nltk computes it, where nltk and its WordNet are there.

The published figures come from a program of its authors' with other weights and paraphrases: the
two are not comparable, so this one is called by nltk's name wherever it is shown.
"""

from importlib import import_module
from typing import Any

from saccade.metrics.captioning import caption_words

MISSING = (
    "METEOR is left out: it needs nltk and WordNet "
    "(pip install nltk, then python -m nltk.downloader wordnet)"
)


def nltk_meteor(
    captions: list[str], references: list[list[str]], *, wordnet: Any = None
) -> float | None:
    """100 × the mean over captions of the best score against any of its references.

        score = (1 − ½ (chunks / m)³) · P R / (0.9 P + 0.1 R)

    m words match, as they are, by their stem or as synonyms, in so many runs. `wordnet` is another
    reader than nltk's own. None without nltk or WordNet.
    """
    try:
        scorer = import_module("nltk.translate.meteor_score")
        synonyms = wordnet or import_module("nltk.corpus").wordnet
        synonyms.synsets("a")  # read now: it is looked for at the first use
    except (ImportError, LookupError):
        return None
    scores = [
        scorer.meteor_score(
            [caption_words(one) for one in some], caption_words(caption), wordnet=synonyms
        )
        for caption, some in zip(captions, references, strict=True)
    ]
    return 100 * sum(scores) / len(scores)

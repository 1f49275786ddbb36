"""Scores of a translator on held-out pairs, which stream: sums are kept, and no texts."""

import time
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from saccade.data.lingua import AlignedPair
from saccade.data.readers.report import counted
from saccade.data.tokens.words import length_in_words
from saccade.decode.engine import Decoding
from saccade.errors import DataError
from saccade.metrics.alignment import alignment_error_rate, best_links
from saccade.metrics.translation import AS_ASKED, Tokenize, TranslationScorer, choose_tokenizer
from saccade.tasks.base import Progress, silent
from saccade.tasks.figures import loss_figures
from saccade.tasks.translation.scored_pairs import Pair, ScoredPairs
from saccade.tasks.translation.task import pairs_loss
from saccade.tasks.translation.translator import Translator


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """How translations are compared with their references."""

    lowercase: bool = False
    tokenize: Tokenize = "auto"
    ter_seconds: float = 60.0


def evaluate_translations(
    tool: Translator,
    corpus: ScoredPairs,
    *,
    how: Decoding,
    comparing: Comparing,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Every score by name. A first pass over the pairs finds bad rows, counts and sees the script.

    Then they are translated and scored a window at a time; pairs that are too long for the model
    are left out and counted.
    """
    numbers = count()
    chosen = choose_tokenizer(target for (_, target), _ in zip(corpus.pairs(), numbers))
    total = next(numbers)
    if comparing.tokenize != "auto":
        chosen = comparing.tokenize, AS_ASKED
    bounds: dict[str, Any] = {"ter_seconds": comparing.ter_seconds}
    scorer = TranslationScorer(*chosen, lowercase=comparing.lowercase, **bounds)
    sums = _Sums()
    for pairs in map(tool.fitting, corpus.windows()):
        sums.add(tool, pairs, how, scorer, lambda n, _: progress(sums.sentences + n, total))
    if not sums.sentences:
        raise DataError(
            f"each of the {counted(total, 'pair')} has a side of {tool.longest} tokens or more, "
            "and with its end the model sees no more; give shorter ones"
        )
    found = {
        "sentences": sums.sentences,
        **({"left_out": total - sums.sentences} if sums.sentences < total else {}),
        **vars(scorer.scores()),
        **loss_figures(sums.loss / sums.tokens),
        "exact": sums.exact / sums.sentences,
        "seconds": sums.seconds,
        "beam": how.beam,
    }
    return found | (_alignment(tool, corpus.aligned) if corpus.aligned and tool.looks else {})


class _Sums:
    """What is known of the pairs so far."""

    def __init__(self) -> None:
        self.sentences = self.exact = self.tokens = 0
        self.loss = self.seconds = 0.0

    def add(
        self,
        tool: Translator,
        pairs: list[Pair],
        how: Decoding,
        scorer: TranslationScorer,
        progress: Progress,
    ) -> None:
        if not pairs:
            return
        sources, references = map(list, zip(*pairs))
        begun, texts = time.perf_counter(), [""] * len(pairs)
        for done, (row, one) in enumerate(tool.translate(sources, how), start=1):
            texts[row] = one.text
            progress(done, len(pairs))
        self.seconds += time.perf_counter() - begun
        scorer.add(texts, references, list(map(length_in_words, sources)))
        model: Any = tool.model
        loss, tokens = pairs_loss(model, tool.vocabulary, pairs, tool.device)
        self.loss, self.tokens = self.loss + loss, self.tokens + tokens
        self.exact += sum(text == reference for text, reference in zip(texts, references))
        self.sentences += len(pairs)


def _alignment(tool: Translator, aligned: list[AlignedPair]) -> dict[str, Any]:
    """How well each attention aligns the words of given translations, against the truth."""
    links: dict[str, dict[int, set[tuple[int, int]]]] = {}
    for row, by_site in tool.align([(pair.source, pair.target) for pair in aligned]):
        together = torch.stack(list(by_site.values())).mean(dim=0)
        for site, weights in {**by_site, "mean": together}.items():
            links.setdefault(site, {})[row] = best_links(weights)
    sure, possible = [set(pair.sure) for pair in aligned], [set(pair.possible) for pair in aligned]
    rates = {
        site: alignment_error_rate([found[row] for row in range(len(aligned))], sure, possible)
        for site, found in links.items()
    }
    return {"alignment_error_rate": rates.pop("mean"), "alignment_error_by_site": rates}

"""Scores of a run on held-out data."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from saccade.app.api import CaptioningModel, LanguageModel, Model, TranslationModel
from saccade.app.evaluate_captions import evaluate_captions
from saccade.data.lingua import AlignedPair
from saccade.data.ragged import Ragged
from saccade.data.three_sentences import SENTENCES
from saccade.data.words import words
from saccade.decode.engine import Decoding
from saccade.metrics.alignment import alignment_error_rate, best_links
from saccade.metrics.translation import score_translations
from saccade.tasks.language.task import lines_loss, read_language, stream_loss
from saccade.tasks.translation.task import pairs_loss, read_corpus

Progress = Callable[[int, int], None]


def evaluate(
    model: Model,
    *,
    split: str,
    data: str,
    how: Decoding,
    lowercase: bool,
    progress: Progress,
    groups: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Every score that the task has, by name; `groups` are asked about where there are captions."""
    if isinstance(model, TranslationModel):
        return _translation(model, split, data, how, lowercase, progress)
    if isinstance(model, CaptioningModel):
        where: dict[str, Any] = {"split": split, "data": data}
        return evaluate_captions(model, **where, how=how, progress=progress, groups=groups)
    return _language(model, split, data)


def _translation(
    model: TranslationModel,
    split: str,
    data: str,
    how: Decoding,
    lowercase: bool,
    progress: Progress,
) -> dict[str, Any]:
    settings = model.recipe.task
    corpus = read_corpus(replace(settings, data=data) if data else settings, split)  # type: ignore[arg-type]
    sources, references = map(list, zip(*corpus.pairs))
    begun = time.perf_counter()
    predictions = model.predict(sources, progress=progress, **vars(how))
    seconds = time.perf_counter() - begun
    texts = [prediction.text for prediction in predictions]
    # Band by words without the final mark, as lingua counts them.
    lengths = [len([word for word in words(text) if word[0].isalnum()]) for text in sources]
    scores = score_translations(texts, references, lengths, lowercase=lowercase)
    translator = model.tool
    loss = pairs_loss(translator.model, translator.vocabulary, corpus.pairs, translator.device)
    found = {
        "split": split,
        "sentences": len(sources),
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "signature": scores.signature,
        "bleu_by_length": scores.bleu_by_length,
        "sentences_by_length": scores.count_by_length,
        "loss": loss,
        "perplexity": float(torch.tensor(loss).exp()),
        "exact": sum(a == b for a, b in zip(texts, references)) / len(texts),
        "seconds": seconds,
        "beam": how.beam,
    }
    if corpus.aligned and translator.looks:
        found |= _alignment(model, corpus.aligned)
    return found


def _alignment(model: TranslationModel, aligned: list[AlignedPair]) -> dict[str, Any]:
    """How well each attention aligns the words of given translations, against the truth."""
    links: dict[str, dict[int, set[tuple[int, int]]]] = {}
    for row, by_site in model.tool.align([(pair.source, pair.target) for pair in aligned]):
        together = torch.stack(list(by_site.values())).mean(dim=0)
        for site, weights in {**by_site, "mean": together}.items():
            links.setdefault(site, {})[row] = best_links(weights)
    sure, possible = [set(pair.sure) for pair in aligned], [set(pair.possible) for pair in aligned]
    rates = {
        site: alignment_error_rate([found[row] for row in range(len(aligned))], sure, possible)
        for site, found in links.items()
    }
    return {"alignment_error_rate": rates.pop("mean"), "alignment_error_by_site": rates}


def _language(model: LanguageModel, split: str, data: str) -> dict[str, Any]:
    writer, settings = model.tool, model.tool.settings
    texts, _ = read_language(replace(settings, data=data) if data else settings, split)
    encoded = Ragged.of(writer.vocabulary.encode_all(texts))
    measure = lines_loss if settings.unit == "lines" else stream_loss
    loss = measure(writer.model, encoded, writer.device)
    found: dict[str, Any] = {
        "split": split,
        "texts": len(texts),
        "tokens": len(encoded.flat),
        "loss": loss,
        "perplexity": float(torch.tensor(loss).exp()),
        "bits_per_token": loss / float(torch.tensor(2.0).log()),
    }
    if not settings.data and not data:
        found |= _three_sentences(model)
    return found


def _three_sentences(model: LanguageModel, *, count: int = 1000) -> dict[str, Any]:
    """How many of the model's own sentences belong to the world, with and without feed-back."""
    fed = [one.text for one in model.predict("", count=count, most_tokens=20)]
    cut = model.tool.without_feedback(count, seed=0)
    return {
        "samples": count,
        "of_the_world": sum(text in SENTENCES for text in fed),
        "shares": {sentence: fed.count(sentence) / count for sentence in SENTENCES},
        "of_the_world_without_feedback": sum(text in SENTENCES for text in cut),
        "nonsense": [text for text in dict.fromkeys(cut) if text not in SENTENCES][:5],
    }

"""Scoring joint models on images and texts that they were not trained on."""

import time
from typing import Any, NamedTuple

import torch

from saccade.data.answers import AnswerSet
from saccade.tasks.base import LengthBound, Progress, silent
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.figures import loss_figures
from saccade.tasks.joint.answering import (
    AnsweringSettings,
    answer_scores,
    read_questions,
    targets,
)
from saccade.tasks.joint.batch import SightedTexts, seen_regions
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.choosing import (
    ChoosingSettings,
    choice_scores,
    read_choices,
    with_rows,
)
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pretraining import (
    JointPretrainingSettings,
    fixed_hiding,
    hidden_batch,
)
from saccade.tasks.joint.referring import ReferringSettings, points_right, read_phrases
from saccade.tasks.joint.retrieval import recalls
from saccade.tasks.joint.task import TextsOfImages, in_order
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.kept_texts import KeptTexts

ALL = LengthBound(1 << 30, "")


class ScoredTexts(NamedTuple):
    """Texts as tokens with their images, what is true of each, and how many were too long."""

    texts: SightedTexts
    truth: list[Any]
    left_out: int


def encoded(
    tool: JointTool,
    settings: JointSettings,
    read: TextsOfImages,
    what: str,
    progress: Progress = silent,
) -> ScoredTexts:
    """What was read, as far as the model can take it."""
    read = read.located(tool.places.of(settings), progress)
    read.sighted.check(tool.model.config.regions)
    longest = tool.model.longest
    bound = ALL if longest is None else LengthBound(longest, "--model.longest")
    texts, _, kept = SightedTexts.of(
        read.sighted, KeptTexts(read.texts), tool.vocabulary, bound, what, read.sizes
    )
    return ScoredTexts(texts, [read.truth[i] for i in kept.tolist()], len(read.truth) - len(kept))


@torch.no_grad()
def evaluate_answers(
    tool: JointTool,
    answers: AnswerSet,
    *,
    split: str | None,
    settings: AnsweringSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """How right the likeliest answers are, by what people said; by what questions take as well."""
    data, truth, left_out = encoded(
        tool, settings, read_questions(settings, split, reading), "questions", reading
    )
    begun, found, by_kind = time.perf_counter(), list[float](), dict[str, list[float]]()
    for images, texts, of in in_order(data):
        batch = data.batch(images, texts, of).to(tool.device)
        asked = [truth[text] for text in texts.tolist()]
        best = answer_scores(tool.model, batch, settings.sees).argmax(dim=1, keepdim=True).cpu()
        right = targets([answers.scores(one.answers) for one in asked], len(answers))
        scores = right.gather(1, best)[:, 0].tolist()
        found += scores
        for one, score in zip(asked, scores):
            by_kind.setdefault(one.takes, []).append(score)
        progress(len(found), len(truth))
    by_kind.pop("", None)
    return {
        "split": split or "all",
        "left_out": left_out,
        "questions": len(found),
        "images": len(data.sighted),
        "seconds": time.perf_counter() - begun,
        "accuracy": sum(found) / len(found),
        "by_kind": {name: sum(some) / len(some) for name, some in sorted(by_kind.items())},
        "unknown_answers": sum(not answers.scores(one.answers) for one in truth),
    }


def evaluate_fitting(
    tool: JointTool,
    *,
    split: str | None,
    settings: FittingSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Images found by sentences, and sentences by images, each among all of the split."""
    data, _, left_out = encoded(
        tool, settings, read_captions(settings, split, reading), "sentences", reading
    )
    begun, images = time.perf_counter(), torch.arange(len(data.sighted))
    found = recalls(
        tool.model, data, images, tool.device, shortlist=settings.shortlist, progress=progress
    )
    return {
        "split": split or "all",
        "left_out": left_out,
        "images": len(images),
        "sentences": len(data.texts),
        "seconds": time.perf_counter() - begun,
        "shortlist": settings.shortlist if tool.model.contrast is not None else 0,
        **{f"{way}_recall": {f"R@{k}": x for k, x in some.items()} for way, some in found.items()},
    }


def evaluate_referring(
    tool: JointTool,
    *,
    split: str | None,
    settings: ReferringSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """How often the likeliest region shares half of the true box; and by chance."""
    read = read_phrases(settings, split, reading)
    data, truth, left_out = encoded(tool, settings, read, "phrases", reading)
    begun, right = time.perf_counter(), list[bool]()
    for images, texts, of in in_order(data):
        boxes = torch.stack([truth[text] for text in texts.tolist()])
        batch = data.batch(images, texts, of)._replace(asked={"boxes": boxes})
        right += points_right(tool.model, batch.to(tool.device)).tolist()
        progress(len(right), len(truth))
    choices = data.sighted.counts[data.image_of].clamp(min=1).float()
    return {
        "split": split or "all",
        "left_out": left_out,
        "phrases": len(right),
        "images": len(data.sighted),
        "seconds": time.perf_counter() - begun,
        "accuracy": sum(right) / len(right),
        "chance": float((1 / choices).mean()) if tool.wants_boxes else None,
    }


@torch.no_grad()
def evaluate_choices(
    tool: JointTool,
    *,
    split: str | None,
    settings: ChoosingSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """How often the likeliest sentence of a row is the right one; and by chance."""
    data, truth, left_out = encoded(
        tool, settings, read_choices(settings, split, reading), "choices"
    )
    begun, right = time.perf_counter(), list[bool]()
    for images, texts, of in in_order(data):
        batch = with_rows(data.batch(images, texts, of), [truth[text] for text in texts.tolist()])
        best = choice_scores(tool.model, batch.to(tool.device), settings.sees).argmax(dim=1).cpu()
        right += (best == batch.asked["right"]).tolist()
        progress(len(right), len(data.sizes))
    return {
        "split": split or "all",
        "left_out": left_out,
        "choices": len(right),
        "sentences": len(truth),
        "images": len(data.sighted),
        "seconds": time.perf_counter() - begun,
        "accuracy": sum(right) / len(right),
        "chance": float((1 / data.sizes).mean()),
    }


@torch.no_grad()
def evaluate_pretraining(
    tool: JointTool,
    *,
    split: str | None,
    settings: JointPretrainingSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Hidden words told with the image at hand, and captions told from those of the next image."""
    read = read_captions(settings, split, reading)
    data, _, left_out = encoded(tool, settings, read, "captions", reading)
    masking, model = fixed_hiding(tool.vocabulary, settings), tool.model
    begun, done, loss = time.perf_counter(), 0, 0.0
    hits, words, told = 0, 0, list[bool]()
    for images, texts, of in in_order(data):
        batch = hidden_batch(data, masking, images, texts, of).to(tool.device)
        alone = model.alone(batch.text, batch.types, seen_regions(model, batch.seen))
        found, labels = model.joined(alone, batch.of), batch.asked["labels"]
        there = labels != IGNORED
        hidden = found.words.index_select(0, batch.asked["at"][there])
        log_p = model.output(model.transformed(hidden)).float().log_softmax(dim=1)
        loss -= float(log_p.gather(1, labels[there][:, None]).sum())
        hits += int((log_p.argmax(dim=1) == labels[there]).sum())
        words += len(log_p)
        told += (model.fits(found) > 0).tolist()
        if len(images) > 1:
            other = model.joined(alone, (batch.of + 1) % len(images))
            told += (model.fits(other) <= 0).tolist()
        done += len(texts)
        progress(done, len(data.texts))
    return {
        "split": split or "all",
        "left_out": left_out,
        "captions": done,
        "images": len(data.sighted),
        "seconds": time.perf_counter() - begun,
        "hidden_words": words,
        **loss_figures(loss / max(1, words)),
        "word_accuracy": hits / max(1, words),
        "fit_accuracy": sum(told) / len(told),
    }

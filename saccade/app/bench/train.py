"""`saccade bench train`: an update of the weights, beside the same update by others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from saccade.app.bench.contenders import TrainContenders
from saccade.app.bench.floor import Machine, language_flops, training_flops
from saccade.app.bench.peers import hugging_face_gpt2, marian, nano_gpt, torch_transformer
from saccade.app.bench.race import Race, Tell, Workload
from saccade.app.bench.sentences import language_task, translation_task
from saccade.app.bench.settings import LENGTHS, TRANSFORMERS, BenchSettings, Entries, Size
from saccade.config import check_fraction, check_positive
from saccade.models.text.gpt import GptConfig

LANGUAGE: dict[Size, GptConfig] = {
    "small": GptConfig(vocabulary=8000, width=256, depth=4, heads=4, longest=256, dropout=0.0),
    # The vocabulary is GPT-2's, rounded up to a multiple of 64 as training scripts do.
    "base": GptConfig(vocabulary=50304, width=768, depth=12, heads=12, longest=1024, dropout=0.0),
}
WINDOWS: dict[Size, int] = {"small": 8, "base": 32}
SMOOTHING = 0.1
TRANSLATORS = ("torch", "torch-compiled", "torch-default", "huggingface", "huggingface-default")
WRITERS = ("nanogpt", "nanogpt-compiled", "huggingface-compiled")


@dataclass(frozen=True, kw_only=True)
class TrainBench(BenchSettings):
    """Measure an update of the weights: forward, backward and AdamW, in real tokens.

    Peers: torch.nn.Transformer (torch: without dropout on attention weights, as ours;
    torch-default: with it; torch-compiled), Hugging Face's Marian (huggingface: with our dropout
    inside the MLPs; huggingface-default: without), and for the language model a GPT-2 as small
    training scripts write it (nanogpt, nanogpt-compiled) and Hugging Face's
    (huggingface-compiled). All start from the same weights; their losses are compared.

    Args:
        task: which of the two; both by default.
        dropout: of the translators; the language models have none.
        window: words of a row of the language model's batch.
        compiled: also measure what torch.compile makes of each, which is slow to start.
    """

    known = (*TRANSLATORS, *WRITERS)

    task: Literal["both", "translation", "language"] = "both"
    dropout: float = 0.1
    window: int | None = None
    compiled: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "dropout")
        if self.window is not None:
            check_positive(self, "window")

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all(self._entries(machine), tell)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        for name, kind in (("translation", _translation), ("language", _language)):
            if self.task in ("both", name):
                job, contenders = kind(self, machine)
                wanted = [one for one in contenders if self.compiled or "compiled" not in one.name]
                yield job, wanted


def _translation(bench: TrainBench, machine: Machine) -> Entries:
    config = replace(bench.sized(TRANSFORMERS[bench.fitting]), dropout=bench.dropout)
    sentences = LENGTHS[bench.fitting].draw(bench, config.vocabulary)
    torch.manual_seed(bench.seed)
    model = config.build().to(bench.where)
    task = translation_task(sentences, vocabulary=config.vocabulary, smoothing=SMOOTHING)
    batch = sentences.padded().to(bench.where)
    fair = TrainContenders(bench, model, task, batch, sentences.padding)

    def torch_one(*, drop_attention: bool = False) -> nn.Module:
        one = torch_transformer.TorchTranslator(
            config, smoothing=SMOOTHING, drop_attention=drop_attention
        )
        torch_transformer.copy_weights(model, one)
        return one

    def hugging_face(*, hidden_dropout: bool = True) -> nn.Module:
        one = marian.make_marian(config, hidden_dropout=hidden_dropout)
        marian.copy_weights(model, one)
        return marian.MarianLoss(one, smoothing=SMOOTHING)

    flops = training_flops(config, sentences.source_lengths, sentences.target_lengths)
    job = Workload(
        title=f"one update of a translator: {len(sentences.sources)} sentences, "
        f"width {config.width}, {config.depth}+{config.depth} layers, "
        f"{config.vocabulary:,} words, dropout {config.dropout}, {bench.arithmetic}",
        tokens=sentences.tokens,
        floor_seconds=flops / machine.flops,
        against="torch-compiled" if bench.on_gpu and bench.compiled else "torch",
        agreement="Δ loss",
        repeats=bench.repeats,
    )
    return job, [
        *fair.ours(),
        fair.peer("torch", torch_one),
        fair.peer("torch-compiled", torch_one),
        fair.peer("torch-default", lambda: torch_one(drop_attention=True)),
        fair.peer("huggingface", hugging_face, marian.NEEDS),
        fair.peer("huggingface-default", lambda: hugging_face(hidden_dropout=False), marian.NEEDS),
    ]


def _language(bench: TrainBench, machine: Machine) -> Entries:
    config = bench.sized(LANGUAGE[bench.fitting])
    rows, window = bench.sentences or WINDOWS[bench.fitting], bench.window or config.longest
    config = replace(config, longest=window)
    torch.manual_seed(bench.seed)
    model = config.build().to(bench.where)
    task = language_task(rows=rows, window=window, vocabulary=config.vocabulary, seed=bench.seed)
    words = task.batch(0).words.padded()
    batch = tuple(x.to(bench.where) for x in (words, task.batch(0).labels.view_as(words)))
    fair = TrainContenders(bench, model, task, batch, 0.0)

    def nano() -> nn.Module:
        one = nano_gpt.NanoGpt(config)
        nano_gpt.copy_weights(model, one)
        return one

    def hugging_face() -> nn.Module:
        one = hugging_face_gpt2.Gpt2Loss(config)
        hugging_face_gpt2.copy_weights(model, one)
        return one

    job = Workload(
        title=f"one update of a language model: {rows} × {window:,} words, "
        f"width {config.width}, {config.depth} layers, {config.vocabulary:,} words known, "
        f"no dropout, {bench.arithmetic}",
        tokens=rows * window,
        floor_seconds=language_flops(config, rows, window) / machine.flops,
        against="nanogpt-compiled" if bench.compiled else "nanogpt",
        agreement="Δ loss",
        repeats=bench.repeats,
    )
    return job, [
        *fair.ours(),
        fair.peer("nanogpt", nano),
        fair.peer("nanogpt-compiled", nano),
        fair.peer("huggingface-compiled", hugging_face, hugging_face_gpt2.NEEDS),
    ]

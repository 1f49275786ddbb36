"""What a user of Saccade gets: the updates of `train` and the search of `predict`."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from saccade.app.bench.sentences import numbered
from saccade.app.bench.timing import Work
from saccade.blocks.inference.affine import Precision
from saccade.decode.engine import Decoding
from saccade.tasks.base import Task
from saccade.tasks.translation.translator import Translator
from saccade.train.distributed import World
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings

Texts = list[list[int]]


def updates(
    model: nn.Module,
    task: Task[Any],
    *,
    device: torch.device,
    precision: str,
    compiled: bool = False,
    count: int = 1,
) -> Work:
    """So many updates after which someone looks at the losses; fetching the batches included."""
    settings = TrainSettings(
        steps=1_000_000,
        learning_rate=1e-4,
        warmup=0,
        precision="bfloat16" if precision == "bf16" else "float32",
        batches="mixed",
        compile=compiled,
    )
    trainer = Trainer(copy.deepcopy(model), task, settings, World(0, 1, device))

    def work() -> None:
        for _ in range(count):
            trainer.advance()
        trainer.settle()

    return work


class _Exactly(Translator):
    """Ends nothing before `words` words; the weights see to it that nothing wants to."""

    def __init__(self, model: nn.Module, words: int) -> None:
        config: Any = model.config
        super().__init__(model, numbered(config.vocabulary))
        self.words = words

    def limits(self, lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        return torch.full_like(lengths, self.words)


def translations(
    model: nn.Module,
    sources: list[Int[Tensor, " _"]],
    *,
    beam: int,
    words: int,
    precision: Precision = "float32",
) -> Callable[[], Texts]:
    """The best translation of each source, all in one batch; tokens in, tokens out."""
    translator, how = _Exactly(model, words), Decoding(beam=beam, precision=precision)

    def work() -> Texts:
        found = translator._decode(sources, how, look=False)  # type: ignore[reportPrivateUsage]
        return [hypotheses[0].tokens for hypotheses in found]

    return work


@torch.no_grad()
def mean_loss(model: nn.Module, task: Task[Any], device: torch.device) -> float:
    """Per token, without dropout, in float32: what every peer's must be."""
    batch = task.batch(0).to(device)
    loss = task.loss(model.eval(), batch) / batch.tokens
    model.train()
    return loss.item()


def agreement(found: Texts, expected: Texts) -> float:
    """The share of sentences whose every word is the same."""
    return sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected)

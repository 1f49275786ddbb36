"""`saccade bench rnn`: an RNN with attention, beside a loop in Python over single words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from saccade.app.bench.floor import Machine, rnn_flops
from saccade.app.bench.ours import Texts, agreement, mean_loss, translations, updates
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.peers.step_by_step import StepByStep, copy_weights
from saccade.app.bench.race import SACCADE, Contender, Job, Race, Ready, choose, run_race
from saccade.app.bench.sentences import Sentences, translation_task
from saccade.app.bench.settings import LENGTHS, BenchSettings, Size
from saccade.blocks.inference.affine import Precision
from saccade.config import check_positive
from saccade.data.vocabulary import CONTROL
from saccade.models.text.rnn_attention import RnnAttention, RnnAttentionConfig

PEERS = ("loop",)
Kind = Literal["readout", "input"]
# The lectures' small model; and Bahdanau's, on a CPU as narrow as the other.
MODELS: dict[Size, dict[Kind, RnnAttentionConfig]] = {
    "small": {
        "readout": RnnAttentionConfig(dropout=0.0),
        "input": RnnAttentionConfig(cell="gru", context="input", dropout=0.0),
    },
    "base": {
        "readout": RnnAttentionConfig(dropout=0.0),
        "input": RnnAttentionConfig(cell="gru", width=1000, context="input", dropout=0.0),
    },
}


@dataclass(frozen=True, kw_only=True)
class RnnBench(BenchSettings):
    """Training and decoding of an RNN translator with additive attention, no dropout.

    Args:
        contexts: readout decodes a whole target at once while training; input (Bahdanau's) cannot.
        beams: how many hypotheses are kept while decoding; 1 is greedy.
        steps: words of every translation: the weights are such that none ends before.
    """

    contexts: tuple[Kind, ...] = ("readout", "input")
    beams: tuple[int, ...] = (1, 5)
    steps: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "steps")

    @property
    def known(self) -> tuple[str, ...]:
        return PEERS


def run_rnn_bench(
    bench: RnnBench, machine: Machine, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Race]:
    """For each use of the context a race in training, and one in decoding for each beam."""
    for context in bench.contexts:
        config = bench.sized(MODELS[bench.fitting][context])
        field = _Field(
            bench, machine, _model(config, bench), LENGTHS["small"].draw(bench, config.vocabulary)
        )
        decoding = (field.decoding(beam) for beam in bench.beams)
        for job, contenders in (field.training(), *decoding):
            chosen = choose(contenders, bench.peers)
            yield run_race(job, chosen, device=bench.where, seconds=bench.seconds, tell=tell)


@torch.no_grad()
def _model(config: RnnAttentionConfig, bench: RnnBench) -> RnnAttention:
    """Random weights, under which no sentence ends."""
    torch.manual_seed(bench.seed)
    model = config.build()
    model.readout.bias[: len(CONTROL)] = -100.0
    return model.to(bench.where)


@dataclass(frozen=True)
class _Field:
    """What all contenders of a race share."""

    bench: RnnBench
    machine: Machine
    model: RnnAttention
    sentences: Sentences

    def training(self) -> tuple[Job, list[Contender]]:
        device = self.bench.where
        how: dict[str, Any] = {
            "device": device,
            "precision": self.bench.arithmetic,
            "count": self.bench.repeats,
        }
        task = translation_task(self.sentences, vocabulary=self.model.config.vocabulary)
        loss = mean_loss(self.model, task, device)
        batch = self.sentences.padded().to(device)

        def ours() -> Ready:
            return Ready(updates(self.model, task, **how))

        def loop() -> Ready:
            theirs = self._loop()
            differs = abs(theirs(*batch).item() - loss)
            return Ready(training_steps(theirs, lambda: theirs(*batch), **how), differs)

        lengths = self.sentences.source_lengths, self.sentences.target_lengths
        flops = 3 * rnn_flops(self.model.config, *lengths)
        job = self._job("one update of", self.sentences.tokens, flops, "Δ loss", self.bench.repeats)
        padding = self.sentences.padding
        return job, [
            Contender(SACCADE, ours, padding=padding),
            Contender("loop", loop, padding=padding),
        ]

    def decoding(self, beam: int) -> tuple[Job, list[Contender]]:
        model, steps = self.model.eval(), self.bench.steps
        precision: Precision = "bfloat16" if self.bench.arithmetic == "bf16" else "float32"

        def search(precision: Precision) -> Callable[[], Texts]:
            inputs = self.sentences.inputs
            return translations(model, inputs, beam=beam, words=steps, precision=precision)

        text = search("float32")()
        loop = Contender("loop", lambda: self._decoding_loop(beam, text))
        count = len(self.sentences.sources)
        flops = beam * rnn_flops(model.config, self.sentences.source_lengths, [steps] * count)
        job = self._job(f"{steps} words decoded by", count * steps, flops, "same text")
        how = "greedily" if beam == 1 else f"with a beam of {beam}"
        job = replace(job, title=f"{job.title}, {how}, in {precision}")
        return job, [Contender(SACCADE, lambda: Ready(search(precision))), loop]

    def _decoding_loop(self, beam: int, text: Texts) -> Ready:
        """The text is compared in float32; in fewer bits random weights soon go other ways."""
        theirs, steps = self._loop().eval(), self.bench.steps
        source = self.sentences.padded().source.to(self.bench.where)

        def work() -> Tensor:
            if beam == 1:
                return theirs.translate(source, steps)
            return theirs.search(source, steps, beam)

        same = agreement(work().tolist(), text)
        # On a GPU torch packs a recurrence's bfloat16 weights anew at every call, float16 never.
        halves = torch.float16 if self.bench.on_gpu else torch.bfloat16
        theirs.to(halves if self.bench.arithmetic == "bf16" else torch.float32)
        return Ready(work, same)

    def _loop(self) -> StepByStep:
        theirs = StepByStep(self.model.config)
        copy_weights(self.model, theirs)
        return theirs.to(self.bench.where)

    def _job(self, what: str, tokens: int, flops: float, agreed: str, repeats: int = 1) -> Job:
        config = self.model.config
        return Job(
            title=f"{what} an RNN with attention in its {config.context}: "
            f"{len(self.sentences.sources)} sentences, {config.cell}, width {config.width}, "
            f"{config.vocabulary:,} words",
            tokens=tokens,
            floor_seconds=flops / self.machine.flops,
            against="loop",
            agreement=agreed,
            repeats=repeats,
        )

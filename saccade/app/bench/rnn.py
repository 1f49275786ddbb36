"""`saccade bench rnn`: an RNN with attention, beside a loop in Python over single words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from saccade.app.bench.floor import Machine, rnn_flops
from saccade.app.bench.ours import Texts, agreement, mean_loss, translations, updates
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.peers.step_by_step import StepByStep, copy_weights
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.sentences import SentencePairs, translation_task
from saccade.app.bench.settings import LENGTHS, BenchSettings, Entries, Size
from saccade.blocks.inference.affine import Precision
from saccade.config import check_positive
from saccade.data.tokens.vocabulary import CONTROL
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
    """Measure training and decoding of an RNN with attention beside a plain loop over words.

    Args:
        contexts: readout decodes a whole target at once while training; input (Bahdanau's) cannot.
        beams: how many hypotheses are kept while decoding; 1 is greedy.
        steps: words of every translation: the weights are such that none ends before.
    """

    known = PEERS

    contexts: tuple[Kind, ...] = ("readout", "input")
    beams: tuple[int, ...] = (1, 5)
    steps: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "steps")

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all(self._entries(machine), tell)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        """For each use of the context training, and decoding for each beam."""
        for context in self.contexts:
            config = self.sized(MODELS[self.fitting][context])
            sentences = LENGTHS["small"].draw(self, config.vocabulary)
            field = _RnnContenders(self, machine, _model(config, self), sentences)
            yield field.training()
            yield from map(field.decoding, self.beams)


@torch.no_grad()
def _model(config: RnnAttentionConfig, bench: RnnBench) -> RnnAttention:
    """Random weights, under which no sentence ends."""
    torch.manual_seed(bench.seed)
    model = config.build()
    model.readout.bias[: len(CONTROL)] = -100.0
    return model.to(bench.where)


@dataclass(frozen=True)
class _RnnContenders:
    """What all contenders of a race share."""

    bench: RnnBench
    machine: Machine
    model: RnnAttention
    sentences: SentencePairs

    def training(self) -> Entries:
        device = self.bench.where
        task = translation_task(self.sentences, vocabulary=self.model.config.vocabulary)
        loss = mean_loss(self.model, task, device)
        batch = self.sentences.padded().to(device)

        def ours() -> CheckedWork:
            return CheckedWork(updates(self.bench, self.model, task))

        def loop() -> CheckedWork:
            theirs = self._loop()
            differs = abs(theirs(*batch).item() - loss)
            return CheckedWork(training_steps(self.bench, theirs, lambda: theirs(*batch)), differs)

        lengths = self.sentences.source_lengths, self.sentences.target_lengths
        flops = 3 * rnn_flops(self.model.config, *lengths)
        job = self._job("one update of", self.sentences.tokens, flops, "Δ loss", self.bench.repeats)
        padding = self.sentences.padding
        return job, [
            Contender(SACCADE, ours, padding=padding),
            Contender("loop", loop, padding=padding),
        ]

    def decoding(self, beam: int) -> Entries:
        model, steps, precision = self.model.eval(), self.bench.steps, self.bench.inference

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
        return job, [Contender(SACCADE, lambda: CheckedWork(search(precision))), loop]

    def _decoding_loop(self, beam: int, text: Texts) -> CheckedWork:
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
        return CheckedWork(work, same)

    def _loop(self) -> StepByStep:
        theirs = StepByStep(self.model.config)
        copy_weights(self.model, theirs)
        return theirs.to(self.bench.where)

    def _job(self, what: str, tokens: int, flops: float, agreed: str, repeats: int = 1) -> Workload:
        config = self.model.config
        return Workload(
            title=f"{what} an RNN with attention in its {config.context}: "
            f"{len(self.sentences.sources)} sentences, {config.cell}, width {config.width}, "
            f"{config.vocabulary:,} words",
            tokens=tokens,
            floor_seconds=flops / self.machine.flops,
            against="loop",
            agreement=agreed,
            repeats=repeats,
        )

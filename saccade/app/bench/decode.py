"""`saccade bench decode`: translating, beside the same model in other engines, the same text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor, nn

from saccade.app.bench.floor import PRECISIONS, Machine, decoding_floor
from saccade.app.bench.ours import Texts, agreement, translations
from saccade.app.bench.peers import ctranslate, marian
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.sentences import SentencePairs, numbered, word
from saccade.app.bench.settings import LENGTHS, TRANSFORMERS, BenchSettings, Entries, Size
from saccade.blocks.inference.affine import Precision
from saccade.config import check_positive
from saccade.data.tokens.vocabulary import CONTROL
from saccade.models.text.transformer import Transformer, TransformerConfig

PEERS = ("huggingface", "ctranslate2", "ctranslate2-int8")
COUNTS: dict[Size, int] = {"small": 64, "base": 256}
STEPS: dict[Size, int] = {"small": 40, "base": 48}
WEIGHT_BYTES: dict[Precision, int] = {"float32": 4, "bfloat16": 2, "int8": 1}


@dataclass(frozen=True, kw_only=True)
class DecodeBench(BenchSettings):
    """Measure the translation of many sentences and of one, greedily and with a beam.

    Peers: Hugging Face's generate (huggingface) and on a CPU CTranslate2 (ctranslate2,
    ctranslate2-int8), with the same weights. Texts are compared with ours in float32; weights of
    eight bits may say something else, and these are random, so they soon do.

    Args:
        steps: words of every translation: the weights are such that none ends before.
        beams: widths of the search, one table each and for each number of sentences.
    """

    known = PEERS

    steps: int | None = None
    beams: tuple[int, ...] = (1, 5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is not None:
            check_positive(self, "steps")

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all(self._entries(machine), tell)

    def _entries(self, machine: Machine) -> Iterator[Entries]:
        """For each number of sentences and each beam."""
        config = replace(self.sized(TRANSFORMERS[self.fitting]), dropout=0.0)
        model = talkative(config, seed=self.seed).to(self.where)
        for count, beam in product((self.sentences or COUNTS[self.fitting], 1), self.beams):
            sentences = LENGTHS[self.fitting].draw(
                replace(self, sentences=count), config.vocabulary
            )
            steps = self.steps or STEPS[self.fitting]
            yield from _DecodeContenders(self, machine, model, sentences, beam, steps).entries()


@torch.no_grad()
def talkative(config: TransformerConfig, *, seed: int) -> Transformer:
    """Random weights under which no sentence ends and hardly a word is said twice.

    One coordinate says only "not a control token": all words have 0 there, control tokens −1, and
    the last norm always 40. So every engine runs as usual and none needs to forbid the end.
    Plain random weights say one word over and over, which tells little of a search. Here the last
    norm has random signs, or the word just read would be the likeliest next, as the output layer
    is the embedding; MLPs are strong and add nothing that all words share; attention is weak.
    """
    torch.manual_seed(seed)
    model = config.build().eval()
    words: Tensor = model.embedding.weight
    words[:, 0] = 0.0
    words[: len(CONTROL), 0] = -1.0
    last: Any = model.decoder[-1]
    norm: nn.LayerNorm = last.around_mlp.norm
    norm.weight.copy_(3.0 * torch.randn(config.width).sign())
    norm.weight[0], norm.bias[0] = 0.0, 40.0
    for name, weight in model.named_parameters():
        if name.endswith("narrow.weight"):
            weight.sub_(weight.mean(dim=1, keepdim=True)).mul_(3.0)
        if name.endswith("to_output.weight"):
            weight.mul_(0.3)
    return model


@dataclass(frozen=True)
class _DecodeContenders:
    """What all contenders of a race share."""

    bench: DecodeBench
    machine: Machine
    model: Transformer  # in float32
    sentences: SentencePairs
    beam: int
    steps: int

    def entries(self) -> Iterator[Entries]:
        """In the precision asked for; on a CPU also with weights of eight bits."""
        text = self._saccade("float32")()
        precision = self.bench.inference
        ours = Contender(SACCADE, lambda: CheckedWork(self._saccade(precision)))
        hugging_face = Contender("huggingface", lambda: self._hugging_face(text), marian.NEEDS)
        if self.bench.on_gpu:
            yield self._job(precision, "huggingface"), [ours, hugging_face]
            return
        floats = Contender(
            "ctranslate2", lambda: self._ctranslate2(text, "float32"), ctranslate.NEEDS
        )
        yield self._job(precision, "ctranslate2"), [ours, hugging_face, floats]
        yield (
            self._job("int8", "ctranslate2-int8"),
            [
                Contender(f"{SACCADE}-int8", lambda: self._saccade_int8(text)),
                Contender(
                    "ctranslate2-int8", lambda: self._ctranslate2(text, "int8"), ctranslate.NEEDS
                ),
            ],
        )

    def _job(self, precision: Precision, against: str) -> Workload:
        config, count = self.model.config, len(self.sentences.sources)
        how = "greedily" if self.beam == 1 else f"with a beam of {self.beam}"
        return Workload(
            title=f"{count} sentence{'s' * (count > 1)} translated {how} into {self.steps} words, "
            f"width {config.width}, {config.depth}+{config.depth} layers, "
            f"{config.vocabulary:,} words, {precision}",
            tokens=count * self.steps,
            floor_seconds=decoding_floor(
                config, count * self.beam, self.steps, self.machine, WEIGHT_BYTES[precision]
            ),
            against=against,
            agreement="same text",
        )

    def _saccade(self, precision: Precision) -> Callable[[], Texts]:
        return translations(
            self.model,
            self.sentences.inputs,
            beam=self.beam,
            words=self.steps,
            precision=precision,
        )

    def _saccade_int8(self, text: Texts) -> CheckedWork:
        work = self._saccade("int8")
        return CheckedWork(work, agreement(work(), text))

    def _hugging_face(self, text: Texts) -> CheckedWork:
        """The text is compared in float32; in fewer bits random weights soon go other ways."""
        with self.bench.where:
            model = marian.make_marian(self.model.config, hidden_dropout=False).eval()
        marian.copy_weights(self.model, model)
        source = self.sentences.padded().source.to(self.bench.where)

        def work() -> Tensor:
            return marian.generate(model, source, beam=self.beam, steps=self.steps)

        same = agreement(work().tolist(), text)
        model.to(PRECISIONS[self.bench.arithmetic])
        return CheckedWork(work, same)

    def _ctranslate2(self, text: Texts, precision: Literal["float32", "int8"]) -> CheckedWork:
        vocabulary = numbered(self.model.config.vocabulary)
        engine = ctranslate.CTranslator(self.model, vocabulary, precision)
        sources = [[word(token) for token in row.tolist()] for row in self.sentences.sources]

        def work() -> list[list[str]]:
            return engine.translate(sources, beam=self.beam, steps=self.steps)

        same = agreement([[int(one) for one in row] for row in work()], text)
        return CheckedWork(work, same)

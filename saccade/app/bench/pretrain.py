"""`saccade bench pretrain`: an update of a BERT that fills hidden words, beside theirs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from saccade.app.bench.contenders import TrainContenders
from saccade.app.bench.floor import Machine, masked_flops
from saccade.app.bench.peers import bert
from saccade.app.bench.race import Race, Tell, Workload
from saccade.app.bench.sentences import masked_task
from saccade.app.bench.settings import BenchSettings, Entries, Size
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.text.bert import BertConfig
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.masked.batch import MaskedBatch

BERTS: dict[Size, BertConfig] = {
    "small": BertConfig(vocabulary=8000, width=256, depth=4, heads=4, hidden=1024, longest=256),
    "base": BertConfig(),
}
SENTENCES: dict[Size, int] = {"small": 16, "base": 256}
SPECIAL = 2  # a start and an end


@dataclass(frozen=True, kw_only=True)
class PretrainBench(BenchSettings):
    """Measure an update of a BERT (masked language modelling), in real tokens.

    Peers: transformers' BertForMaskedLM (huggingface: without dropout on attention weights, as
    ours; huggingface-default: with it; huggingface-compiled). All have the same weights, and the
    same words of the same sentences are hidden; their losses are compared. The peers' batch is on
    the device and never changes; ours hides other words in every update.

    Args:
        dropout: of what sublayers add.
        shortest: tokens of the shortest sentence, start and end counted.
        longest: tokens of the longest.
        compiled: also measure what torch.compile makes of each, which is slow to start.
    """

    known = ("huggingface", "huggingface-compiled", "huggingface-default")

    dropout: float = 0.1
    shortest: int = 16
    longest: int = 128
    compiled: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "dropout")
        check_positive(self, "shortest", "longest")
        if not SPECIAL < self.shortest <= self.longest:
            found = f"shortest={self.shortest}, longest={self.longest}"
            raise ConfigError(f"{found}: must be over {SPECIAL}, and longest the larger")

    @property
    def config(self) -> BertConfig:
        """As long as the longest sentence at least."""
        config = self.sized(BERTS[self.fitting])
        longest = max(config.longest, self.longest)
        return replace(config, dropout=self.dropout, longest=longest)

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        return self.race_all([self._entry(machine)], tell)

    def _entry(self, machine: Machine) -> Entries:
        config, count = self.config, self.sentences or SENTENCES[self.fitting]
        lengths = self.shortest, self.longest
        task = masked_task(count, lengths=lengths, vocabulary=config.vocabulary, seed=self.seed)
        config = replace(config, vocabulary=len(task.vocabulary))
        torch.manual_seed(self.seed)
        model, batch = config.build().to(self.where), task.batch(0)
        read = batch.rows.lengths
        rectangle = tuple(x.to(self.where) for x in padded(batch))
        padding = 1 - int(read.sum()) / rectangle[0].numel()
        fair = TrainContenders(self, model, task, rectangle, padding)

        def hugging_face(attention_dropout: float = 0.0) -> bert.MaskedWordLoss:
            one = bert.make_bert("BertForMaskedLM", config, attention_dropout=attention_dropout)
            bert.copy_weights(model, one)
            return bert.MaskedWordLoss(one)

        flops = masked_flops(config, read.tolist(), batch.tokens)
        job = Workload(
            title=f"one update of a BERT: {count} sentences of {self.shortest} to {self.longest} "
            f"tokens, {batch.tokens:,} words hidden, width {config.width}, {config.depth} layers, "
            f"{config.vocabulary:,} words known, dropout {config.dropout}, {self.arithmetic}",
            tokens=int(read.sum()),
            floor_seconds=flops / machine.flops,
            against="huggingface-compiled" if self.compiled else "huggingface",
            agreement="Δ loss",
            repeats=self.repeats,
        )
        contenders = [
            *fair.ours(),
            fair.peer("huggingface", hugging_face, bert.NEEDS),
            fair.peer("huggingface-compiled", hugging_face, bert.NEEDS),
            fair.peer("huggingface-default", lambda: hugging_face(config.dropout), bert.NEEDS),
        ]
        return job, [one for one in contenders if self.compiled or "compiled" not in one.name]


def padded(batch: MaskedBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words, which of them are real, and the hidden ones (IGNORED elsewhere): rectangles."""
    rows = batch.rows
    labels = torch.full_like(rows.tokens, IGNORED).index_copy(0, batch.at, batch.labels)
    real = rows.rectangle(torch.ones_like(rows.tokens))
    return rows.padded(), real, rows.rectangle(labels).masked_fill(real == 0, IGNORED)

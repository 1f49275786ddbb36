"""`saccade bench finetune`: a classifier of texts, trained whole, beside Hugging Face's Trainer."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from saccade.app.bench.floor import Machine
from saccade.app.bench.peers import bert, trainer
from saccade.app.bench.race import SACCADE, Tell, check_peers, or_dash, why_absent
from saccade.app.bench.settings import RaceSettings
from saccade.app.bench.timing import held_bytes
from saccade.config import check_positive
from saccade.data.readers.labelled_texts.rows import TextColumns
from saccade.data.readers.report import counted
from saccade.errors import ConfigError, SaccadeError
from saccade.models import preset
from saccade.models.text.bert import Bert, BertConfig
from saccade.tasks.base import Deciding
from saccade.tasks.understanding.data import UnderstandingSettings, read_split, with_labels
from saccade.tasks.understanding.figures import held_out_figures
from saccade.tasks.understanding.task import Understanding
from saccade.train.recipe import Recipe
from saccade.train.run import make_task, train
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted, check_start, start

TRAINER = "trainer"
WARMUP = 0.1  # of all updates
FRESH_RATE, GIVEN_RATE = 1e-3, 3e-5


@dataclass(frozen=True, kw_only=True)
class FineTuneBench(RaceSettings):
    """Fine-tune a BERT to tell what is true of texts, whole trainings: seconds and score.

    The peer is Hugging Face's Trainer with its collator that pads each batch to its longest text
    (trainer), with the same weights, head included, the same tokens, epochs, rates and sentences to
    a batch. Both validate and save after each epoch and are told by their best one; reading and
    tokenizing are not timed. Each trains once, whatever --seconds says.

    Args:
        data: a folder of GLUE, or a file of texts and labels; lingua's without.
        task: as `saccade train bert-glue --task`.
        init: a run, or a folder of Hugging Face's, with the weights of a BERT; fresh ones without.
        epochs: passes over the data.
        batch: sentences to an update; ours packs as many on average.
        rate: the highest learning rate; 3e-5 with --init, 1e-3 without.
        longest: tokens of a text, the rest is cut.
        count: items of lingua to learn from.
    """

    known = (TRAINER,)

    data: str = ""
    task: str = TextColumns.task
    init: str = ""
    epochs: int = 3
    batch: int = 32
    rate: float | None = None
    longest: int = 128
    count: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "epochs", "batch", "longest", "count")
        check_peers(self.peers, self.known)

    def results(self, machine: Machine, tell: Tell) -> Iterator["FineTuned"]:
        tell(self._settings.announcement)
        begun = Beginning.of(self)
        ours = _ours(self, begun)
        tell(f"{SACCADE} done: it took {ours.seconds:.1f} s")
        rows, absent = [ours], dict[str, str]()
        try:
            check_peer(begun.config)
            theirs = _theirs(self, begun)
            rows = [replace(row, ratio=theirs.seconds / row.seconds) for row in (ours, theirs)]
        except SaccadeError as error:
            absent[TRAINER] = str(error)
        except Exception as error:  # it stops nobody
            absent[TRAINER] = why_absent(error)
        yield FineTuned(self._title(begun), begun.task.deciding, tuple(rows), absent)

    @property
    def _settings(self) -> UnderstandingSettings:
        return UnderstandingSettings(
            data=self.data, task=self.task, longest=self.longest, count=self.count, vocabulary=2000
        )

    @property
    def recipe(self) -> Recipe:
        """As `saccade train bert-glue` has it; how many tokens make a batch is not known yet."""
        plain = TrainSettings(
            steps=1_000_000,
            epochs=float(self.epochs),
            batches="mixed",
            learning_rate=self.rate or (GIVEN_RATE if self.init else FRESH_RATE),
            schedule="linear",
            warmup_share=WARMUP,
            beta2=0.999,
            validate_every=0,
            seed=self.seed,
            device=str(self.where),
            precision="bfloat16" if self.arithmetic == "bf16" else "float32",
        )
        whole = Recipe(
            about="bench",
            system="S9",
            lecture="",
            model=preset("bert-nano"),
            task=self._settings,
            train=plain,
            init=self.init,
        )
        return adopted(whole.located(), Path("no-run-yet"))

    def _title(self, begun: "Beginning") -> str:
        config, texts = begun.config, len(begun.train)
        return (
            f"{counted(self.epochs, 'epoch')} of fine-tuning on {texts:,} texts of "
            f"{begun.recipe.task.data_name}, {self.batch} to a batch: width {config.width}, "
            f"{counted(config.depth, 'layer')}, {self.arithmetic}"
        )


class Beginning(NamedTuple):
    """What both begin with: the weights, the tokenizer, and tokens with what is true of each."""

    recipe: Recipe
    task: Understanding
    model: Bert
    train: list[trainer.Item]
    valid: list[trainer.Item]

    @property
    def config(self) -> BertConfig:
        return self.model.config

    @classmethod
    def of(cls, bench: FineTuneBench) -> "Beginning":
        recipe = bench.recipe
        task = make_task(recipe, begin=check_start(recipe) if recipe.init else None)
        assert isinstance(task, Understanding)
        if task.labels.kind not in ("classes", "number"):
            raise ConfigError(f"the bench tells classes or numbers, not {task.labels.kind}")
        recipe = replace(recipe, model=task.fit(recipe.model))
        torch.manual_seed(recipe.train.seed)  # as `train` does, so that the heads are the same
        model = recipe.model.build()
        assert isinstance(model, Bert), "understanding refuses others"
        start(model, recipe, task)
        longest = min(bench.longest, model.config.longest)
        made = [_items(task, recipe.task, split, longest) for split in ("train", "valid")]
        lengths = [len(item["input_ids"]) for item in made[0]]
        budget = max(*lengths, round(bench.batch * sum(lengths) / len(lengths)))
        recipe = replace(recipe, train=replace(recipe.train, batch_tokens=budget))
        return cls(recipe, task, model, *made)


def _items(task: Understanding, settings: Any, split: str, longest: int) -> list[trainer.Item]:
    read = with_labels(read_split(settings, split, None if split == "train" else task.labels))
    readings = task.vocabulary.readings([row.texts for row in read.rows], longest=longest)
    return [
        {"input_ids": one.tokens, "token_type_ids": one.types, "labels": target}
        for one, target in zip(readings, task.labels.targets(read.rows, split))
    ]


@dataclass(frozen=True)
class Tuning:
    """How one did. `ratio` is how many times as fast it was as the peer."""

    name: str
    seconds: float
    texts_per_second: float
    memory_mib: float | None
    figures: dict[str, float]
    ratio: float | None = None


def _ours(bench: FineTuneBench, begun: Beginning) -> Tuning:
    with TemporaryDirectory() as folder, _Memory(bench.where) as memory:
        outcome = train(begun.recipe, Path(folder, "run"), lambda event: None)
    return _tuning(SACCADE, outcome.training, outcome.best, bench, begun, memory)


def check_peer(config: BertConfig) -> None:
    """Refuse what the peer cannot train, or computes otherwise."""
    for package in (bert.NEEDS, trainer.NEEDS):
        if find_spec(package) is None:
            raise ConfigError(f"{package} is not installed")
    plain = replace(config, types=2, first_position=0, pooling="tanh", embedding_width=None)
    if config != plain:
        raise ConfigError("its relatives are not measured, only BERT itself")


def _theirs(bench: FineTuneBench, begun: Beginning) -> Tuning:
    config, how, labels = begun.config, begun.recipe.train, begun.task.labels
    with _Memory(bench.where) as memory:
        model = bert.make_bert("BertForSequenceClassification", config)
        bert.copy_weights(begun.model, model)
        targets = [item["labels"] for item in begun.valid]
        updates = bench.epochs * -(-len(begun.train) // bench.batch)
        settings = trainer.TrainerSettings(
            device=bench.where,
            epochs=float(bench.epochs),
            batch=bench.batch,
            learning_rate=how.learning_rate,
            warmup=round(how.warmup_share * updates),
            weight_decay=how.weight_decay,
            beta2=how.beta2,
            mixed=bench.arithmetic == "bf16",
            seed=bench.seed,
        )
        seconds, figures = trainer.fine_tuned(
            model,
            begun.task.vocabulary,
            begun.train,
            begun.valid,
            how=settings,
            deciding=begun.task.deciding,
            figures=lambda logits: held_out_figures(labels, list(torch.tensor(logits)), targets),
        )
    return _tuning(TRAINER, seconds, figures, bench, begun, memory)


def _tuning(
    name: str,
    seconds: float,
    figures: dict[str, float],
    bench: FineTuneBench,
    begun: Beginning,
    memory: "_Memory",
) -> Tuning:
    told = {name: figures[name] for name in (begun.task.deciding.figure, "loss")}
    return Tuning(name, seconds, bench.epochs * len(begun.train) / seconds, memory.mib, told)


class _Memory:
    """The most that is held within a `with`, beside what was there before."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.before = device, 0
        self.mib: float | None = None

    def __enter__(self) -> "_Memory":
        self.before = held_bytes(self.device) or 0
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        return self

    def __exit__(self, *error: object) -> None:
        if self.device.type == "cuda":
            self.mib = (torch.cuda.max_memory_allocated() - self.before) / 2**20


@dataclass(frozen=True)
class FineTuned:
    """Trainings beside one another, and why some were not."""

    title: str
    deciding: Deciding
    rows: tuple[Tuning, ...]
    absent: dict[str, str]

    def heading(self) -> str:
        return f"{self.title}; × is to {TRAINER}"

    def columns(self) -> dict[str, list[str]]:
        rows, figure = self.rows, self.deciding.figure
        return {
            "": [row.name for row in rows],
            "s": [f"{row.seconds:,.1f}" for row in rows],
            "texts/s": [f"{row.texts_per_second:,.0f}" for row in rows],
            "×": [or_dash(row.ratio, ".2f") for row in rows],
            "MiB": [or_dash(row.memory_mib, ",.0f") for row in rows],
            self.deciding.label: [f"{row.figures[figure]:.4f}" for row in rows],
            "loss": [f"{row.figures['loss']:.4f}" for row in rows],
        }

    def remarks(self) -> list[str]:
        return [f"not measured: {peer} ({reason})" for peer, reason in self.absent.items()]

    def table(self) -> dict[str, Any]:
        return asdict(self) | {"deciding": self.deciding._asdict()}

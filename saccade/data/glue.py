"""GLUE's tasks: which columns hold what, how labels are spelt, what is measured (Wang et al. 2019).

arXiv:1804.07461. Columns, labels and files are those of the official archive; the names that
Hugging Face's copies have for them come second.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from saccade.errors import ConfigError

USUAL_SPLITS = MappingProxyType({"train": ("train",), "valid": ("dev",), "test": ("test",)})
INDEX = ("index", "id", "idx")  # columns that number the rows for the leaderboard
SCORES = (0.0, 5.0)  # the least and the most of STS-B


class GlueTask(NamedTuple):
    """One task.

    Args:
        name: as the leaderboard has it.
        texts: the columns of the texts; the first alternative that a file has is taken.
        label: the column of the label, likewise.
        labels: as the files spell them, in the order of their numbers; none where it is a score.
        meanings: the same in words.
        figures: what the leaderboard measures.
        deciding: the one of them by which weights are chosen.
        submissions: the leaderboard's file for each split that it asks for.
        splits: the files of each split, by what stands before their ending.
        header: the first line by which a file is known; empty where others could have the same.
        positive: the label whose F1 is measured.
        ragged: rows with too few columns are passed over and texts may be empty, for the official
            file has such.
        asks: the task whose models it is for, where it has nothing to learn from.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    label: tuple[str, ...]
    labels: tuple[str, ...]
    meanings: tuple[str, ...]
    figures: tuple[str, ...]
    deciding: str
    submissions: Mapping[str, str]
    splits: Mapping[str, tuple[str, ...]] = USUAL_SPLITS
    header: tuple[str, ...] = ()
    positive: str = ""
    ragged: bool = False
    asks: str = ""

    def label_of(self, said: str) -> str | None:
        """A label as the files spell it, by that spelling, its meaning or its number; else None."""
        if said in self.labels:
            return said
        if said in self.meanings:
            return self.labels[self.meanings.index(said)]
        numbers = [str(number) for number in range(len(self.labels))]
        return self.labels[numbers.index(said)] if said in numbers else None


_MATCHED = ("index", "promptID", "pairID", "genre", "sentence1_binary_parse")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")
_PAIR = ("sentence1", "sentence2")

GLUE: Mapping[str, GlueTask] = MappingProxyType(
    {
        task.name: task
        for task in (
            GlueTask(
                name="CoLA",
                texts=(("sentence",),),
                label=("label",),
                labels=("0", "1"),
                meanings=("unacceptable", "acceptable"),
                figures=("matthews",),
                deciding="matthews",
                submissions={"test": "CoLA.tsv"},
                splits=MappingProxyType(
                    {
                        "train": ("train", "in_domain_train"),
                        "valid": ("dev", "in_domain_dev"),
                        "test": ("test",),
                    }
                ),
            ),
            GlueTask(
                name="SST-2",
                texts=(("sentence",),),
                label=("label",),
                labels=("0", "1"),
                meanings=("negative", "positive"),
                figures=("accuracy",),
                deciding="accuracy",
                submissions={"test": "SST-2.tsv"},
            ),
            GlueTask(
                name="MRPC",
                texts=(("#1 String", "#2 String"), _PAIR),
                label=("Quality", "label"),
                labels=("0", "1"),
                meanings=("not_equivalent", "equivalent"),
                figures=("f1", "accuracy"),
                deciding="f1",
                submissions={"test": "MRPC.tsv"},
                header=("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
                positive="1",
            ),
            GlueTask(
                name="STS-B",
                texts=(_PAIR,),
                label=("score", "label"),
                labels=(),
                meanings=(),
                figures=("pearson", "spearman"),
                deciding="spearman",
                submissions={"test": "STS-B.tsv"},
                header=("index", "genre", "filename", "year", "old_index", "source1", "source2"),
            ),
            GlueTask(
                name="QQP",
                texts=(("question1", "question2"),),
                label=("is_duplicate", "label"),
                labels=("0", "1"),
                meanings=("not_duplicate", "duplicate"),
                figures=("f1", "accuracy"),
                deciding="f1",
                submissions={"test": "QQP.tsv"},
                header=("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
                positive="1",
                ragged=True,
            ),
            GlueTask(
                name="MNLI",
                texts=(_PAIR, ("premise", "hypothesis")),
                label=("gold_label", "label"),
                labels=_INFERENCE,
                meanings=_INFERENCE,
                figures=("accuracy",),
                deciding="accuracy",
                submissions={"test": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
                splits=MappingProxyType(
                    {
                        "train": ("train", "multinli_1.0_train"),
                        "valid": (
                            *("dev_matched", "validation_matched"),
                            "multinli_1.0_dev_matched",
                        ),
                        "valid_mismatched": (
                            *("dev_mismatched", "validation_mismatched"),
                            "multinli_1.0_dev_mismatched",
                        ),
                        "test": ("test_matched",),
                        "test_mismatched": ("test_mismatched",),
                    }
                ),
                header=_MATCHED,
            ),
            GlueTask(
                name="QNLI",
                texts=(("question", "sentence"),),
                label=("label",),
                labels=_ENTAILMENT,
                meanings=_ENTAILMENT,
                figures=("accuracy",),
                deciding="accuracy",
                submissions={"test": "QNLI.tsv"},
                header=("index", "question", "sentence", "label"),
            ),
            GlueTask(
                name="RTE",
                texts=(_PAIR,),
                label=("label",),
                labels=_ENTAILMENT,
                meanings=_ENTAILMENT,
                figures=("accuracy",),
                deciding="accuracy",
                submissions={"test": "RTE.tsv"},
            ),
            GlueTask(
                name="WNLI",
                texts=(_PAIR,),
                label=("label",),
                labels=("0", "1"),
                meanings=("not_entailment", "entailment"),
                figures=("accuracy",),
                deciding="accuracy",
                submissions={"test": "WNLI.tsv"},
            ),
            GlueTask(
                name="AX",
                texts=(_PAIR, ("premise", "hypothesis")),
                label=("label",),
                labels=_INFERENCE,
                meanings=_INFERENCE,
                figures=("matthews",),
                deciding="matthews",
                submissions={"test": "AX.tsv"},
                splits=MappingProxyType({"test": ("diagnostic", "AX", "ax", "test")}),
                asks="MNLI",
            ),
        )
    }
)
NOT_COUNTED = frozenset({"AX"})  # in the average
_ALIASES = {"diagnostic": "AX", "glue-diagnostic": "AX", "diagnostic-full": "AX"}


def known_task(name: str) -> GlueTask | None:
    """The task of this name, however it is spelt: SST-2, sst2, sst_2; None if there is none."""
    small = {_small(task): GLUE[task] for task in GLUE}
    return small.get(_small(_ALIASES.get(name.lower(), name)))


def glue_task(name: str) -> GlueTask:
    """The same, where there must be one."""
    task = known_task(name)
    if task is None:
        raise ConfigError(f"no task {name!r} in GLUE; it has {', '.join(GLUE)}")
    return task


def _small(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")

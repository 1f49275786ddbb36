"""Small files in the forms of GLUE's archive, with sentences of our own."""

from collections.abc import Sequence
from pathlib import Path

PARSES = ("( a )", "( b )", "(ROOT a)", "(ROOT b)")
MARK = "\ufeff"


def lines(*rows: Sequence[str], end: str = "\n") -> str:
    return "".join("\t".join(row) + end for row in rows)


def _mnli(labels: int) -> list[tuple[str, ...]]:
    head = ("index", "promptID", "pairID", "genre", "sentence1_binary_parse")
    head += ("sentence2_binary_parse", "sentence1_parse", "sentence2_parse")
    head += ("sentence1", "sentence2")
    said = tuple(f"label{number}" for number in range(1, labels + 1))
    rows = [(*head, *said, *(("gold_label",) if labels else ()))]
    for number, gold in enumerate(("neutral", "entailment", "-", "contradiction")):
        about = (str(number), "1", f"{number}n", "fiction", *PARSES)
        texts = (f'A "cat" sleeps {number}.', "An animal rests.")
        rows.append((*about, *texts, *(("neutral",) * labels), *((gold,) if labels else ())))
    return rows


QQP = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
STS = ("index", "genre", "filename", "year", "old_index", "source1", "source2")
ABOUT = ("main", "made", "2024", "0001", "none", "none")
PAIR = ("sentence1", "sentence2")

FILES: dict[str, dict[str, str]] = {
    "CoLA": {
        "train.tsv": lines(
            ("gj04", "1", "", 'The "cat" sleeps.'), ("gj04", "0", "*", "Cat the sleeps.")
        ),
        "dev.tsv": lines(("gj04", "1", "", "We eat.")),
        "test.tsv": lines(("index", "sentence"), ("0", "We slept."), ("1", "Slept we have.")),
    },
    "SST-2": {
        "train.tsv": lines(("sentence", "label"), ("a fine film ", "1"), ('so "dull" ', "0")),
        "dev.tsv": lines(("sentence", "label"), ("a bore ", "0")),
        "test.tsv": lines(("index", "sentence"), ("0", "not bad"), ("1", "not good")),
    },
    "MRPC": {
        "train.tsv": MARK
        + lines(
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("1", "11", "12", 'He said " yes .', "Yes , he said ."),
            ("0", "13", "14", "He said no .", '" No one spoke .'),
            end="\r\n",
        ),
        "dev.tsv": MARK
        + lines(
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("1", "15", "16", "It rains .", "There is rain ."),
        ),
        "test.tsv": MARK
        + lines(
            ("index", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("0", "17", "18", "It snows .", "There is snow ."),
        ),
        "dev_ids.tsv": "15\t16\n",
        "msr_paraphrase_train.txt": "no table\n",
    },
    "STS-B": {
        "train.tsv": lines(
            (*STS, *PAIR, "score"),
            ("0", *ABOUT, "A dog runs.", "A dog is running.", "5.000"),
            ("1", *ABOUT, "A dog runs.", "It rains.", "0.250"),
        ),
        "dev.tsv": lines((*STS, *PAIR, "score"), ("7", *ABOUT, "We eat.", "We ate.", "4")),
        "test.tsv": lines((*STS, *PAIR), ("3", *ABOUT, "We sing.", "They sang.")),
    },
    "QQP": {
        "train.tsv": lines(
            QQP,
            ("1", "2", "3", "Who am I?", "Who is I?", "1"),
            ("4", "5", "6", "Why is this", ""),
            ("broken?", "Why?", "0"),
            (" ",),
            ("7", "8", "9", "Why not?", "", "0"),
        ),
        "dev.tsv": lines(QQP, ("1", "2", "3", "Where?", "When?", "0")),
        "test.tsv": lines(
            ("id", "question1", "question2"), ("0", "How?", 'How "so"?'), ("1", "What?", "Who?")
        ),
    },
    "MNLI": {
        "train.tsv": lines(*_mnli(1)),
        "dev_matched.tsv": lines(*_mnli(5)),
        "dev_mismatched.tsv": lines(*_mnli(5)[:3]),
        "test_matched.tsv": lines(*_mnli(0)),
        "test_mismatched.tsv": lines(*_mnli(0)[:2]),
    },
    "QNLI": {
        "train.tsv": lines(
            ("index", "question", "sentence", "label"),
            ("0", "Who?", "A man did.", "entailment"),
            ("1", "Who?", "It rains.", "not_entailment"),
        ),
        "dev.tsv": lines(
            ("index", "question", "sentence", "label"), ("0", "Why?", "It rains.", "entailment")
        ),
        "test.tsv": lines(("index", "question", "sentence"), ("0", "When?", "In May.")),
    },
    "RTE": {
        "train.tsv": lines(
            ("index", *PAIR, "label"),
            ("0", "No man is an island.", "Men are no islands.", "entailment"),
            ("1", "It rains.", "It snows.", "not_entailment"),
        ),
        "dev.tsv": lines(("index", *PAIR, "label"), ("0", "It rains.", "Rain.", "entailment")),
        "test.tsv": lines(("index", *PAIR), ("0", "It snows.", "Snow.")),
    },
    "WNLI": {
        "train.tsv": lines(
            ("index", *PAIR, "label"),
            ("0", "I put it there, it fell.", "It fell.", "1"),
            ("1", "I put it there, it fell.", "There fell.", "0"),
        ),
        "dev.tsv": lines(("index", *PAIR, "label"), ("0", "He saw her.", "She saw.", "0")),
        "test.tsv": lines(("index", *PAIR), ("0", "He saw her.", "He saw.")),
    },
    "AX": {"diagnostic.tsv": lines(("index", *PAIR), ("0", "All cats.", "No cats."))},
}


def glue_folder(above: Path, task: str, name: str = "") -> Path:
    """The folder of a task, under its own name or another."""
    folder = above / (name or task)
    folder.mkdir()
    for file, text in FILES[task].items():
        (folder / file).write_bytes(text.encode())
    return folder

"""Which file stems mean which split: ptb.train is train, dev is valid, test_2016 is test."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saccade.data.readers.report import listed
from saccade.errors import DataError

SPLITS = {
    "train": ("train",),
    "valid": ("valid", "val", "dev", "validation"),
    "test": ("test",),
}
LEARNT_FROM = ("train", "valid")
SHARD = re.compile(r"-\d+-of-\d+(-[0-9a-f]+)?$")  # train-00000-of-00002.parquet
_ALIASES = {"training": "train", "testing": "test", "evaluation": "valid", "eval": "valid"}
_DIGITS = re.compile(r"([0-9]+)")
_LANGUAGES = re.compile(r"\.[a-z]{2}-[a-z]{2}$")  # train.en-de, as fairseq has it
_SETS = {  # of IWSLT and WMT: train.tags.de-en, IWSLT14.TED.tst2010.de-en, newstest2014-deen
    "train": re.compile(r"^train\.tags\."),
    "valid": re.compile(r"(^|\.)(news)?dev\d{4}($|[.-])"),
    "test": re.compile(r"(^|\.)(news)?te?st\d{4}($|[.-])"),
}
_TEST = re.compile(r"test(?![a-z])")  # test_2016 and test2, not testimonials


def split_stem(name: str) -> str:
    """What a name of a split is in small letters, and in the usual words."""
    small = name.strip().lower()
    return _ALIASES.get(small, small)


def fitting_stems(split: str, stems: Iterable[str]) -> list[str]:
    """The stems that fit a split best: its very name, a usual name, a usual tail, then test*.

    Languages behind a name are no part of it: train.en-de is train.
    """
    every = sorted(set(stems))
    if split in every:
        return [split]
    usual = next((names for names in SPLITS.values() if split in names), ())
    tails = tuple(mark + name for mark in "._-" for name in usual)
    named = [stem for stem in every if stem in usual]
    named = named or [stem for stem in every if _LANGUAGES.sub("", stem) in usual]
    tailed = [stem for stem in every if _LANGUAGES.sub("", stem).endswith(tails)]
    tested = [stem for stem in every if split == "test" and _TEST.match(stem)]
    if named or tailed or tested or not usual:
        return named or tailed or tested
    sets = next(name for name, names in SPLITS.items() if names == usual)
    return [stem for stem in every if _SETS[sets].search(stem)]


def one_stem(data: Path, split: str, stems: Iterable[str]) -> list[str]:
    """The stem that fits a split, or none; where several do, the user must say which."""
    fitting = fitting_stems(split, stems)
    if len(fitting) > 1:
        way = f"pass the one you mean as the split, such as {fitting[0]!r}"
        if split in LEARNT_FROM:
            way = f"to train, call the one you mean {split!r}; to score, {way}"
        raise DataError(f"{data} has several files for {split!r}: {listed(fitting)}; {way}")
    return fitting


def natural(label: str) -> tuple[list[Any], str]:
    """A key by which 9 comes before 10."""
    parts: list[Any] = _DIGITS.split(label)  # texts at even places, digits at odd ones
    numbers = [digits.lstrip("0") for digits in parts[1::2]]
    parts[1::2] = [(len(digits), digits) for digits in numbers]
    return parts, label

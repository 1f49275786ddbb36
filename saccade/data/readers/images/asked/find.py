"""Where a folder, archive or file has rows about images, by what each part is named after.

train.jsonl, valid.jsonl, test.jsonl        also train_questions.jsonl, annotations/train.csv,
train/metadata.jsonl                        and parts such as train-00000-of-00002.parquet
v2_OpenEnded_mscoco_train2014_questions.json, train_balanced_questions.json, Annotations/train.json
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.data.readers.images.asked.documents import is_answers
from saccade.data.readers.images.asked.forms import ASKED_FORMS, AskedForm
from saccade.data.readers.images.asked.tables import TABLES
from saccade.data.readers.images.named import holds_images
from saccade.data.readers.images.source import (
    BESIDE_IMAGES,
    TableFile,
    TableSource,
    single_source,
    table_file,
    table_source,
)
from saccade.data.readers.images.split_folders import splits_among
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SHARD, SPLITS, fitting_stems, split_stem
from saccade.errors import DataError
from saccade.printable import printable

WHOLE = ""  # the name of what is named after no split
ENDINGS = ", ".join(f".{form}" for form in TABLES)
_SAID = ("metadata", "annotations", "balanced")
_BELOW = (*BESIDE_IMAGES, "data")
_YEAR = re.compile(r"(?<=[a-z])_?\d{4}$")
_NOT_ASKED = ("captions", "instances", "person_keypoints", "panoptic", "stuff", "image_info")

Parts = dict[str, list[TableSource]]


def find_asked(data: Path, form: AskedForm[Any]) -> Parts:
    """All parts of the data, by what they are named after; WHOLE is one that is all train."""
    single = not holds_images(data)
    if single and table_file(data.name, "", "").form in TABLES:
        return {WHOLE: [single_source(data)]}
    if single and data.exists():
        raise DataError(
            f"{printable(data)}: {form.name} are read from a folder, .tar, .zip or {ENDINGS} file; "
            "give one"
        )
    tree, top = tree_of(data)
    base = top
    while not (found := _parts(tree, base, form)):
        folders = tree.folders(base)
        if len(folders) != 1:
            held = listed([*tree.folders(top), *tree.files(top)]) or "nothing"
            _refuse_pickles(data, list(dict.fromkeys([*tree.files(top), *tree.files(base)])))
            raise DataError(
                f"{printable(data)} has no {form.name}: no {ENDINGS} file; it holds {held}"
            )
        base = join(base, folders[0])
    return found


def _refuse_pickles(data: Path, files: list[str]) -> None:
    """Of RefCOCO's form: its phrases are given out as pickles."""
    if pickles := [name for name in files if name.lower().endswith((".p", ".pkl", ".pickle"))]:
        raise DataError(
            f"{printable(data)} has {listed(pickles)}, a pickle, which may run code when it is "
            "opened, so it is not read; write train.jsonl from it once, as docs/data.md shows"
        )


def _parts(tree: Tree, base: str, form: AskedForm[Any]) -> Parts:
    every = _tables(tree, base, form)
    named = {entry.stem for entry in every if _named_after_split(entry.stem)}
    below = {
        stem: _tables(tree, join(base, name), form)
        for stem, name in splits_among(tree.folders(base)).items()
    }
    folders = {stem: entries for stem, entries in below.items() if entries}
    if named and (fitting_stems("train", named) or not folders):
        parts = {stem: [one for one in every if one.stem == stem] for stem in sorted(named)}
        return {stem: _sources(tree, mine, whole=False) for stem, mine in parts.items()}
    if folders:
        return {stem: _sources(tree, mine, whole=False) for stem, mine in folders.items()}
    return {WHOLE: _sources(tree, every, whole=True)} if every else {}


def _tables(tree: Tree, base: str, form: AskedForm[Any]) -> list[TableFile]:
    """The files of a folder that may hold this form, by what they are named after."""
    others = {word for other in ASKED_FORMS if other is not form for word in other.words}
    tail = re.compile(rf"[._-]?({'|'.join((*form.words, *_SAID))})$")
    found: list[TableFile] = []
    for below in ("", *(name for name in tree.folders(base) if name.lower() in _BELOW)):
        for name in tree.files(join(base, below)):
            entry = table_file(name, base, join(base, below, name))
            stem = SHARD.sub("", entry.stem.lower())
            if entry.form not in TABLES or others & set(re.split(r"[._-]", stem)):
                continue
            bare = tail.sub("", tail.sub("", stem)) or stem
            if entry.form == "json":
                bare = _YEAR.sub("", bare).replace("test-dev", "testdev")
                if not _may_ask(name, bare, form):
                    continue
            found.append(replace(entry, stem=split_stem(bare)))
    return found


def _may_ask(name: str, stem: str, form: AskedForm[Any]) -> bool:
    """Whether a JSON file may hold this form, by its name: others leave JSON about, too."""
    small = name.lower()
    said = _named_after_split(stem) or any(word in small for word in form.words)
    return said and not small.startswith(_NOT_ASKED) and not is_answers(name)


def _named_after_split(stem: str) -> bool:
    return any(fitting_stems(split, [stem]) for split in SPLITS)


def _sources(tree: Tree, entries: list[TableFile], *, whole: bool) -> list[TableSource]:
    """One file, or the parts of one."""
    if len(entries) > 1 and not all(SHARD.search(Path(entry.name).stem) for entry in entries):
        names = listed([entry.name for entry in entries])
        what = ", named after no split" if whole else " for one split"
        raise DataError(
            f"{printable(tree.path)} has {names}{what}; keep one of them, or give one file"
        )
    return [table_source(tree, entry, whole=whole) for entry in entries]

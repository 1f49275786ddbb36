"""A folder for each class, and a text in each file of it: train/pos/0_9.txt, as aclImdb has it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from saccade.data.readers.labelled_texts.rows import LabelledText
from saccade.data.readers.report import Problem
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.find import NamedFile
from saccade.data.readers.text.plain import whole_text

FORM = "folders"
UNLABELLED = ("unsup",)  # in aclImdb: texts of which nobody has said what they are


@dataclass(frozen=True)
class TextFolders:
    """The classes of a split."""

    file: NamedFile
    tagged: bool = field(default=False, init=False)
    passed_over: Counter[str] = field(default_factory=Counter[str], init=False)

    def rows(self) -> Iterator[LabelledText | Problem]:
        """Class by class, each by the names of its files; a text is put on one line."""
        for folder in _classes(self.file.path):
            for path in sorted(folder.glob("*.txt")):
                for text in whole_text(path):
                    if isinstance(text, Problem):
                        yield text
                    elif words := text.split():
                        yield LabelledText((" ".join(words),), folder.name, where=str(path))
                    else:
                        yield Problem(str(path), 1, "empty: no text in it")


def class_folders(data: Path) -> dict[str, list[NamedFile]]:
    """The splits that have folders of classes; all is train where these lie right in the data."""
    usual = {name for names in SPLITS.values() for name in names}
    found = {path.name: path for path in _folders(data) if path.name in usual and _classes(path)}
    if not found and len(_classes(data)) > 1:
        found = {"train": data}
    return {split: [NamedFile(path, split, FORM)] for split, path in found.items()}


def _classes(folder: Path) -> list[Path]:
    every = (path for path in _folders(folder) if path.name not in UNLABELLED)
    return [path for path in every if any(path.glob("*.txt"))]


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")

"""Folders that `save_to_disk` of Hugging Face `datasets` wrote, read without that package.

The files of a dataset are named in its state.json; several splits are folders below one that has a
dataset_dict.json.
"""

from pathlib import Path
from typing import Any

from saccade.data.readers.images.tree import Folder, Tree, inner, join
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import document
from saccade.data.readers.text.records import fields_of, json_value
from saccade.errors import DataError
from saccade.printable import printable

STATE = "state.json"
SPLITS_OF = "dataset_dict.json"


def saved_folders(tree: Tree, base: str) -> list[str]:
    """The folders that hold a dataset: this one, or one for each split; none if it was not saved.

    Links to nowhere, and whatever else lies there, are passed over.
    """
    files = tree.files(base)
    if STATE in files:
        return [base]
    if SPLITS_OF not in files:
        return []
    below = [join(base, name) for name in tree.folders(base)]
    return [folder for folder in below if STATE in tree.files(folder)]


def saved_files(tree: Tree, folder: str) -> list[str]:
    """The names of the Arrow files of a dataset, in order."""
    path = tree.path / folder / STATE
    if not isinstance(tree, Folder):
        raise DataError(f"{printable(path)}: a dataset saved to disk is packed; unpack it")
    try:
        state = fields_of(json_value(document(path).decode()))
        listed_files: Any = state["_data_files"]
        names = [inner(file["filename"]) for file in listed_files]
    except (BadRow, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{printable(path)} does not name the files of a dataset ({printable(error)}); save "
            "it again"
        ) from None
    if state.get("_indices_data_files"):
        raise DataError(
            f"{printable(path)} is of rows that were chosen or shuffled; save it again after "
            "flatten_indices()"
        )
    return names


def saved_splits(data: Path) -> dict[str, list[Path]]:
    """The files of each split; "" is a dataset without splits."""
    tree = Folder(data)
    if not any((data / name).is_file() for name in (STATE, SPLITS_OF)):
        return {}
    return {
        folder: [data / folder / name for name in saved_files(tree, folder)]
        for folder in saved_folders(tree, "")
    }

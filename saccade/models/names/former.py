"""Parameters that once had another name: runs that were trained before go on, and are used."""

from collections.abc import Mapping
from typing import TypeVar

FORMER = {"eye.": "image_encoder.", "picture.": "project."}  # of captioners, detectors, ViLBERT

Value = TypeVar("Value")


def name_today(name: str) -> str:
    """What a parameter is called now."""
    module = name.partition(".")[0] + "."
    return FORMER.get(module, module) + name.removeprefix(module) if "." in name else name


def names_today(values: Mapping[str, Value]) -> dict[str, Value]:
    """The same under the names of now."""
    return {name_today(name): value for name, value in values.items()}

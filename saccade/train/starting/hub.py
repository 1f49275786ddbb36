"""Models on the Hugging Face Hub, by name: hf:owner/name.

Only what tells sizes, tokens and weights is fetched, into the cache that all programs share; code
is neither fetched nor run.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from saccade.errors import ConfigError
from saccade.models.names.pretrained import IN_FOLDER
from saccade.printable import printable
from saccade.train.recipe import HUB, on_hub

NAME = re.compile(r"(?:[\w-][\w.-]*/)?[\w-][\w.-]*")
ABOUT = ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")
WORDS = ("vocab.txt", "vocab.json", "merges.txt")
WEIGHTS = tuple(f"{Path(name).stem}*{Path(name).suffix}*" for name in IN_FOLDER)  # the safe first
DOWNLOAD = "download the folder and name it with --init"


def local_folder(init: str) -> Path:
    """Where what a run starts from lies; what is on the Hub is fetched first."""
    if not on_hub(init):
        return Path(init)
    name = init.removeprefix(HUB)
    if not NAME.fullmatch(name):
        raise ConfigError(f"init={printable(init)} must be hf:owner/name, as on the Hub")
    try:
        hub: Any = import_module("huggingface_hub")
    except ImportError:
        raise ConfigError(
            f"init={init} needs the package huggingface_hub; pip install it, or {DOWNLOAD}"
        ) from None
    folder = Path()
    for weights in WEIGHTS:
        folder = _fetched(hub, name, [*ABOUT, *WORDS, weights])
        if any(folder.glob(weights)):
            break
    return folder


def _fetched(hub: Any, name: str, files: list[str]) -> Path:
    try:
        return Path(hub.snapshot_download(name, allow_patterns=files))
    except Exception as error:  # of the network, of the Hub, of the disk: each has its own kinds
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(
            f"{HUB}{name} cannot be fetched ({printable(lines[0][:200])}); check its name and the "
            f"network, or {DOWNLOAD}"
        ) from error

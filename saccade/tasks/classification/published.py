"""What a folder of weights says of the pixels that they were trained on."""

import json
from pathlib import Path
from typing import Any

from saccade.data.images.augment import Normalise
from saccade.tasks.classification.vary import NORMS

MOST = 10_000_000  # bytes of a file of settings
CLOSE = 0.01


def pixel_notes(folder: Path, pixels: str) -> list[str]:
    """A line for the user where such weights expect other pixels than they would get."""
    told = trained_on(folder)
    if told is None or _alike(told, NORMS[pixels]):
        return []
    better = next((name for name, norm in NORMS.items() if _alike(told, norm)), None)
    out = f"add --pixels {better}" if better else f"neither is in --pixels: {', '.join(NORMS)}"
    return [
        f"  these weights were trained on pixels of mean {_shown(told.mean)} and deviation "
        f"{_shown(told.deviation)}, and --pixels {pixels} gives others; {out}"
    ]


def trained_on(folder: Path) -> Normalise | None:
    """The mean and deviation that a folder of Hugging Face, timm or ours names, if it does."""
    match _table(folder / "preprocessor_config.json"):
        case {"image_mean": mean, "image_std": deviation}:
            return _norm(mean, deviation)
        case _:
            pass
    match _table(folder / "config.json"):
        case {"pretrained_cfg": {"mean": mean, "std": deviation}}:
            return _norm(mean, deviation)
        case {"task": {"pixels": str(name)}} if name in NORMS:
            return NORMS[name]
        case _:
            return None


def _norm(mean: Any, deviation: Any) -> Normalise | None:
    match (mean, deviation):
        case ([float(r), float(g), float(b)], [float(x), float(y), float(z)]) if min(x, y, z) > 0:
            return Normalise(mean=(r, g, b), deviation=(x, y, z))
        case _:
            return None


def _table(path: Path) -> Any:
    """It is only asked for a hint: what cannot be read says nothing."""
    try:
        return json.loads(path.read_bytes()) if path.stat().st_size < MOST else None
    except (OSError, ValueError, RecursionError):
        return None


def _alike(one: Normalise, other: Normalise) -> bool:
    pairs = zip((*one.mean, *one.deviation), (*other.mean, *other.deviation))
    return all(abs(a - b) < CLOSE for a, b in pairs)


def _shown(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)

"""`saccade eval RUN` for models of images and texts: what all kinds have alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from saccade.app.api import load
from saccade.app.cli.output import counting, print_json, show_table, tell
from saccade.app.kinds.base import HeldOut
from saccade.app.kinds.joint.model import JointModel
from saccade.errors import ConfigError
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.pairs import PairTool
from saccade.tasks.joint.pointing import pointing

POINTING = "pointing"
WAYS = {"image": "images by sentences", "sentence": "sentences by images"}

Score = Callable[..., dict[str, Any]]


def evaluate(
    run: str,
    held_out: HeldOut,
    splits: Callable[[Path], list[str]],
    score: Score,
    show: Callable[[dict[str, Any]], None],
    device: str,
    *,
    json: bool,
) -> None:
    """Score a model on held-out data, keep the figures where that is wanted, and print them."""
    model: JointModel = load(run, device=device)
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, splits)
    with counting("reading") as reading, counting("scoring") as progress:
        found = score(model.tool, split=split, settings=asked, reading=reading, progress=progress)
    held_out.kept(run, _flat(found))
    if json:
        print_json(found)
        return
    show(found)
    if found["left_out"]:
        tell(f"{found['left_out']:,} texts are too long for the model (--model.longest): left out")


def of_joint(score: Score, *, pointed: bool = False) -> Score:
    """To score a kind's tool as its joint model is, with the pointing game where it is wanted."""

    def score_tool(tool: PairTool, **more: Any) -> dict[str, Any]:
        game = {POINTING: _pointing(tool, more)} if pointed else {}  # may be refused: before all
        return {**score(tool.joint, **more), **game}

    return score_tool


def _pointing(tool: PairTool, more: dict[str, Any]) -> dict[str, Any]:
    """The pointing game on the data that a model is scored on."""
    settings: JointSettings = more["settings"]
    if settings.data:
        raise ConfigError("--pointing is of shapes, of which the truth is known; leave it out")
    read = read_captions(settings, more["split"], more["reading"])
    return pointing(tool.joint, read, more["progress"])


def _flat(found: dict[str, Any]) -> dict[str, Any]:
    """Figures within figures under names of their own, for only figures are kept."""
    flat = dict[str, Any]()
    for name, value in found.items():
        parts: dict[str, Any] = value if isinstance(value, dict) else {}
        flat |= {f"{name}_{key}": x for key, x in parts.items()} or {name: value}
    return flat


def tell_pace(found: dict[str, Any], what: str, among: str = "") -> None:
    """How many were scored, and how fast."""
    count, seconds = found[what], found["seconds"]
    tell(
        f"{found['split']}: {count:,} {what}{among} about {found['images']:,} images, "
        f"{seconds:.1f} s ({count / max(seconds, 1e-9):,.0f} {what}/s)"
    )
    tell("")


def show_recalls(found: dict[str, Any], name: str = "recall") -> None:
    """How often what belongs together is among the first found, both ways."""
    ranks = list(found[f"image_{name}"])
    rows = [
        (said, *(f"{found[f'{way}_{name}'][k]:.4f}" for k in ranks)) for way, said in WAYS.items()
    ]
    show_table(rows, head=("", *ranks))


def print_points(found: dict[str, Any]) -> None:
    """How often nouns look at what they mean, by layers and heads."""
    if POINTING not in found:
        return
    game = found[POINTING]
    heads = max(len(one["heads"]) for one in game["layers"].values())
    rows = [
        (site, *(f"{share:.3f}" for share in (one["mean"], *one["heads"])))
        for site, one in game["layers"].items()
    ]
    tell("")
    by_chance = f"{game['chance']:.3f} by chance"
    tell(f"how often {game['nouns']:,} nouns look at the region that they mean; {by_chance}")
    show_table(rows, head=("layer", "mean", *(f"head {n}" for n in range(1, heads + 1))))

"""A page for any trace: of a model that Saccade did not make, or a pass that it did not run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.app.look.arrays import Blobs
from saccade.app.look.document import FORMAT
from saccade.app.look.draw.picture import save_document
from saccade.app.look.html import framed
from saccade.app.look.site import Plan, add_zoom, site_entry
from saccade.attention.axes import Axis
from saccade.attention.look.looking import Trace
from saccade.errors import ConfigError

Tokens = list[str] | dict[str, list[str]]


@dataclass(frozen=True)
class Page:
    """A look document that shows itself in a notebook, and that can be saved."""

    document: dict[str, Any]

    def save(self, path: str | Path) -> Path:
        """Write the page to one file that works without a network."""
        path = Path(path)
        if path.suffix != ".html":
            raise ConfigError(f"{path.name}: a page is saved as .html, not {path.suffix or 'that'}")
        return save_document(self.document, path)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return framed(self.document)


def show(
    trace: Trace,
    tokens: Tokens,
    *,
    title: str = "a trace",
    row: int = 0,
    budget: int = 10_000_000,
) -> Page:
    """The page of what one row of a batch looked at.

    `tokens` are the words along the sides: a list where all sites look at one text, else a list
    for each axis that the trace names, such as {"source": […], "target": […]}.
    """
    if not len(trace):
        raise ConfigError("the trace is empty: run the model inside the block, then show it")
    named = tokens if isinstance(tokens, dict) else {"text": tokens}
    glances = {name: trace[name].row(row).cpu() for name in trace}
    blobs = Blobs()
    plan = Plan(trace.keep, budget, "f16" if sum(map(_cells, glances.values())) < 2e6 else "u8")
    entries: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for name, glance in glances.items():
        rows, columns = trace.axes[name]
        for axis, size in ((rows, glance.entropy.shape[2]), (columns, glance.keys)):
            axes[axis.name] = _axis(axis, size, named, name)
        entry = site_entry(name, glance, plan, blobs)
        entries.append(entry | {"rows": rows.name, "columns": columns.name})
    notes = add_zoom(entries, list(glances.values()), (), budget - blobs.size, blobs)
    return Page(_document(title, entries, axes, notes, blobs))


def _cells(glance: Any) -> int:
    return 0 if glance.weights is None else glance.weights.numel()


def _document(
    title: str,
    sites: list[dict[str, Any]],
    axes: dict[str, Any],
    notes: list[str],
    blobs: Blobs,
) -> dict[str, Any]:
    """As translation where something looks across, else as a text that looks at itself."""
    across = [site for site in sites if site["rows"] != site["columns"]]
    renamed = {across[-1]["columns"]: "source", across[-1]["rows"]: "target"} if across else {}
    if not across:
        renamed = {sites[-1]["rows"]: "text"}
    for site in sites:
        for side in ("rows", "columns"):
            site[side] = renamed.get(site[side], site[side])
    axes = {renamed.get(name, name): axis for name, axis in axes.items()}
    written = axes["target" if across else "text"]["tokens"]
    look = {"run": title, "label": "best", "text": "".join(written).strip(), "beam": None}
    look |= {"score": None, "log_probability": None, "finished": None, "axes": axes, "sites": sites}
    kind = "translation" if across else "language"
    head = {"format": FORMAT, "kind": kind, "title": title, "notes": notes}
    return {**head, "looks": [look], "blobs": blobs.texts}


def _axis(axis: Axis, size: int, tokens: dict[str, list[str]], site: str) -> dict[str, Any]:
    """The words of an axis; the cells of a picture are known without any."""
    words = tokens.get(axis.name)
    if words is None and axis.kind != "tokens":
        special = [f"<{i}>" for i in range(axis.special)]
        words = special + [f"{y},{x}" for y in range(axis.height) for x in range(axis.width)]
    if words is None:
        raise ConfigError(
            f"{site} looks along {axis.name!r}, for which there are no tokens; "
            f"give them as {{{axis.name!r}: […]}}"
        )
    if len(words) != size:
        raise ConfigError(f"{axis.name!r} has {len(words)} tokens, but {site} saw {size} positions")
    grid = {"height": axis.height, "width": axis.width, "special": axis.special}
    return {
        "kind": "tokens" if axis.kind == "tokens" else "grid",
        "tokens": words,
        "words": [],
        "prompt": size,
        "log_p": None,
        "choices": None,
        "grid": None if axis.kind == "tokens" else grid,
    }

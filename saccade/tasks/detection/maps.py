"""Where a detector looked for the objects that it found.

The queries of the objects look at the image (decoder, cross-attention) and at one another
(decoder, self-attention); before that the cells of the image look at one another (encoder), which
is kept for a grid of points only: cells × cells grow with the fourth power of the image's side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.attention.look.on_image import all_weights, on_cells
from saccade.attention.look.view import View
from saccade.attention.look.watching import watching
from saccade.data.images.lattice import Lattice
from saccade.tasks.detection.detector import FoundObject, ObjectDetector
from saccade.tasks.detection.task import best_objects

LEAST, FEWEST, MOST = 0.05, 3, 40  # objects below this score are left out, but the likeliest few
POINTS = 256  # of the image that are asked where they look
ENCODER, DECODER, AMONG, ACROSS = "encoder.", "decoder.", ".self", ".cross"

Shown = View | Float[Tensor, "B N T S"]


@dataclass(frozen=True)
class ObjectMaps:
    """Of one image: what was found, the likeliest first, and where each layer and head looked.

    `queries` are those that found something, each once; their rows in `across` lie over the cells
    and sum to one, those in `among` have what they give to one another, not to all other queries.
    `inner` says for each of some `points` on the image where it looks. `left_out` counts objects
    that are likely enough, but one too many.
    """

    found: list[FoundObject]
    queries: list[int]
    across: dict[str, Float[Tensor, "N n h w"]]
    among: dict[str, Float[Tensor, "N n n"]]
    inner: dict[str, Float[Tensor, "N points h w"]]
    cells: Lattice
    points: Lattice
    left_out: int

    def row(self, one: FoundObject) -> int:
        """Where an object's query stands among them."""
        return self.queries.index(one.query)


@torch.no_grad()
def object_maps(
    tool: ObjectDetector,
    image: UInt8[Tensor, "3 side side"],
    *,
    points: int = POINTS,
) -> ObjectMaps:
    """What is found in a prepared image, and where it was looked for; no `points`: no encoder."""
    every, seen, cells, grid = _watched(tool, image)
    likely = sum(one.score >= LEAST for one in every)
    found = every[: min(max(likely, FEWEST), MOST)]
    queries = list(dict.fromkeys(one.query for one in found))
    rows = torch.tensor(queries, dtype=torch.long)
    decoder = {name: one for name, one in seen.items() if name.startswith(DECODER)}
    across = {name: one for name, one in decoder.items() if name.endswith(ACROSS)}
    some, at = _points(cells, points) if points else (cells, [])
    return ObjectMaps(
        found,
        queries,
        {name: on_cells(_rows(one, rows), grid) for name, one in across.items()},
        {
            name: _rows(one, rows)[..., rows]
            for name, one in decoder.items()
            if name.endswith(AMONG)
        },
        {
            name: _looked_from(one, at, grid)
            for name, one in seen.items()
            if name.startswith(ENCODER) and points
        },
        cells,
        some,
        max(0, likely - MOST),
    )


def _watched(
    tool: ObjectDetector, image: UInt8[Tensor, "3 side side"]
) -> tuple[list[FoundObject], dict[str, Shown], Lattice, Axis]:
    """All that is found, however unlikely; what each site showed; the cells and their axis."""
    seen: dict[str, Shown] = {}

    def record(name: str, shown: Shown) -> None:
        seen[name] = shown

    pixels, model = tool.shown(image[None]), tool.model
    assert isinstance(model, nn.Module)
    with watching(model, record) as axes:
        answer = tool.model(pixels)
    (best,) = best_objects(answer, classes=len(tool.classes))
    grid = next(columns for name, (_, columns) in axes.items() if name.endswith(ACROSS))
    return tool.told(best, 0.0), seen, grid.whole.on((pixels.shape[2], pixels.shape[3])), grid


def _rows(seen: Shown, rows: Int[Tensor, " n"]) -> Float[Tensor, "N n S"]:
    """What some queries of the one image gave to each key."""
    weights = all_weights(seen)[0]
    return weights[:, rows.to(weights.device)].float().cpu()


def _points(cells: Lattice, most: int) -> tuple[Lattice, list[slice]]:
    """About so many of the cells, evenly apart, and where those of each row stand."""
    step = math.ceil(math.sqrt(cells.height * cells.width / most))
    down, across = (range(min(step, n) // 2, n, step) for n in (cells.height, cells.width))
    sides = cells.sides or (float(cells.height), float(cells.width))
    first = cells.first + cells.apart * down.start
    some = replace(
        cells,
        height=len(down),
        width=len(across),
        first=first,
        apart=cells.apart * step,
        sides=sides,
    )
    width = cells.width
    return some, [slice(y * width + across.start, (y + 1) * width, step) for y in down]


def _looked_from(seen: Shown, at: Sequence[slice], grid: Axis) -> Float[Tensor, "N points h w"]:
    """Where those cells look; the others' weights are never computed."""
    parts = [
        seen.part([0], some, slice(None)).weights() if isinstance(seen, View) else seen[:1, :, some]
        for some in at
    ]
    return on_cells(torch.cat(parts, dim=2)[0].float().cpu(), grid)

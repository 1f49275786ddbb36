"""Images with objects and what was found in them, made by hypothesis or by chance."""

from typing import NamedTuple

import torch
from hypothesis import strategies as st

from saccade.data.objects import Objects
from saccade.metrics.detection import FoundObjects

CLASSES = ("cat", "dog", "owl")
GRID = 16  # boxes lie on it, so that their areas, and which overlap is larger, are exact


class Scene(NamedTuple):
    """Images, and their height and width in pixels."""

    found: list[FoundObjects]
    truth: list[Objects]
    sizes: torch.Tensor


Numbers = list[float]


def objects_of(rows: list[tuple[Numbers, int, bool]]) -> Objects:
    return Objects(
        torch.tensor([box for box, _, _ in rows]).view(-1, 4),
        torch.tensor([label for _, label, _ in rows], dtype=torch.long),
        torch.tensor([ignored for _, _, ignored in rows], dtype=torch.bool),
    )


def found_of(rows: list[tuple[Numbers, int, float]]) -> FoundObjects:
    return FoundObjects(
        torch.tensor([box for box, _, _ in rows]).view(-1, 4),
        torch.tensor([label for _, label, _ in rows], dtype=torch.long),
        torch.tensor([score for _, _, score in rows]).view(-1),
    )


@st.composite
def box(draw: st.DrawFn) -> Numbers:
    """Often where another is."""
    corners: list[tuple[int, int]] = []
    for _ in range(2):
        low = draw(st.integers(0, 4))
        corners.append((low, low + draw(st.integers(1, 12))))
    (left, right), (top, bottom) = corners
    return [side / GRID for side in (left, top, right, bottom)]


labels = st.integers(0, len(CLASSES) - 1)
true_object = st.tuples(box(), labels, st.sampled_from([False, False, False, True]))
score = st.integers(1, 20).map(lambda n: n / 20)
found_object = st.tuples(box(), labels, score)
side = st.sampled_from([32, 64, 160])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """One to four images; there is at least one object that counts."""
    count = draw(st.integers(1, 4))
    truth = [draw(st.lists(true_object, max_size=5)) for _ in range(count)]
    found = [draw(st.lists(found_object, max_size=7)) for _ in range(count)]
    truth[0].append((draw(box()), draw(labels), False))
    sizes = torch.tensor([[draw(side), draw(side)] for _ in range(count)])
    return Scene([found_of(x) for x in found], [objects_of(x) for x in truth], sizes)


def random_scene(seed: int, *, images: int = 6) -> Scene:
    """No two scores, and no two overlaps, are the same."""
    rng = torch.Generator().manual_seed(seed)
    found, truth = list[FoundObjects](), list[Objects]()
    for _ in range(images):
        n, more = torch.randint(0, 5, (2,), generator=rng).tolist()
        corner = torch.rand(n + more, 2, generator=rng) * 0.5
        boxes = torch.cat([corner, corner + 0.05 + 0.4 * torch.rand(n + more, 2, generator=rng)], 1)
        kinds = torch.randint(len(CLASSES), (n + more,), generator=rng)
        truth.append(Objects(boxes[:n], kinds[:n], torch.rand(n, generator=rng) < 0.2))
        near = boxes + 0.02 * torch.randn(n + more, 4, generator=rng)
        found.append(FoundObjects(near, kinds, torch.rand(n + more, generator=rng)))
    truth[0] = objects_of([([0.1, 0.1, 0.6, 0.7], 0, False)])
    sizes = torch.randint(40, 400, (images, 2), generator=rng)
    return Scene(found, truth, sizes)


def rows_of(one: Objects | FoundObjects) -> list[tuple[Numbers, int, float]]:
    """Box, label, and whether it is ignored or how sure it is."""
    return list(zip(*(part.tolist() for part in one)))


def overlap_of(some: Numbers, other: Numbers, *, crowd: bool = False) -> float:
    """IoU; in a crowd the share of the first box that lies in the other."""
    wide = min(some[2], other[2]) - max(some[0], other[0])
    high = min(some[3], other[3]) - max(some[1], other[1])
    shared = max(0.0, wide) * max(0.0, high)
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (some, other)]
    whole = areas[0] if crowd else sum(areas) - shared
    return shared / whole if whole else 0.0

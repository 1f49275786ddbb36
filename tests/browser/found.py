"""Look documents of objects: the maps of an untrained detector, with objects that are made up."""

import json
from typing import Any
from unittest.mock import patch

from saccade.app.look.arrays import ArrayRef
from saccade.app.look.detection import object_document
from saccade.app.look.document import to_json
from saccade.app.look.settings import LookSettings
from tests.app.look.detectors import detector, subjects
from tests.app.look.reading import values

SCORES = (0.95, 0.81, 0.64, 0.3, 0.2, 0.1)
LABELS = ("ring", "star", "moon", "cross", "heart", "heart")
TAKES = (0, 1, None, 2, None, None)
BOXES = tuple([0.05 + 0.15 * n, 0.1, 0.18 + 0.15 * n, 0.4] for n in range(6))
TRUTH = ("ring", "circle", "cross")  # the first is found, the second confused, the last far below


def objects(
    images: int = 1, runs: tuple[str, ...] = ("detr",), *, known: bool = True, kind: str = "boxes"
) -> dict[str, Any]:
    """Every image has the objects of `LABELS`, less likely from image to image."""
    models = [detector(kind, seed=n)._replace(name=run) for n, run in enumerate(runs)]
    with patch("saccade.tasks.detection.maps.FEWEST", len(SCORES)):
        document = object_document(models, subjects(images), LookSettings())
    made: dict[str, Any] = json.loads(to_json(document))
    for look in made["looks"]:
        for n, one in enumerate(look["objects"]["found"]):
            one |= {"label": LABELS[n], "box": BOXES[n], "takes": TAKES[n] if known else None}
            one["score"] = max(0.06, SCORES[n] - 0.25 * look["image"])
        there = [{"label": name, "box": BOXES[(0, 1, 3)[n]]} for n, name in enumerate(TRUTH)]
        look["objects"]["truth"] = there if known else None
    return made


def weights(document: dict[str, Any], name: str, look: int = 0) -> Any:
    """Those of a site, (heads, rows, columns)."""
    (site,) = (one for one in document["looks"][look]["sites"] if one["name"] == name)
    return values(document["blobs"], ArrayRef(**site["arrays"]["weights"])).astype(float)

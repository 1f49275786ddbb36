"""Look documents of texts about images: joint models with loud fresh weights, on scenes."""

import json
from functools import cache
from typing import Any, NamedTuple

from saccade.app.look.arrays import ArrayRef
from saccade.app.look.document import to_json
from saccade.app.look.joint.document import pair_document
from saccade.app.look.joint.subject import PairTruth, split_subjects
from saccade.app.look.settings import LookSettings
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint.answering import AnsweringSettings, read_questions
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.choosing import ChoosingSettings, read_choices
from saccade.tasks.joint.pairs import PairTool
from saccade.tasks.joint.referring import ReferringSettings, read_phrases
from tests.app.look.reading import values
from tests.tasks.joint.pair_tools import pair_tool


class NamedTool(NamedTuple):
    name: str
    tool: PairTool


def subjects(tool: PairTool, kind: str, count: int) -> Any:
    """Some of the test scenes, with what is true of them."""
    settings: Any = tool.settings
    if kind == "answering":
        assert isinstance(settings, AnsweringSettings)
        read = read_questions(settings, "test", lambda *_: None)
        return split_subjects(read, count, "test", lambda one: PairTruth(answers=one.answers))
    if kind == "referring":
        assert isinstance(settings, ReferringSettings)
        read = read_phrases(settings, "test", lambda *_: None)
        return split_subjects(read, count, "test", lambda box: PairTruth(box=box))
    if kind == "choosing":
        assert isinstance(settings, ChoosingSettings)
        read = read_choices(settings, "test", lambda *_: None)
        return split_subjects(
            read, count, "test", lambda one: PairTruth(sentence=one.texts[one.right])
        )
    read = read_captions(settings, "test", lambda *_: None)
    return split_subjects(read, count, "test", lambda _: PairTruth(fits=True))


@cache
def _made(kind: str, regions: RegionKind, runs: tuple[str, ...], count: int) -> str:
    models = [
        NamedTool(run, pair_tool(kind, regions, seed=seed + 1)) for seed, run in enumerate(runs)
    ]
    some = subjects(models[0].tool, kind, max(count, 6))
    if count == 1:  # of which there is most to see
        tool = models[0].tool
        some.sort(key=lambda one: -len(one.sight(tool).given))
    some = some[:count]
    return to_json(pair_document(models, some, LookSettings()))


def paired(
    kind: str = "answering",
    regions: RegionKind = "boxes",
    *,
    runs: tuple[str, ...] = ("vilbert",),
    count: int = 1,
) -> dict[str, Any]:
    """A document as the page is given it."""
    made: dict[str, Any] = json.loads(_made(kind, regions, runs, count))
    return made


def site_weights(document: dict[str, Any], name: str, look: int = 0) -> Any:
    """Those of a site, (heads, rows, columns)."""
    (site,) = (one for one in document["looks"][look]["sites"] if one["name"] == name)
    return values(document["blobs"], ArrayRef(**site["arrays"]["weights"])).astype(float)

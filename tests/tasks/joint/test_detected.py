"""Regions that a detector finds: the likeliest, with what it says of each; found once and kept."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.boxes import to_corners
from saccade.data.images.members import Member
from saccade.data.images.regions import fitted_boxes
from saccade.errors import ConfigError, WriteError
from saccade.tasks.base import OtherRun, silent
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.joint import detected as module
from saccade.tasks.joint.detected import FoundRegions, detected, find_regions, opened_detector
from tests.app.look.detectors import detector as untrained
from tests.data.images_made import in_folder, picture
from tests.tasks.detection.sets import detections
from tests.tasks.joint.made import KnownRuns

BLANK = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)


@pytest.mark.slow
@given(seed=st.integers(0, 99), queries=st.sampled_from([4, 60]), nothing=st.booleans())
def test_those_are_found_whose_best_class_is_likely_the_likeliest_first(
    seed: int, queries: int, nothing: bool
) -> None:
    tool, classes = untrained().tool, len(untrained().tool.classes)
    made = detections(2, 2, queries, classes + nothing, seed)
    tool.found = lambda images: made  # type: ignore[assignment]
    for image, found in enumerate(find_regions(tool, BLANK)):
        rows = list[tuple[float, list[float], list[float]]]()
        for query in range(queries):
            z = made.scores[-1, image, query]
            chances = z.softmax(dim=0)[:classes] if nothing else z.sigmoid()
            box = to_corners(made.boxes[-1, image, query]).clamp(0, 1)
            rows.append((float(chances.max()), box.tolist(), (chances / chances.sum()).tolist()))
        kept = sorted((row for row in rows if row[0] >= 0.3), key=lambda row: -row[0])[:36]
        torch.testing.assert_close(
            found.boxes, torch.tensor([row[1] for row in kept]).view(-1, 4), atol=1e-6, rtol=0
        )
        expected = torch.tensor([row[2] for row in kept]).view(-1, classes)
        torch.testing.assert_close(found.chances, expected, atol=1e-6, rtol=1e-5)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownRuns:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    return KnownRuns(tmp_path / "detr")


@pytest.fixture
def files(tmp_path: Path) -> list[Member]:
    """More than go at a time, some of them not square."""
    root = in_folder(tmp_path / "images", {f"{n}.png": picture(n, side=40) for n in range(11)})
    return [Member.of(root / f"{n}.png") for n in range(11)]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images were looked through at each call."""
    calls, plain = list[int](), find_regions

    def counting(detector: Any, images: Any) -> list[FoundRegions]:
        calls.append(len(images))
        return plain(detector, images)

    monkeypatch.setattr(module, "find_regions", counting)
    return calls


def test_a_split_is_looked_through_once_in_batches_with_progress(
    runs: KnownRuns, files: list[Member], counted: list[int]
) -> None:
    told = list[tuple[int, int]]()
    first = detected(runs.detector, files, "crop", lambda done, total: told.append((done, total)))
    assert counted == [8, 3]
    assert told == [(8, 11), (11, 11)]
    again = detected(runs.detector, files, "crop", silent)
    assert counted == [8, 3]
    for name in ("counts", "boxes", "chances"):
        assert torch.equal(first.all(name), again.all(name))
    alone = [
        find_regions(runs.detector, runs.detector.prepare(file.path)[None])[0] for file in files
    ]
    assert first.all("counts").tolist() == [len(one.boxes) for one in alone]
    assert first.count("boxes") > 11
    expected = torch.cat([fitted_boxes(one.boxes, 40, 40, "crop").clamp(0, 1) for one in alone])
    torch.testing.assert_close(first.all("boxes"), expected, atol=1e-5, rtol=0)
    said = torch.cat([one.chances for one in alone])
    torch.testing.assert_close(first.all("chances"), said, atol=1e-4, rtol=0)
    torch.testing.assert_close(said.sum(dim=1), torch.ones(len(said)))


@pytest.mark.parametrize("what", ["weights", "image", "fit", "damaged"])
def test_and_again_only_where_something_is_another(
    what: str, runs: KnownRuns, files: list[Member], counted: list[int], tmp_path: Path
) -> None:
    before = detected(runs.detector, files, "crop", silent).all("boxes")
    fit = "crop"
    match what:
        case "weights":
            with torch.no_grad():
                next(runs.network.parameters()).mul_(1.5)
        case "image":
            files[3].path.write_bytes(picture(99, side=41))
            files[3] = Member.of(files[3].path)
        case "fit":
            fit = "pad"
        case _:
            (path,) = (tmp_path / "cache").glob("objects-*/boxes.rows")
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    after = detected(runs.detector, files, fit, silent).all("boxes")
    assert counted == [8, 3, 8, 3]
    if what == "damaged":
        assert torch.equal(before, after)


def test_who_finds_no_objects_is_refused(runs: KnownRuns, tmp_path: Path) -> None:
    other = OtherRun(tmp_path / "sat", CaptioningSettings(), runs.network)
    with pytest.raises(ConfigError) as raised:
        opened_detector(other, "--detector")
    assert str(raised.value) == (
        f"--detector: {tmp_path}/sat finds no objects; name a run that does, such as DETR's"
    )
    (runs.folder / "classes.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"--detector: .* does not name its classes .*; copy"):
        opened_detector(runs.open(str(runs.folder), ""), "--detector")


def test_where_nothing_can_be_kept_is_told(
    runs: KnownRuns, files: list[Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "file"))
    with pytest.raises(WriteError, match=r"cannot keep what a detector finds in .*; make room"):
        detected(runs.detector, files, "crop", silent)

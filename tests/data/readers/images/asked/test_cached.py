"""Broken images take the rows about them along, and each is told."""

from pathlib import Path

import pytest
import torch

from saccade.data.images.cache import CacheSettings
from saccade.data.images.decode import decode
from saccade.data.readers import QUESTIONS, read_asked
from saccade.data.readers.images.asked.cached import cached_asked
from saccade.errors import DataError
from tests.data.images_made import in_folder, picture, rows

SETTINGS = CacheSettings(size=8)


def asked(*images: str) -> bytes:
    return rows(
        *(
            {"image": name, "question": f"q{n}", "answer": "x"}
            | ({"boxes": [[0, 0, 4, 8]]} if name == "c.png" else {})
            for n, name in enumerate(images)
        )
    )


def test_rows_about_a_broken_image_are_bad_and_the_others_follow_theirs(tmp_path: Path) -> None:
    pictures = {"a.png": b"no image", "b.png": picture(1), "c.png": picture(2)}
    said = asked("a.png", "c.png", "b.png", "a.png", "c.png", "lost.png")
    data = in_folder(tmp_path / "data", {**pictures, "train.jsonl": said})
    read = read_asked(data, "train", QUESTIONS, skip_bad=3)
    kept, cache = cached_asked(read, tmp_path / "kept", settings=SETTINGS, skip_bad=3)
    assert [(item.text, item.image) for item in kept.items] == [("q1", 0), ("q2", 1), ("q4", 0)]
    assert [Path(row.image.name).name for row in kept.images] == ["c.png", "b.png"]
    assert kept.regions == [((0.0, 0.0, 0.5, 1.0),), None]
    assert len(cache) == len(kept.images)
    pixels = torch.stack([decode(pictures[name]) for name in ("c.png", "b.png")])
    assert torch.equal(cache[torch.arange(2)], pixels)
    assert kept.skipped == {"missing image": 1, "no image": 2}
    assert [problem.line for problem in kept.problems] == [6, 1, 4]
    assert [item.image for item in read.items] == [0, 1, 2, 0, 1]  # as it was


def test_all_that_is_bad_is_told_at_once(tmp_path: Path) -> None:
    pictures = {"a.png": b"no image", "b.png": picture(1)}
    said = asked("a.png", "b.png", "a.png", "lost.png")
    data = in_folder(tmp_path / "data", {**pictures, "train.jsonl": said})
    read = read_asked(data, "train", QUESTIONS, skip_bad=2)
    with pytest.raises(DataError) as raised:
        cached_asked(read, tmp_path / "kept", settings=SETTINGS, skip_bad=2)
    assert "3 bad rows (2 no image, 1 missing image)" in str(raised.value)
    assert f"{data}/train.jsonl:3: no image: it does not begin like" in str(raised.value)
    assert "pass --skip-bad 3 to leave them out" in str(raised.value)

"""Scenes are drawn by several processes, and are the same as drawn by one."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import torch

from saccade.data import shapes
from saccade.data.shapes import Scene, ShapesSettings
from saccade.tasks import scenes as drawing
from saccade.tasks.scenes import Scenes, announced, draw_and_tell, draw_scenes


def some(count: int) -> list[Scene]:
    return [shapes.scene("train", index) for index in range(count)]


@pytest.mark.parametrize("processes", [1, 3])
def test_images_are_those_of_each_scene_in_order(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "_workers", lambda count: processes)
    told: list[tuple[int, int]] = []
    images = draw_scenes(some(150), 24, lambda done, total: told.append((done, total)))
    expected = np.stack([shapes.render(one, 24) for one in some(150)]).transpose(0, 3, 1, 2)
    assert torch.equal(images, torch.from_numpy(expected))
    assert told[-1] == (150, 150)
    assert told == sorted(told)


def test_what_a_process_that_was_killed_has_left_is_drawn_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent, render = os.getpid(), shapes.render

    def dying(scene: Scene, side: int) -> np.ndarray:
        if os.getpid() != parent and scene == some(20)[-1]:
            os.kill(os.getpid(), signal.SIGKILL)
        return render(scene, side)

    monkeypatch.setattr(drawing, "_workers", lambda count: 2)
    monkeypatch.setattr(shapes, "render", dying)
    images, told = draw_and_tell(some(40), 16, shapes.captions, lambda done, total: None)
    expected = np.stack([render(one, 16) for one in some(40)]).transpose(0, 3, 1, 2)
    assert torch.equal(images, torch.from_numpy(expected))
    assert told == [shapes.captions(one) for one in some(40)]


@pytest.mark.parametrize("processes", [1, 3])
def test_what_is_told_of_each_scene_is_in_order(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "_workers", lambda count: processes)
    _, told = draw_and_tell(some(50), 16, shapes.captions, lambda done, total: None)
    assert told == [shapes.captions(one) for one in some(50)]


def test_scenes_are_composed_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes, compose, composed = Scenes("train", 40, ShapesSettings()), shapes.scene, list[int]()
    expected = [some(40)[7], some(40)[39]]

    def noted(split: str, index: int, settings: ShapesSettings) -> Scene:
        composed.append(index)
        return compose(split, index, settings)

    monkeypatch.setattr(shapes, "scene", noted)
    assert len(scenes) == 40
    assert [scenes[7], scenes[-1]] == expected
    assert composed == [7, 39]


def test_few_scenes_start_no_process_and_many_as_many_as_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: set(range(5)), raising=False)
    assert announced(4000) == "drawing 4,000 scenes of shapes, some 3 s"
    assert announced(40_000) == "drawing 40,000 scenes of shapes, some 4 s"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert announced(40_000) == "drawing 40,000 scenes of shapes, some 12 s"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_scenes_are_drawn_ends_all_within_a_second(
    number: signal.Signals, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("run") / "dvae"
    command = [sys.executable, "-m", "saccade", "train", "dvae", "--scenes", "20000", "--image"]
    with subprocess.Popen(
        [*command, "256", "--out", str(out)], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        while b"/20,000" not in process.stderr.readline():
            pass
        assert psutil.Process(process.pid).children()
        begun = time.monotonic()
        os.killpg(process.pid, number)  # as a terminal does
        said = process.stderr.read()  # until nobody is left who could write
        taken = time.monotonic() - begun
    assert process.returncode == 128 + number
    assert b"Traceback" not in said
    assert b"saccade: stopped" in said
    assert taken < 5

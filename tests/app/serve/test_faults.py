"""S11: models that do not load, folders that vanish, decoding that raises or hangs."""

import logging
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.app.serve.faults import faulty
from tests.app.serve.serving import LocalServer, eventually

pytestmark = pytest.mark.slow  # waits for deadlines, or starts processes

TEXT = "We eat."
HANG_S = 1.0


@pytest.fixture(scope="module")
def copies(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copies")
    for name in ("translator", "writer"):
        shutil.copytree(runs[name], folder / name)
    return folder


@pytest.fixture(scope="module")
def server(copies: Path) -> Iterator[LocalServer]:
    paths = [copies / "translator", copies / "writer"]
    with LocalServer(paths, hang_s=HANG_S, deadline_s=3.0) as running:
        yield running


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_replaced_folder_does_not_matter(server: LocalServer, copies: Path) -> None:
    before = server.predict(TEXT).json()["predictions"]
    shutil.rmtree(copies / "translator")
    (copies / "translator").mkdir()
    (copies / "translator" / "model.safetensors").write_bytes(b"nonsense")
    assert server.predict(TEXT).json()["predictions"] == before
    assert server.get("/info").status_code == server.get("/ready").status_code == 200


def test_what_raises_is_an_error_without_its_inside(
    server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    with faulty(server, "translator"), caplog.at_level(logging.ERROR, "saccade.serve"):
        answer = server.predict("BOOM")
    assert error(answer) == (500, "internal")
    assert "secret" not in answer.text
    assert "a secret of the inside" in caplog.text
    assert answer.json()["id"] in caplog.text
    assert server.predict(TEXT).status_code == 200


def test_one_that_raises_does_not_spoil_its_mates(server: LocalServer) -> None:
    with faulty(server, "translator") as faults, ThreadPoolExecutor() as pool:
        faults.gate.clear()
        pool.submit(server.predict, TEXT, beam=1)
        eventually(lambda: faults.texts == [TEXT])
        texts = ["She sleeps.", "BOOM", "He eats."]
        asked = [pool.submit(server.predict, text, beam=2) for text in texts]
        eventually(lambda: server.service.batcher.depth == 3)
        faults.gate.set()
        assert [one.result().status_code for one in asked] == [200, 500, 200]
        assert sorted(faults.batches[1]) == sorted(texts)  # they were together at first


def test_a_hang_becomes_an_answer_and_other_runs_live(server: LocalServer) -> None:
    with faulty(server, "translator") as faults, ThreadPoolExecutor() as pool:
        begun = time.monotonic()
        hanging = pool.submit(server.predict, "HANG")
        eventually(lambda: faults.texts == ["HANG"])
        waiting = pool.submit(server.predict, TEXT)
        assert error(hanging.result()) == error(waiting.result()) == (504, "hung")
        assert time.monotonic() - begun < HANG_S + 2
        assert error(server.get("/ready")) == (503, "hung")
        assert server.get("/health").status_code == 200
        assert error(server.predict(TEXT)) == (503, "hung")
        assert server.predict("We", run="writer", most_tokens=3).status_code == 200
        faults.release.set()
        eventually(lambda: server.get("/ready").status_code == 200)
        assert server.predict(TEXT).status_code == 200
        assert TEXT not in faults.batches[0]


def test_a_deadline_holds_while_waiting_and_while_running(server: LocalServer) -> None:
    with faulty(server, "translator") as faults, ThreadPoolExecutor() as pool:
        faults.step_seconds = 0.5
        running = pool.submit(server.predict, TEXT * 3, beam=1)
        eventually(lambda: len(faults.texts) == 1)
        waiting = pool.submit(server.predict, TEXT, beam=2)
        assert error(running.result()) == (504, "deadline")
        assert error(waiting.result()) in ((504, "deadline"), (503, "busy"))  # as it shows
    eventually(lambda: server.metric("in_flight") == 0)
    assert faults.texts[:1] == [TEXT * 3]
    assert server.predict(TEXT).status_code == 200


def test_a_run_that_does_not_load_is_told_and_the_others_live(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(runs["writer"], tmp_path / "damaged")
    weights = tmp_path / "damaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    server = LocalServer([tmp_path / "damaged", runs["writer"]])
    try:
        eventually(lambda: server.runs["writer"].model is not None)
        assert error(server.get("/ready")) == (503, "not_loaded")
        assert "damaged" in server.get("/ready").json()["error"]["message"]
        assert server.get("/health").status_code == 200
        assert error(server.predict("We", run="damaged")) == (503, "not_loaded")
        assert server.predict("We", run="writer", most_tokens=3).status_code == 200
    finally:
        server.__exit__()


def test_a_server_without_any_model_ends(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["writer"], tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"")
    server = LocalServer([tmp_path / "damaged"])
    server.thread.join(20)
    assert not server.thread.is_alive()
    assert "model.safetensors" in str(server.server.failure)

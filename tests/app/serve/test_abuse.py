"""Attacks on a server in a process of its own: each once kept everyone else from being served."""

import asyncio
import json
import resource
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from PIL import Image

from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.train.recipes import RECIPES
from saccade.train.storage.folder import RunFolder
from tests.app.serve import serving
from tests.app.serve.captioners import images, make_captioners, texts, upload
from tests.app.serve.load import ask
from tests.app.serve.serving import ServerProcess
from tests.data.images_odd import many_scans, stored

pytestmark = pytest.mark.slow
DEADLINE = 10.0
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def slow_run(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like the demo's: it reads texts of any length, and never ends of itself."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("slow") / "demo"
    path.mkdir()
    tokens = json.loads((runs["translator"] / "config.json").read_bytes())["model"]["vocabulary"]
    model = RnnAttentionConfig(width=96, vocabulary=tokens)
    folder = RunFolder(path)
    folder.save_recipe(replace(RECIPES["rnn-attention"], model=model))
    folder.save_assets({"tokenizer.json": (runs["translator"] / "tokenizer.json").read_bytes()})
    folder.save_weights(model.build())
    return path


@pytest.fixture(scope="module")
def server(
    runs: dict[str, Path], slow_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """All that is attacked but does not end."""
    made = make_captioners(tmp_path_factory.mktemp("captioners"))
    paths = map(str, (made["captioner"], slow_run, runs["writer"]))
    with ServerProcess(*paths, "--image-s", "2", "--deadline-s", str(DEADLINE)) as running:
        yield running


@pytest.fixture
def short_of_files(runs: dict[str, Path]) -> Iterator[ServerProcess]:
    with ServerProcess(str(runs["writer"]), files=128) as running:
        yield running


def test_a_jpeg_of_thousands_of_scans_stops_nobody(server: ServerProcess) -> None:
    """The first is refused by its scans; the second has as many as may be, and is ended.

    By its time, or on a fast machine by the pixels of the third.
    """
    for raw, why in (
        (many_scans(5000, scans=8000), {"too many scans: 8006"}),
        (many_scans(5000, scans=44), {"too slow", "pixels (request_pixels)"}),
    ):
        with ThreadPoolExecutor() as pool:
            begun = time.monotonic()
            attack = pool.submit(upload, server, *[raw] * 4)
            assert texts(upload(server, images(1)[0]))
            assert time.monotonic() - begun < 6
            told = attack.result()
            assert told.status_code == 422
            assert any(part in told.json()["error"]["message"] for part in why), told.text


def test_a_form_of_the_largest_images_holds_nobody_for_long(server: ServerProcess) -> None:
    solid = stored(Image.new("RGB", (5000, 5000), (9, 9, 9)), "PNG")
    with ThreadPoolExecutor() as pool:
        attack = pool.submit(upload, server, *[solid] * 32)
        time.sleep(0.3)
        begun = time.monotonic()
        assert texts(upload(server, images(1)[0]))
        assert time.monotonic() - begun < 8
        told = attack.result().json()["error"]
    assert told["field"] == "image"
    assert "50,000,000 pixels (request_pixels)" in told["message"] or "image_s" in told["message"]


def slow_bodies(server: ServerProcess, held: ExitStack, count: int) -> None:
    for _ in range(count):
        wire = held.enter_context(server.connect())
        with suppress(ConnectionError):
            wire.sendall(HEAD + b"Content-Length: 60000\r\n\r\n{")


def test_hundreds_of_slow_bodies_lock_nobody_out(server: ServerProcess) -> None:
    with ExitStack() as held:
        slow_bodies(server, held, 700)
        for _ in range(100):
            assert server.get("/health").status_code == 200
        slow_bodies(server, held, 300)
        answer = server.predict("We", run="writer", most_tokens=2)
        assert answer.status_code == 200, answer.text


def test_without_files_to_open_it_serves_fewer_and_stops_when_told(
    short_of_files: ServerProcess,
) -> None:
    """And nobody reads its log, which once held it for ever."""
    server, process = short_of_files, psutil.Process(short_of_files.process.pid)
    assert 16 < server.get("/info").json()["limits"]["connections"] < 100
    with ExitStack() as held:
        idle = [held.enter_context(server.connect()) for _ in range(400)]
        for one in idle[::2]:
            with suppress(ConnectionError):
                one.sendall(b"GET / HT")
        assert server.get("/health").status_code == 200
        assert process.num_fds() < 128
        process.rlimit(resource.RLIMIT_NOFILE, (process.num_fds(), 128))  # now there are none
        for _ in range(300):  # each would be complained about
            wire = held.enter_context(socket.socket())
            wire.setblocking(False)
            wire.connect_ex(("127.0.0.1", server.port))
        time.sleep(1.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(14) == 0
    assert server.process.stderr
    log = server.process.stderr.read()
    assert 1 <= log.count("out of system resource") <= 2  # told, but not hundreds of times
    assert len(log) < 10_000


def test_a_loop_that_is_held_for_ever_still_ends_when_told(runs: dict[str, Path]) -> None:
    """Its log goes where nobody reads, past the thread that is there for it."""
    hold = "import saccade.app.serve.app as a, os, time\n"
    hold += "a.Metrics.text = lambda self: time.sleep(1e6)\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "COMMAND", f"{hold}{serving.COMMAND}")
        with (
            ServerProcess(str(runs["writer"]), "--grace-s", "0.5") as server,
            server.connect() as wire,
        ):
            wire.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(10) == 128 + signal.SIGTERM


def test_what_is_taken_on_is_answered_in_time_and_the_rest_is_refused_soon(
    server: ServerProcess,
) -> None:
    """Eighty long looks at once, of which a few can be answered before the deadline.

    Nobody waits in vain until then: what is late then (504) can only be the one that is computed.
    """
    body = {"run": "demo", "text": "We eat the bread. " * 24, "beam": 2}

    async def one(port: int) -> tuple[int, float, bytes]:
        begun = time.monotonic()
        status, head = await ask(port, "/v1/look", body)
        return status, time.monotonic() - begun, head

    async def all_at_once(port: int) -> list[tuple[int, float, bytes]]:
        return await asyncio.gather(*(one(port) for _ in range(80)))

    found = asyncio.run(all_at_once(server.port))
    again = asyncio.run(all_at_once(server.port))
    print([(status, round(seconds, 1)) for status, seconds, _ in found + again])
    for answers in (found, again):
        statuses = [status for status, _, _ in answers]
        assert set(statuses) <= {200, 429, 503, 504}
        assert statuses.count(200) >= 1
        assert statuses.count(504) <= 1  # of a machine that became slower in that moment
        assert all(b"retry-after: " in head for status, _, head in answers if status in (429, 503))
    refused = [seconds for status, seconds, _ in again if status != 200]
    assert sorted(refused)[len(refused) // 2] < 1.5  # it knows by now


def test_a_text_of_too_many_tokens_is_refused_at_once_with_the_limit(
    server: ServerProcess,
) -> None:
    begun = time.monotonic()
    answer = server.post("/v1/look", {"run": "demo", "text": "日本語の文" * 800})
    assert time.monotonic() - begun < 2
    told = answer.json()["error"]
    assert (answer.status_code, told["code"], told["field"]) == (422, "too_long", "text")
    assert "there may be 1024 (text_tokens)" in told["message"]


def test_on_all_addresses_a_token_is_made_and_the_link_that_is_printed_works(
    runs: dict[str, Path],
) -> None:
    with ServerProcess(str(runs["writer"]), "--host", "0.0.0.0") as server:
        link = server.greeting.split()[-1]
        assert "0.0.0.0" not in link
        assert server.get("/info").status_code == 401
        page = server.http.get(link, follow_redirects=True)
        assert (page.status_code, page.url.query) == (200, b"")
        own = {"Origin": f"http://{page.url.netloc.decode()}"}
        url = page.url.join("/v1/predict")
        asked = server.http.post(url, json={"text": "We", "most_tokens": 2}, headers=own)
        assert asked.status_code == 200, asked.text
        server.process.terminate()
        _, log = server.process.communicate(timeout=10)
    assert "others can reach this server" in log

"""S8 and S13 with images: many at once, and all that are broken, in a process of its own."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tests.app.serve.captioners import as_json, images, make_captioners, texts, upload
from tests.app.serve.serving import ServerProcess
from tests.data.images_odd import black_png, broken, odd

pytestmark = pytest.mark.slow
MANY = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = make_captioners(tmp_path_factory.mktemp("captioners"))
    paths = (str(made["captioner"]), str(made["larger"]))
    with ServerProcess(*paths, "--deadline-s", "120") as running:
        yield running


@pytest.mark.parametrize("run", ["captioner", "larger"])
def test_at_once_is_what_it_is_one_by_one(server: ServerProcess, run: str) -> None:
    raw, batches = images(MANY), server.metric("batch_size_count")
    alone = [as_json(server, one, run=run).json()["predictions"][0] for one in raw]
    assert len({round(one["score"], 3) for one in alone}) > MANY / 2  # each has its own answer
    assert server.metric("batch_size_count") == batches + MANY
    order = random.Random(7).sample(range(MANY), MANY)
    with ThreadPoolExecutor(MANY) as pool:
        asked = {i: pool.submit(upload, server, raw[i], fields={"run": run}) for i in order}
    for i, one in enumerate(alone):
        (other,) = asked[i].result().json()["predictions"]
        assert other["text"] == one["text"]
        assert other["score"] == pytest.approx(one["score"], abs=1e-4)
    assert server.metric("batch_size_count") < batches + 2 * MANY  # some went together


def test_no_image_takes_the_server_down_or_fills_its_memory(server: ServerProcess) -> None:
    """The largest that is allowed comes several times at once."""
    largest = black_png(5000, 5000)
    every = [*odd().values(), *(raw for raw, _ in broken().values()), *[largest] * 3]
    process, peak = psutil.Process(server.process.pid), 0
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(upload, server, raw) for raw in every]
        while not all(one.done() for one in asked):
            peak = max(peak, process.memory_info().rss)
            assert server.get("/health").status_code == 200
    found = [one.result().status_code for one in asked]
    assert found == [200] * len(odd()) + [422] * len(broken()) + [200] * 3
    print(f"peak {peak:,} bytes")
    assert peak < 1_000_000_000
    assert texts(upload(server, images(1)[0]))

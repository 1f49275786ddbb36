"""What the server says of itself, and that nobody has to read it."""

import asyncio
from pathlib import Path

import pytest

from tests.app.serve.load import ask
from tests.app.serve.serving import ServerProcess

pytestmark = pytest.mark.slow


def test_a_server_whose_log_nobody_reads_goes_on(runs: dict[str, Path]) -> None:
    async def many(port: int) -> list[int]:
        return [(await ask(port, f"/{'x' * 90}"))[0] for _ in range(800)]

    with ServerProcess(str(runs["writer"]), "--verbose") as server:
        assert asyncio.run(many(server.port)) == [404] * 800  # twice what a pipe holds
        assert server.get("/health").status_code == 200
        server.process.terminate()
        output, log = server.process.communicate(timeout=10)
        assert server.process.returncode == 0
    assert f"{server.greeting}{output}".splitlines() == [f"serving writer at {server.url}"]
    lines = log.splitlines()
    assert lines[0].startswith("saccade: loaded writer in ")
    assert "GET /xxx" in lines[1]
    assert " 404 0.0" in lines[1]

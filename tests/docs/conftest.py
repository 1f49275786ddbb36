"""The site, built once for all tests of it, and a browser without a network."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.blocks import ROOT

AXE = "axe-core@4.10.3"  # MPL-2.0: fetched for the test, not kept here
AXE_SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"


class Site(NamedTuple):
    """Where it lies, and what Sphinx said meanwhile."""

    folder: Path
    said: str
    code: int

    def pages(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.html") if "_static" not in path.parts)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """As `make docs` builds it."""
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    make = (ROOT / "Makefile").read_text()
    switches = make.partition("sphinx-build ")[2].partition(" docs build/docs")[0].split()
    command = [sys.executable, "-m", "sphinx", *switches, "docs", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return Site(folder, ended.stdout + ended.stderr, ended.returncode)


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The accessibility checker's own code, from npm or from the last time."""
    keeps = request.config.pluginmanager.hasplugin("cacheprovider")
    folder = request.config.cache.mkdir("axe-core") if keeps else tmp_path_factory.mktemp("axe")
    script = folder / f"{AXE}.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        packed = [npm, "pack", AXE, "--silent", "--fetch-retries=0", "--fetch-timeout=20000"]
        packed += ["--pack-destination", str(folder)]
        ended = subprocess.run(packed, capture_output=True, text=True, timeout=120, check=False)
        if ended.returncode:
            pytest.skip(f"npm cannot fetch {AXE}")
        archive = folder / ended.stdout.split()[-1]
        assert sha256(archive.read_bytes()).hexdigest() == AXE_SHA256
        shutil.unpack_archive(archive, folder, filter="data")
        (folder / "package" / "axe.min.js").replace(script)
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from tests.browser.conftest import CHROMIUM, SWITCHES

    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(SWITCHES))
        yield started
        started.close()

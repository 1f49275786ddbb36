"""What `make` installs is pinned: each version that the tests run with, to the byte."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
JOINED = (ROOT / "constraints.txt").read_text().replace("\\\n", " ")
LINES = [line for line in JOINED.splitlines() if line and not line.startswith("#")]
PINS = {canonicalize_name(line.partition("==")[0]): line for line in LINES}


@pytest.mark.parametrize("name", PINS)
def test_every_version_is_pinned_with_the_hashes_of_its_files(name: str) -> None:
    pin, *hashes = re.split(r"\s+--hash=sha256:", PINS[name].strip())
    assert re.fullmatch(r"[\w.-]+==[\w.]+( ; .*)?", pin)
    assert hashes
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in hashes)


def test_all_that_is_asked_for_is_pinned_but_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    asked = {canonicalize_name(Requirement(x).name) for x in [*project["dependencies"], *extras]}
    assert asked - PINS.keys() == {"torch", "saccade"}
    assert "setuptools" in PINS, "what has no wheel is built with it"


def test_the_tests_run_with_what_is_pinned() -> None:
    differing = {}
    for name, line in PINS.items():
        pinned = line.partition("==")[2].split()[0]
        try:
            if name != "setuptools" and version(name) != pinned:
                differing[name] = version(name)
        except PackageNotFoundError:  # such as what another system needs
            continue
    assert differing == {}


def test_make_takes_nothing_else() -> None:
    make = (ROOT / "Makefile").read_text()
    installs = [line for line in make.splitlines() if line.startswith("\t$(INSTALL)")]
    assert all("--require-hashes" in x or "$(TORCH)" in x or x.endswith(" -e .") for x in installs)
    assert all("--no-deps" in x for x in installs if "$(TORCH)" not in x)

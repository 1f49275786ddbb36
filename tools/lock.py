"""`make lock`: write the SHA-256 of every file of every pinned version into constraints.txt.

To move to another version, change it there and run this: pip then installs only what PyPI has under
that name today. Wheels for Pythons before 3.11 are left out.
"""

import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

FILE = Path(__file__).parent.parent / "constraints.txt"
LINK = re.compile(r'href="[^"#]*/([^"/#]+)#sha256=([0-9a-f]{64})"')
OLD = re.compile(r"cp(2\d|3\d|310)|pp\d+|py2")


def main() -> None:
    """Keep comments and pins as they are, in their order; only the hashes are new."""
    lines = [x for x in FILE.read_text().splitlines() if not x.lstrip().startswith("--hash")]
    pins = [line.removesuffix("\\").rstrip() for line in lines]
    with ThreadPoolExecutor(4) as pool:
        FILE.write_text("\n".join(pool.map(_locked, pins)) + "\n")


def _locked(pin: str) -> str:
    if not pin or pin.startswith("#"):
        return pin
    name, _, version = pin.partition(";")[0].strip().partition("==")
    address = f"https://pypi.org/simple/{canonicalize_name(name)}/"
    with urllib.request.urlopen(address, timeout=60) as answer:
        found = LINK.findall(answer.read().decode())
    hashes = sorted({digest for file, digest in found if _fits(unquote(file), Version(version))})
    if not hashes:
        raise SystemExit(f"PyPI has no {pin}")
    return " \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in hashes)])


def _fits(file: str, version: Version) -> bool:
    try:
        if not file.endswith(".whl"):
            return parse_sdist_filename(file)[1] == version
        _, its_version, _, tags = parse_wheel_filename(file)
    except ValueError:  # a form of old that pip does not install
        return False
    return its_version == version and any(
        tag.abi == "abi3" or not OLD.fullmatch(tag.interpreter) for tag in tags
    )


if __name__ == "__main__":
    main()

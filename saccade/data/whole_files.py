"""A file of the user's that is written whole or not at all: what was there stays until then."""

import os
import shutil
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; a link leads to it, and a pipe or a device just takes it.

    What goes wrong is an OSError, and leaves what was there.
    """
    place = Path(os.path.realpath(path))
    there = place.exists()
    if there and not place.is_file():
        place.write_bytes(content)
        return
    temporary = place.with_name(f".tmp-{place.name}")
    try:
        temporary.write_bytes(content)
        if there:
            shutil.copymode(place, temporary)
        temporary.replace(place)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise

"""A file of the user's that is written whole or not at all: what was there stays until then."""

import os
import shutil
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; a link leads to it, and a pipe or a device just takes it.

    What goes wrong is an OSError, and leaves what was there.
    """
    there = path.exists()
    if there and not path.is_file():  # such as /dev/stdout, where its real path names nothing
        path.write_bytes(content)
        return
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".tmp-{place.name}")
    try:
        temporary.write_bytes(content)
        if there:
            shutil.copymode(place, temporary)
        temporary.replace(place)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise

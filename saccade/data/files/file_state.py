"""What was found out about files, remembered for as long as nobody writes to them.

Their sizes, times and places on the disk say whether somebody may have. Of a file so young that
another write could bear the same time nothing is remembered.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from saccade.data.files.whole_files import write_whole

YOUNG = 2_000_000_000  # nanoseconds: coarser than the clock of any file system in use


def state(paths: Sequence[Path]) -> list[Any]:
    """Changes whenever a file is written or replaced: sizes, times and places on the disk."""
    stats = [path.stat() for path in paths]
    return [[s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev] for s in stats]


def recalled(note: Path, paths: Sequence[Path], find: Callable[[], Any]) -> Any:
    """What `find` says of the files, or said when it was last asked, if nobody wrote since.

    What it says goes through JSON. None is not remembered; nor is anything where nothing can be
    written.
    """
    now, begun = state(paths), time.time_ns()
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_bytes())
        if known["state"] == now:
            return known["found"]
    found = find()
    youngest = max((max(written, changed) for _, written, changed, *_ in now), default=0)
    if found is not None and youngest + YOUNG < begun and state(paths) == now:
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            write_whole(note, json.dumps({"state": now, "found": found}).encode())
    return found

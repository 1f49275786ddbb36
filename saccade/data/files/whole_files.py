"""A file of the user's that is written whole or not at all: what was there stays until then."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

_NO_MOVE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; a link leads to it, and a pipe or a device just takes it.

    What goes wrong is an OSError, and leaves what was there. Only where nothing may be moved into
    the file's place, such as a file mounted alone, or one's own in another's folder, is it written
    over.
    """
    there = path.exists()
    if there and not path.is_file():  # such as /dev/stdout, where its real path names nothing
        path.write_bytes(content)
        return
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".tmp-{token_hex(8)}")  # nobody else's, and never too long a name
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
        if there:
            shutil.copymode(place, temporary)
        temporary.replace(place)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if not there or error.errno not in _NO_MOVE:
            raise
        place.write_bytes(content)

"""How much a packed file may unpack to, so that a bomb is refused before it bursts.

Text packs to a third of its size, repetitive text to a twentieth; what packs to less than a
hundredth was made to do harm. The bound grows with the file, so that a corpus of many gigabytes
is read, and it is checked while reading: nobody's word is taken for the size.
"""

from saccade.errors import DataError
from saccade.printable import printable

RATIO = 100  # times its own size
FREE = 64_000_000  # bytes that any file may unpack to, however small it is
ROW = 16  # bytes that a row counts beside its text: an empty one takes memory, too


def refuse_bomb(name: object, *, packed: int, unpacked: int, way_out: str) -> None:
    """Stop where a file unpacks to more than an honest one would."""
    most = max(FREE, RATIO * packed)
    if unpacked > most:
        raise DataError(
            f"{printable(name)} takes up {packed:,} bytes and unpacks to over {most:,}: it looks "
            f"like a bomb; {way_out}"
        )

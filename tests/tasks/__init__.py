"""What tests of several tasks need."""

from saccade.data.rows import Rows


def sequences(rows: Rows) -> list[list[int]]:
    """The real sequences, one by one."""
    ends = rows.starts[1 : len(rows.lengths) + 1].tolist()
    return [rows.tokens[end - n : end].tolist() for n, end in zip(rows.lengths.tolist(), ends)]

"""When finished sentences leave the batch: copying the rest costs about as much as a step."""

SHARE = 0.25  # of the batch that must be finished


def enough_gone(over: list[bool]) -> bool:
    """Whether it pays to go on without those that are over."""
    return sum(over) >= max(1, SHARE * len(over))

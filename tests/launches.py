"""How many operations a call launches, which is what a small one costs on a GPU."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Launches(TorchDispatchMode):
    """Counts operations by name; those that only look at memory otherwise launch nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(func)] += not (func.is_view or "profiler" in str(func))
        return func(*args, **(kwargs or {}))


def launches(call: Callable[[], Any]) -> Counter[str]:
    """What a call launches when it is not the first."""
    call()
    with Launches() as mode:
        call()
    return +mode.counts

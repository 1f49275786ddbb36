"""The one recorder of CUDA graphs: a call is captured once, and then a GPU launches its kernels."""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

_CAPTURING = Lock()  # a process captures one call at a time


class CapturedCall:
    """The kernels of one call, which read and write where that call's tensors lay.

    `replay` launches them and no more. Calling copies new inputs to where the old ones lay, and
    gives back outputs that the next replay does not overwrite. Without a `warm_up` the caller has
    run the call before: kernels must be compiled and libraries loaded when it is captured. Calls
    that never run at the same time may share a `pool` of memory.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        *inputs: Any,
        stream: torch.cuda.Stream | None = None,
        pool: tuple[int, int] | None = None,
        warm_up: bool = True,
    ) -> None:
        self._inputs = tree_map(_clone, inputs)
        if warm_up:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                call(*self._inputs)
            torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with _CAPTURING, _uncollected():
            torch.cuda.synchronize()
            # Only this thread's calls must be capturable: others prepare batches meanwhile.
            how: dict[str, Any] = {"pool": pool, "capture_error_mode": "thread_local"}
            with torch.cuda.graph(graph, stream=stream, **how):
                self._outputs = call(*self._inputs)
        self.replay: Callable[[], None] = graph.replay

    def __call__(self, *inputs: Any) -> Any:
        for here, new in zip(tree_leaves(self._inputs), tree_leaves(inputs)):
            if _on_gpu(here):
                here.copy_(new, non_blocking=True)
        self.replay()
        return tree_map(_clone, self._outputs)


@contextmanager
def _uncollected() -> Generator[None]:
    """Nothing is cleared away meanwhile: a graph that goes would spoil the one being captured."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _clone(x: Any) -> Any:
    return x.clone() if _on_gpu(x) else x


def _on_gpu(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_cuda

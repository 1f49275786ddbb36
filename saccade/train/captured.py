"""A training step recorded on the GPU and replayed: Python need not launch its kernels again."""

import time
from collections.abc import Callable, Hashable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from saccade.errors import RunError

Scalar = Float[Tensor, ""]
Work = Callable[[list[Any], Scalar, Scalar], tuple[Scalar, Scalar]]
PLAIN_FIRST = 2  # compiles what is compiled, and gives the optimizer its state
MOST = 4  # recordings, each of which holds memory


class Captured:
    """Work on batches, recorded for each shape that comes again and again."""

    def __init__(self, work: Work) -> None:
        self._work, self._stream = work, torch.cuda.Stream()
        self._seen: dict[Hashable, int] = {}
        self._recordings: dict[Hashable, _Recording] = {}
        self.seconds = 0.0  # spent on recording

    def __call__(self, batches: list[Any], share: Scalar, pace: Scalar) -> tuple[Scalar, Scalar]:
        shape = tuple(batch.shape for batch in batches)
        self._seen[shape] = self._seen.get(shape, 0) + 1
        known = self._recordings.get(shape)
        if known is None and self._seen[shape] > PLAIN_FIRST and len(self._recordings) < MOST:
            known = self._recordings[shape] = self._record(batches, share, pace)
        # Gradients must be summed on the stream that recorded them, so all work runs on one.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            found = (
                self._work(batches, share, pace)
                if known is None
                else known.replay(batches, share, pace)
            )
        torch.cuda.current_stream().wait_stream(self._stream)
        return found

    def _record(self, batches: list[Any], share: Scalar, pace: Scalar) -> "_Recording":
        begun = time.perf_counter()
        try:
            recording = _Recording(self._work, self._stream, (batches, share, pace))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise RunError(
                f"the training step cannot be captured ({reason}); pass --train.no-capture"
            ) from error
        self.seconds += time.perf_counter() - begun
        return recording


class _Recording:
    """The kernels of one call; they read their inputs where that call's lay."""

    def __init__(self, work: Work, stream: torch.cuda.Stream, inputs: Any) -> None:
        self._inputs = tree_map(_own, inputs)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Only this thread's calls must suit a recording: others prepare batches meanwhile.
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._found = work(*self._inputs)

    def replay(self, *inputs: Any) -> tuple[Scalar, Scalar]:
        for here, new in zip(tree_leaves(self._inputs), tree_leaves(inputs)):
            if _moves(here):
                here.copy_(new, non_blocking=True)
        self._graph.replay()
        loss, norm = self._found
        return loss.clone(), norm.clone()


def _own(x: Any) -> Any:
    return x.clone() if _moves(x) else x


def _moves(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_cuda

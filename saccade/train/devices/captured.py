"""An update captured on the GPU and replayed: Python need not launch its kernels again."""

import time
from collections.abc import Callable, Hashable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.capture import CapturedCall
from saccade.errors import RunError

Scalar = Float[Tensor, ""]
Update = Callable[[list[Any], Scalar, Scalar], tuple[Scalar, Scalar]]
PLAIN_FIRST = 2  # compiles what is compiled, and gives the optimizer its state
MOST = 8  # captured shapes, each of which holds its inputs; they share the rest of their memory


class CapturedUpdate:
    """An update on batches, captured for each shape that comes again and again."""

    def __init__(self, update: Update) -> None:
        self._update, self._stream = update, torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: dict[Hashable, int] = {}
        self._captured: dict[Hashable, CapturedCall] = {}
        self.seconds = 0.0  # spent on capturing

    def __call__(self, batches: list[Any], share: Scalar, pace: Scalar) -> tuple[Scalar, Scalar]:
        shape = tuple(batch.shape for batch in batches)
        self._seen[shape] = self._seen.get(shape, 0) + 1
        update = self._captured.get(shape)
        if update is None and self._seen[shape] > PLAIN_FIRST and len(self._captured) < MOST:
            update = self._captured[shape] = self._capture(batches, share, pace)
        # Gradients must be summed on the stream that captured them, so all updates run on one.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss, norm = (update or self._update)(batches, share, pace)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss, norm

    def _capture(self, *inputs: Any) -> CapturedCall:
        begun = time.perf_counter()
        try:
            where: dict[str, Any] = {"stream": self._stream, "pool": self._pool}
            captured = CapturedCall(self._update, *inputs, **where, warm_up=False)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise RunError(
                f"the training step cannot be captured ({reason}); pass --train.no-capture"
            ) from error
        self.seconds += time.perf_counter() - begun
        return captured

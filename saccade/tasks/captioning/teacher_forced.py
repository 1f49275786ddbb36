"""Make a captioner say given words, and see where it looks: at the picture, and within it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import Trace, looking
from saccade.attention.look.watching import sites
from saccade.data.vocabulary import END, START
from saccade.tasks.captioning.captioner import Describer
from saccade.tasks.language.teacher_forced import Reread, chosen


@torch.inference_mode()
def reread_caption(
    describer: Describer,
    picture: UInt8[Tensor, "3 H W"],
    tokens: list[int],
    *,
    finished: bool,
    keep: Keep,
) -> Reread:
    """Every site's look, of the eye and of the words; none where a model has no attention.

    A finished caption also says its end. The words are said one by one, as when they were found.
    """
    model: Any = describer.model
    said = [*tokens, END] if finished else tokens
    with _watched(model, keep) as trace:
        state = model.start(picture[None].to(describer.device))
        scores: list[Tensor] = []
        for token in [START, *said[:-1]]:
            now, state = model.step(torch.tensor([token], device=describer.device), state)
            scores.append(now)
        seen = {} if trace is None else {name: trace[name].cpu() for name in trace}
    axes = {} if trace is None else trace.axes
    return Reread(seen, axes, *chosen(torch.cat(scores), said))


def _watched(model: nn.Module, keep: Keep) -> AbstractContextManager[Trace | None]:
    return looking(model, keep=keep) if sites(model) else nullcontext()

"""Make a captioner say given words, and see where it looks: at the image, and within it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import Trace, looking
from saccade.attention.look.watching import sites
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.teacher_forced import TeacherForced, word_choices


@torch.inference_mode()
def teacher_forced_caption(
    captioner: ImageCaptioner,
    image: UInt8[Tensor, "3 H W"],
    tokens: list[int],
    *,
    finished: bool,
    keep: Keep,
) -> TeacherForced:
    """Every site's look, of images and of words; none where a model has no attention.

    A finished caption also says its end.
    """
    model: Any = captioner.model
    vocabulary = captioner.vocabulary
    said = [*tokens, vocabulary.end] if finished else tokens
    written = torch.tensor([[vocabulary.start, *said[:-1]]], device=captioner.device)
    with _watched(model, keep) as trace:
        hidden = model.teacher_forced(image[None].to(captioner.device), written)
        seen = {} if trace is None else {name: trace[name].cpu() for name in trace}
    axes = {} if trace is None else trace.axes
    return TeacherForced(seen, axes, *word_choices(model.output(hidden[0]), said))


def _watched(model: nn.Module, keep: Keep) -> AbstractContextManager[Trace | None]:
    return looking(model, keep=keep) if sites(model) else nullcontext()

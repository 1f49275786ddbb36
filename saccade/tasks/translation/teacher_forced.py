"""A translator made to say given words."""

from typing import Any

import torch

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.tasks.teacher_forced import TeacherForced, word_choices
from saccade.tasks.translation.task import encode_source
from saccade.tasks.translation.translator import Translator


@torch.inference_mode()
def teacher_forced_translation(
    translator: Translator,
    source: str,
    tokens: list[int],
    *,
    finished: bool,
    keep: Keep,
    only: str = "",
) -> TeacherForced:
    """Translate a text into given words; a finished translation also says its end.

    Watched are the sites whose names end in `only`, all by default.
    """
    model: Any = translator.model
    vocabulary = translator.vocabulary
    said = [*tokens, vocabulary.end] if finished else tokens
    reading = encode_source(vocabulary, source)[None].to(translator.device)
    written = torch.tensor([[vocabulary.start, *said[:-1]]], device=translator.device)
    with looking(model, keep=keep, only=only) as trace:
        hidden = model(reading, torch.tensor([reading.shape[1]]), written)
        seen = {name: trace[name].cpu() for name in trace}
    return TeacherForced(seen, trace.axes, *word_choices(model.output(hidden)[0], said))

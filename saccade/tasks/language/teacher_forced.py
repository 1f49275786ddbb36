"""A language model made to read a given text."""

from typing import Any

import torch

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.errors import DataError
from saccade.tasks.language.writer import Writer
from saccade.tasks.teacher_forced import TeacherForced, word_choices


@torch.inference_mode()
def teacher_forced_text(
    writer: Writer, tokens: list[int], *, keep: Keep, only: str = ""
) -> TeacherForced:
    """Read a text; the word after the last has choices too.

    Watched are the sites whose names end in `only`, all by default.
    """
    check_reach(writer, tokens)
    model: Any = writer.model
    with looking(model, keep=keep, only=only) as trace:
        hidden = model(torch.tensor([tokens], device=writer.device))
        seen = {name: trace[name].cpu() for name in trace}
    return TeacherForced(seen, trace.axes, *word_choices(model.output(hidden)[0], tokens[1:]))


def check_reach(writer: Writer, tokens: list[int]) -> None:
    """Refuse a text that is longer than the model sees."""
    model: Any = writer.model
    if model.reach is not None and len(tokens) > model.reach:
        raise DataError(
            f"the text has {len(tokens)} tokens, but the model sees {model.reach}; shorten it"
        )

"""A text encoder made to read a text with blanks while somebody looks."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.attention.look.observe import observe
from saccade.attention.look.rollout import rolling_out
from saccade.tasks.masked.blanks import BlankText
from saccade.tasks.masked.filler import BlankFiller
from saccade.tasks.teacher_forced import TeacherForced

ROLLOUT = "rollout"


@torch.inference_mode()
def watched_text(
    filler: BlankFiller, text: BlankText, *, keep: Keep, only: str = ""
) -> TeacherForced:
    """Where each word looked; watched are the sites whose names end in `only`, all by default.

    Of an ELECTRA both parts read the text.
    """
    with looking(filler.model, keep=keep, only=only) as trace:
        _read(filler, text)
        seen = {name: trace[name].cpu() for name in trace}
    return TeacherForced(seen, trace.axes, [], [])


@torch.inference_mode()
def rolled_out(filler: BlankFiller, text: BlankText, *, keep: Keep) -> dict[str, Glance]:
    """What each word has read of each through all layers, by name: one for each stack of these."""
    with rolling_out(filler.model, buckets=len(text.tokens)) as rollout:
        _read(filler, text)
    found: dict[str, Float[Tensor, "1 T T"]] = rollout.mixture
    names = [ROLLOUT] if len(found) == 1 else [f"{stack}.{ROLLOUT}" for stack in found]
    return {name: observe(x[:, None], keep).cpu() for name, x in zip(names, found.values())}


def _read(filler: BlankFiller, text: BlankText) -> None:
    model: Any = filler.model
    rows, types = filler.rows([text])
    model(rows, types)
    if filler.fills is not model:
        filler.fills(rows, types)

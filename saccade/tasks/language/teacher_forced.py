"""Make a model say given words, and see where it looks for each of them.

One pass over all words gives what decoding gave word by word, at every site and not only at those
that decoding runs, together with how probable each word was and what else might have been said.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.attention.look.watching import sites
from saccade.data.vocabulary import END, START
from saccade.errors import ConfigError, DataError
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.task import encode_source
from saccade.tasks.translation.translator import Translator

CHOICES = 5  # words that are named for each place


@dataclass(frozen=True)
class Reread:
    """What was seen at each site, in the order in which they run, and how words were chosen."""

    sites: dict[str, Glance]
    axes: dict[str, tuple[Axis, Axis]]
    log_p: list[float]
    choices: list[list[tuple[int, float]]]


@torch.inference_mode()
def reread_translation(
    translator: Translator, source: str, tokens: list[int], *, finished: bool, keep: Keep
) -> Reread:
    """Translate a text into given words; a finished translation also says its end."""
    model: Any = translator.model
    _check(model)
    said = [*tokens, END] if finished else tokens
    reading = encode_source(translator.vocabulary, source)[None].to(translator.device)
    written = torch.tensor([[START, *said[:-1]]], device=translator.device)
    with looking(model, keep=keep) as trace:
        features = model(reading, torch.tensor([reading.shape[1]]), written)
        seen = {name: trace[name].cpu() for name in trace}
    return Reread(seen, trace.axes, *chosen(model.output(features)[0], said))


@torch.inference_mode()
def reread_text(writer: Writer, tokens: list[int], *, keep: Keep) -> Reread:
    """Read a text; the word after the last has choices too."""
    model: Any = writer.model
    _check(model)
    if model.reach is not None and len(tokens) > model.reach:
        raise DataError(
            f"the text has {len(tokens)} tokens, but the model sees {model.reach}; shorten it"
        )
    with looking(model, keep=keep) as trace:
        features = model(torch.tensor([tokens], device=writer.device))
        seen = {name: trace[name].cpu() for name in trace}
    return Reread(
        seen,
        trace.axes,
        *chosen(model.output(features)[0], tokens[1:]),
    )


def _check(model: Any) -> None:
    if not sites(model):
        raise ConfigError(f"{type(model).__name__} has no attention to look at")


def chosen(
    logits: Float[Tensor, "T V"], said: list[int]
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """How probable each word was, and the most probable ones at its place."""
    log_p = logits.float().log_softmax(dim=-1).cpu()
    top = log_p.topk(min(CHOICES, log_p.shape[-1]), dim=-1)
    choices = [
        list(zip(tokens, p)) for tokens, p in zip(top.indices.tolist(), top.values.exp().tolist())
    ]
    return log_p[range(len(said)), said].tolist(), choices

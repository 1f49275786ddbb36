"""Make a text-to-image model draw given codes, and see which words and cells each looked at."""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import Trace, looking
from saccade.models.image_tokens.dalle import SEES, Dalle
from saccade.tasks.text_to_image.drawer import ImageDrawer


@dataclass(frozen=True)
class DrawnLook:
    """Where the model looked as it chose each code, at every layer.

    A row is a cell: what was looked at when its code was chosen, so neither itself nor what came
    later. Columns are the tokens of the text with its start and end, then all that fills it up as
    one, then the cells. `sees` says what of the image each layer may look at.
    """

    tokens: list[int]
    sites: dict[str, Float[Tensor, "N cells S"]]
    sees: dict[str, str]
    log_p: list[float]

    @property
    def special(self) -> int:
        """Columns before the first cell."""
        return len(self.tokens) + 1


@torch.inference_mode()
def teacher_forced_image(drawer: ImageDrawer, prompt: str, codes: list[int]) -> DrawnLook:
    """One pass over all codes; what decoding saw code by code."""
    model, vocabulary = drawer.model, drawer.vocabulary
    tokens = [vocabulary.start, *drawer.read(prompt), vocabulary.end]
    drawn = torch.tensor([codes], device=drawer.device)
    given = torch.cat([drawer.text_tokens([prompt]), drawn[:, :-1]], dim=1)
    keep = Keep(dense=given.shape[1], map_side=0, top=0)
    with looking(model, keep=keep) as trace:
        hidden = model.words.decode(given)[0, model.config.text - 1 :]  # (cells, D)
        names = list(trace)
        sites = {name: _of_cells(model, len(tokens), trace, name) for name in names}
    log_p = model.output(hidden).float().log_softmax(dim=-1)
    told = log_p.gather(1, drawn[0, :, None])[:, 0]
    sees = {name: SEES[kind] for name, kind in zip(names, model.layer_masks.of_layers, strict=True)}
    return DrawnLook(tokens, sites, sees, told.cpu().tolist())


def _of_cells(model: Dalle, words: int, trace: Trace, name: str) -> Float[Tensor, "N cells S"]:
    """The rows that choose codes; what fills up the text is one column, and the last code, which
    nobody has seen, has one too.
    """
    text, weights = model.config.text, trace[name].weights
    assert weights is not None
    rows = weights[0, :, text - 1 :].float().cpu()  # (N, cells, text + cells − 1)
    fills = rows[..., words:text].sum(dim=-1, keepdim=True)
    unseen = rows.new_zeros(*rows.shape[:2], 1)
    return torch.cat([rows[..., :words], fills, rows[..., text:], unseen], dim=-1)


def cells_seen(model: Dalle) -> dict[str, Bool[Tensor, "cells cells"]]:
    """Of each kind of layer that there is, which cells may be looked at when a code is chosen."""
    text, cells = model.config.text, model.config.cells
    mask = partial(model.layer_masks.mask, device=torch.device("cpu"))
    return {
        SEES[kind]: mask(kind)[0, 0, text - 1 : text + cells - 1, text:]
        for kind in sorted(set(model.layer_masks.of_layers))
    }

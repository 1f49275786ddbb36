"""What a decision about a text came from: maps over its tokens.

`relevance` weighs attention by the gradient of the score that is asked about (Chefer et al. 2021,
arXiv:2103.15679); `rollout` follows attention through all layers whatever is asked (Abnar and
Zuidema 2020, arXiv:2005.00928). A map says what a model made use of, by one of several rules: it is
no explanation.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.look.on_image import all_weights
from saccade.attention.look.relevance import raising, relevance_through
from saccade.attention.look.rollout import one_hot, roll
from saccade.attention.look.view import View
from saccade.attention.look.watching import sites, watching
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.protocol import ReadsElsewhere, ScoresTexts


class Decision(NamedTuple):
    """A score that is asked about: the token at which it is read, its row and its label.

    Without a token it is read from the mean of all.
    """

    token: int | None
    row: int
    label: int


@dataclass(frozen=True)
class DecisionMaps:
    """Maps of one text, a row for each decision, and the attention of each layer.

    A row leaves out the token at which its decision is read, if any, and sums to one, or to zero
    where by its rule nothing in the text matters.
    """

    relevance: Float[Tensor, "R T"]
    rollout: Float[Tensor, "R T"]
    attention: dict[str, Float[Tensor, "N T T"]]


def decision_maps(
    model: ScoresTexts,
    tokens: Sequence[int],
    types: Sequence[int],
    decisions: Sequence[Decision],
) -> DecisionMaps:
    """For one text; every decision costs a backward pass."""
    layers: dict[str, Float[Tensor, "1 N T T"]] = {}
    own = sites(_module(model))

    def keep(name: str, seen: View | Float[Tensor, "B N T S"]) -> Tensor:
        weights = all_weights(seen)
        if name not in own:
            _check_followable(name, weights, len(tokens))
        elif not weights.requires_grad:  # of a model that is frozen
            weights = weights.detach().requires_grad_()
        layers[name] = weights
        return weights  # what is read by them has their gradient

    with _gradients(model) as device, watching(_module(model), keep, gradients=True):
        rows, kinds = _alone(tokens, types, device)
        scores = model.scores(model(rows, kinds), rows)
        found = [_relevance(scores, list(layers.values()), one) for one in decisions]
    held = {name: weights.detach() for name, weights in layers.items()}
    mixture = _rolled_out(list(held.values()))
    places = [one.token for one in decisions]
    return DecisionMaps(
        _without_itself(torch.stack(found), places).cpu(),
        _without_itself(torch.stack([row_at(mixture[0], one) for one in places]), places).cpu(),
        {name: weights[0].cpu() for name, weights in held.items()},
    )


def row_at(matrix: Float[Tensor, "T T"], token: int | None) -> Float[Tensor, " T"]:
    """What a decision takes of a matrix: the row of the token where it is read, or their mean."""
    return matrix.mean(dim=0) if token is None else matrix[token]


def read_at(model: ScoresTexts, tokens: int) -> int | None:
    """At which of so many tokens a text is read: the first, unless the model says otherwise."""
    return model.read_at(tokens) if isinstance(model, ReadsElsewhere) else 0


def _check_followable(name: str, weights: Float[Tensor, "B N T S"], tokens: int) -> None:
    """Refuse what another's module shows if decisions cannot be followed through it."""
    if weights.shape[2:] != (tokens, tokens):
        seen = f"{weights.shape[2]} places look at {weights.shape[3]}"
        raise ConfigError(
            f"{name} pools or cuts the text: {seen}, where it has {tokens} tokens; what a decision "
            "came from can be followed through full attention alone: take another model"
        )
    if not weights.requires_grad:
        raise ConfigError(
            f"{name} does not show weights that it reads by, so nothing tells what raises a score; "
            "take a model whose attention is a plain softmax"
        )


def _alone(
    tokens: Sequence[int], types: Sequence[int], device: torch.device
) -> tuple[Rows, Int[Tensor, " words"]]:
    rows = Rows.of(torch.tensor(list(tokens)), torch.tensor([len(tokens)]))
    return rows.to(device), torch.tensor(list(types), device=device)


def _relevance(
    scores: Float[Tensor, "n C"], layers: list[Float[Tensor, "1 N T T"]], decision: Decision
) -> Float[Tensor, " T"]:
    """R[t], of the token t at which the score is read; the mean over t where it is read of all."""
    score = scores[decision.row, decision.label]
    slopes = torch.autograd.grad(score, layers, retain_graph=True, materialize_grads=True)
    positive = [raising(layer.detach(), slope) for layer, slope in zip(layers, slopes)]
    return row_at(relevance_through(positive)[0], decision.token)


def _rolled_out(layers: list[Float[Tensor, "1 N T T"]]) -> Float[Tensor, "1 T T"]:
    mixture = one_hot(layers[0], layers[0].shape[-1])
    for layer in layers:
        mixture = roll(layer, mixture)
    return mixture


def _without_itself(
    rows: Float[Tensor, "R T"], places: Sequence[int | None]
) -> Float[Tensor, "R T"]:
    """A residual takes most of a token along; what it got from others is what there is to see."""
    own = torch.zeros_like(rows, dtype=torch.bool)
    for row, place in enumerate(places):
        if place is not None:
            own[row, place] = True
    others = rows.masked_fill(own, 0.0)
    total = others.sum(dim=1, keepdim=True)
    return others / torch.where(total > 0, total, 1.0)


def _module(model: ScoresTexts) -> nn.Module:
    assert isinstance(model, nn.Module)
    return model


@contextmanager
def _gradients(model: ScoresTexts) -> Generator[torch.device, None, None]:
    """Compute with gradients, whoever forbade it outside, and drop nothing."""
    module = _module(model)
    training = module.training
    module.eval()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield next(module.parameters()).device
    finally:
        module.train(training)

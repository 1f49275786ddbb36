"""What a decision came from, against finite differences and against the rule for images."""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.attention.look.on_image import LayerWeights, followed_back, read_class
from saccade.attention.look.relevance import raising, relevance_through
from saccade.attention.look.watching import watching
from saccade.data.batching.rows import Rows
from saccade.models.text.bert import Bert, BertConfig
from saccade.models.text.text_encoder import HeadKind
from saccade.tasks.understanding.maps import Decision, decision_maps

TOKENS, TYPES = [1, 5, 6, 7, 2, 8, 9, 2], [0, 0, 0, 0, 0, 1, 1, 1]


def fresh(head: HeadKind, *, depth: int = 2) -> Bert:
    torch.manual_seed(0)
    sizes = {"vocabulary": 12, "width": 8, "heads": 2, "hidden": 16, "longest": 16}
    model = BertConfig(**sizes, depth=depth, head=head, labels=3, dropout=0.2).build().double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return model


def silent(name: str, seen: Any) -> None: ...


def scores(model: Bert, answer: Any = silent) -> Tensor:
    rows = Rows.of(torch.tensor(TOKENS), torch.tensor([len(TOKENS)]))
    with watching(model.eval(), answer):
        return model.scores(model(rows, torch.tensor(TYPES)), rows).detach()


def slope_times_weight(model: Bert, name: str, row: int, label: int) -> Tensor:
    """Each weight of a site times the slope of a score in it, by finite differences."""
    held: dict[str, Tensor] = {}

    def keep(site: str, seen: Any) -> None:
        held[site] = seen.weights()

    scores(model, keep)
    weights = held[name]
    slopes = torch.zeros_like(weights)
    for place in range(weights.numel()):
        step = torch.zeros_like(weights).view(-1)
        step[place] = 1e-6

        def moved(sign: int, step: Tensor = step) -> float:
            def answer(site: str, seen: Any) -> Tensor | None:
                return seen.weights() + sign * step.view_as(weights) if site == name else None

            return scores(model, answer)[row, label].item()

        slopes.view(-1)[place] = (moved(1) - moved(-1)) / 2e-6
    return slopes * weights


@pytest.mark.slow
@pytest.mark.parametrize("head", ["text", "tokens"])
def test_relevance_is_attention_times_slope_through_all_layers(head: HeadKind) -> None:
    model = fresh(head)
    decision = Decision(0, 0, 2) if head == "text" else Decision(3, 3, 1)
    products = [
        slope_times_weight(model, f"encoder.{layer}.self", decision.row, decision.label)
        for layer in range(2)
    ]
    expected = relevance_through([one.relu().mean(dim=1) for one in products])[0, decision.token]
    expected[decision.token] = 0
    found = decision_maps(model, TOKENS, TYPES, [decision]).relevance[0]
    torch.testing.assert_close(found, expected / expected.sum(), rtol=1e-4, atol=1e-7)


def test_it_is_the_rule_for_images_read_in_one_row() -> None:
    generator = torch.Generator().manual_seed(3)
    layers = [torch.rand(1, 2, 7, 7, generator=generator) for _ in range(3)]
    slopes = [torch.randn(1, 2, 7, 7, generator=generator) for _ in range(3)]
    text = relevance_through([raising(a, s) for a, s in zip(layers, slopes)])
    axis = Axis("cells", "grid", 2, 3, special=1, pixels=1.0)
    seen = [LayerWeights((a * s).relu(), axis, axis) for a, s in zip(layers, slopes)]
    image, _ = followed_back(read_class(axis, 1), axis, seen)
    torch.testing.assert_close(text[0, 0, 1:], image.flatten())


def test_rollout_mixes_half_of_each_layer() -> None:
    model, mixture = fresh("text"), torch.eye(len(TOKENS), dtype=torch.float64)
    found = decision_maps(model, TOKENS, TYPES, [Decision(0, 0, 0), Decision(4, 0, 1)])
    for seen in found.attention.values():
        mixture = 0.5 * mixture + 0.5 * seen.mean(dim=0) @ mixture
    for row, place in enumerate((0, 4)):
        expected = mixture[place].clone()
        expected[place] = 0
        torch.testing.assert_close(found.rollout[row], expected / expected.sum())


def test_rows_sum_to_one_and_the_model_is_left_as_it_was() -> None:
    model = fresh("tokens").train()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with torch.inference_mode():
        found = decision_maps(model, TOKENS, TYPES, [Decision(i, i, 0) for i in range(1, 4)])
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    for rows in (found.relevance, found.rollout):
        torch.testing.assert_close(rows.sum(dim=1), torch.ones(3, dtype=torch.float64))
        assert rows.min() >= 0
    again = decision_maps(model, TOKENS, TYPES, [Decision(2, 2, 0)])
    torch.testing.assert_close(again.relevance[0], found.relevance[1])


def test_what_nothing_speaks_for_has_an_empty_map() -> None:
    model = fresh("text", depth=1)
    with torch.no_grad():
        assert model.classifier is not None
        model.classifier.weight.zero_()
    assert decision_maps(model, TOKENS, TYPES, [Decision(0, 0, 0)]).relevance.sum() == 0

"""A row of a padded batch is seen as it is seen alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import saccade
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import Trace
from saccade.attention.look.observe import observe
from saccade.attention.look.padding import AxisTokens, visible_keys
from saccade.attention.look.view import View
from saccade.models import TransformerConfig
from tests.attention.kernels import draws
from tests.attention.look.modules.test_huggingface import PAIRS, TEXTS, built
from tests.marks import one_fast

LONG = 7
KEEPS = {"dense": Keep(zoom=True), "maps": Keep(dense=0, map_side=3, top=3)}


def same(one: Glance, other: Glance, *, maps: bool) -> None:
    """Everything, also the places; maps of another size have other cells."""
    assert one.keys == other.keys
    assert one.tensors().keys() == other.tensors().keys()
    for name, x in other.tensors().items():
        if maps or not name.endswith("map"):
            torch.testing.assert_close(one.tensors()[name], x, atol=2e-5, rtol=1e-4, msg=name)
    if other.zoom is not None:
        assert one.zoom is not None
        assert one.zoom.q.shape == other.zoom.q.shape


def traced(model: nn.Module, keep: Keep, given: dict[str, Tensor]) -> Trace:
    with torch.no_grad(), saccade.looking(model, keep=keep) as trace:
        model(**given)
    return trace


def padded(side: str, tokens: int) -> dict[str, Tensor]:
    mask = torch.ones(2, LONG, dtype=torch.long)
    mask[1, slice(0, LONG - tokens) if side == "left" else slice(tokens, LONG)] = 0
    ids = torch.randint(3, 50, (2, LONG), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids * mask, "attention_mask": mask}


def positions(model: Any, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Where tokens stand: models count from the first place, not from the first token."""
    kind = model.config.model_type
    if kind not in ("gpt2", "llama", "bert"):
        return {}
    return {"position_ids": (given["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)}


@pytest.mark.parametrize("keep", one_fast(KEEPS.values()), ids=KEEPS)
@pytest.mark.parametrize("eager", one_fast([False, True]))
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_a_row_of_a_padded_batch_is_seen_as_alone(
    kind: str, side: str, keep: Keep, *, eager: bool
) -> None:
    model, given = built(TEXTS[kind]), padded(side, 4)
    if eager:
        model.set_attn_implementation("eager")
    whole = traced(model, keep, {**given, **positions(model, given)})
    for row in range(2):
        tokens = given["attention_mask"][row].bool()
        alone = traced(model, keep, {"input_ids": given["input_ids"][row : row + 1, tokens]})
        for site in alone:
            own = whole[site].unpadded(row)
            same(own, alone[site], maps=own.cell == alone[site].cell)
            blind = whole[site].where[row] < 0
            assert torch.equal(blind, ~tokens.expand_as(blind))
            assert whole[site].received[row][:, ~tokens].eq(0).all()


@pytest.mark.parametrize("kind", ["bart", "marian"])
def test_the_mask_of_a_decoder_says_who_looks_across(kind: str) -> None:
    model, given = built(PAIRS[kind]), padded("right", 4)
    target = padded("right", 3)
    both = {f"decoder_{name}": value for name, value in target.items()}
    whole = traced(model, Keep(), {**given, **both})
    own = {
        "input_ids": given["input_ids"][1:, :4],
        "decoder_input_ids": target["input_ids"][1:, :3],
    }
    alone = traced(model, Keep(), own)
    for site in ("decoder.1.self", "decoder.1.cross", "encoder.1.self"):
        same(whole[site].unpadded(1), alone[site], maps=True)


def test_our_own_encoder_knows_its_padding_and_who_is_read() -> None:
    torch.manual_seed(0)
    model = TransformerConfig(vocabulary=10, width=8, depth=2, heads=2, hidden=16).build().eval()
    source, target = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([[1, 4], [1, 7]])
    with torch.no_grad(), saccade.looking(model) as whole:
        model(source, torch.tensor([3, 2]), target)
    with torch.no_grad(), saccade.looking(model) as alone:
        model(source[1:, :2], torch.tensor([2]), target[1:])
    for site in alone:
        same(whole[site].unpadded(1), alone[site], maps=True)


def test_holes_look_nowhere_and_a_row_of_nothing_is_blank() -> None:
    q, k = draws(3, 2, 6, 4, seed=0).float(), draws(3, 2, 6, 4, seed=1).float()
    mask = torch.ones(3, 1, 1, 6, dtype=torch.bool)
    mask[1, ..., [0, 2]] = False
    mask[2] = False
    view = View(q, k, 0.5, mask=mask)
    queries, keys = AxisTokens().of(view, "text", "text")
    glance = observe(view, Keep(), queries=queries, keys=keys)
    assert glance.where[1, 0].ge(0).tolist() == [False, True, False, True, True, True]
    assert glance.received is not None
    torch.testing.assert_close(glance.received.sum(dim=2)[:2, 0], torch.tensor([6.0, 4.0]))
    assert glance.where[2].eq(-1).all()
    assert glance.unpadded(1).weights.shape == (1, 2, 5, 5)  # type: ignore[union-attr]


def test_what_hides_itself_from_itself_is_no_padding() -> None:
    """A mask of the diagonal, as some vision models have it."""
    view = View(draws(1, 1, 4, 4, seed=0), draws(1, 1, 4, 4, seed=1), 0.5)
    view = replace(view, mask=~torch.eye(4, dtype=torch.bool)[None, None])
    assert visible_keys(view, itself=True) is None
    one_hot = torch.eye(4)[None, None, [3, 3, 3, 3]]
    assert visible_keys(one_hot, itself=False) is None  # of one that chooses among others
    assert visible_keys(torch.full((1, 2, 3, 3), 1 / 3), itself=True) is None


def minilm(size: int) -> Callable[[], nn.Module]:
    config = hf.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=size,
    )  # fmt: skip
    return lambda: hf.BertModel(config)


def test_maps_of_a_long_padded_row_begin_at_its_first_token() -> None:
    model, mask = built(minilm(300)), torch.ones(2, 300, dtype=torch.long)
    mask[1, :101] = 0
    ids = torch.randint(3, 50, (2, 300), generator=torch.Generator().manual_seed(0))
    place = (mask.cumsum(dim=1) - 1).clamp(min=0)
    keep = Keep(dense=0, map_side=64, top=3)
    given = {"input_ids": ids, "attention_mask": mask, "position_ids": place}
    whole = traced(model, keep, given)["encoder.0.self"].unpadded(1)
    alone = traced(model, replace(keep, map_side=32), {"input_ids": ids[1:, 101:]})[
        "encoder.0.self"
    ]
    assert whole.cell == alone.cell == (8, 8)
    same(whole, alone, maps=True)

"""What a decision of another's model came from: as of ours with the same weights, or refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.errors import ConfigError
from saccade.models.names.described import described
from saccade.models.names.pretrained import load_pretrained
from saccade.models.text.bert import BertConfig
from saccade.tasks.understanding.maps import Decision, decision_maps
from tests.models.foreigners import NATIVE, save, told
from tests.models.text.test_foreign import config_of

TOKENS, TYPES = [2, 15, 26, 37, 3, 48, 59, 3], [0] * 8
FIRST = Decision(0, 0, 1)


@pytest.mark.parametrize("kind", NATIVE)
def test_maps_are_those_of_our_own_model_with_the_same_weights(kind: str, tmp_path: Path) -> None:
    save(tmp_path, kind)
    native = described(tmp_path)
    assert isinstance(native, BertConfig)
    ours = replace(native, head="text", pooling="tanh").build().eval()
    theirs = config_of(kind).build().eval()
    for model in (ours, theirs):
        load_pretrained(model, tmp_path)
    head = {"pooler": "pooler", "classifier": "classifier"}
    for one, other in head.items():
        theirs.get_submodule(one).load_state_dict(ours.get_submodule(other).state_dict())
    wanted, found = (decision_maps(one, TOKENS, TYPES, [FIRST]) for one in (ours, theirs))
    assert list(found.attention) == ["encoder.0.self", "encoder.1.self"]
    close: Any = {"atol": 1e-5, "rtol": 1e-4}
    for one, other in zip(wanted.attention.values(), found.attention.values()):
        torch.testing.assert_close(one, other, **close)
    torch.testing.assert_close(found.rollout, wanted.rollout, **close)
    torch.testing.assert_close(found.relevance, wanted.relevance, **close)
    assert found.relevance.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", ["albert", "deberta-v2", "t5", "xlnet", "mpnet", "bart"])
def test_attention_is_what_the_library_itself_reports(kind: str, tmp_path: Path) -> None:
    theirs: Any = save(tmp_path, kind)
    model = told(tmp_path).build().eval()
    load_pretrained(model, tmp_path)
    maps = decision_maps(model, TOKENS, TYPES, [FIRST, Decision(None, 0, 0)])
    theirs.set_attn_implementation("eager")
    encoder = theirs.get_encoder() if theirs.config.is_encoder_decoder else theirs
    wanted = encoder(input_ids=torch.tensor([TOKENS]), output_attentions=True).attentions
    assert len(wanted) == len(maps.attention)
    for one, other in zip(wanted, maps.attention.values()):
        torch.testing.assert_close(one[0].detach(), other, atol=1e-5, rtol=1e-4)
    assert maps.relevance.sum(dim=1).tolist() == pytest.approx([1, 1], abs=1e-5)
    assert maps.relevance[0, 0] == 0 < maps.relevance[1, 0]  # only the mean has itself as well


def test_a_decision_that_is_read_of_all_tokens_has_the_mean_of_their_rows() -> None:
    torch.manual_seed(0)
    model = config_of("t5", reads="mean").build().eval()
    every = [Decision(place, 0, 0) for place in range(len(TOKENS))]
    found = decision_maps(model, TOKENS, TYPES, [Decision(None, 0, 0), *every])
    rows = torch.stack(list(found.attention.values())).mean(dim=1)  # of the heads
    mixture = torch.eye(len(TOKENS))
    for layer in rows:
        mixed = layer + torch.eye(len(TOKENS))
        mixture = mixed / mixed.sum(dim=1, keepdim=True) @ mixture
    torch.testing.assert_close(found.rollout[0], mixture.mean(dim=0), atol=1e-5, rtol=1e-4)


def test_what_pools_or_does_not_attend_is_refused_in_one_line() -> None:
    for kind, message in (
        ("funnel", r"encoder.1.self pools or cuts the text: 4 places look at 8"),
        ("fnet", "has no attention to look at"),
    ):
        model = config_of(kind).build().eval()
        with pytest.raises(ConfigError, match=message) as caught:
            decision_maps(model, TOKENS, TYPES, [FIRST])
        assert "\n" not in str(caught.value)
    model = config_of("albert").build().eval().requires_grad_(False)
    with pytest.raises(ConfigError, match="does not show weights that it reads by"):
        decision_maps(model, TOKENS, TYPES, [FIRST])

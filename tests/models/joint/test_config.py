"""What a ViLBERT may not be, and what is said then."""

import re
from typing import Any

import pytest

from saccade.errors import ConfigError
from saccade.models import PRESETS, preset
from saccade.models.joint.config import VilbertConfig
from saccade.models.text.bert import BertConfig

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "width": ({"width": 0}, "width=0 must be at least 1"),
    "regions": ({"region_hidden": 0}, "region_hidden=0 must be at least 1"),
    "joins": ({"joins": 0}, "joins=0 must be at least 1"),
    "bins": ({"bins": 0}, "bins=0 must be at least 1"),
    "dropout": ({"dropout": 1.5}, "dropout=1.5 "),
    "heads": ({"width": 770}, "width=770 does not divide into heads=12"),
    "region heads": (
        {"region_width": 1020},
        "region_width=1020 does not divide into region_heads=8",
    ),
    "join heads": ({"join_heads": 3}, "join_width=1024 does not divide into join_heads=3"),
    "too many joins": (
        {"joins": 7},
        "joins=7: a layer of words and one of regions follow each; depth=12 and region_depth=6 "
        "must be as many at least",
    ),
    "stage": ({"stage": -1}, "stage=-1, region_classes=0 must be 0 or more"),
    "classes": ({"region_classes": -2}, "stage=0, region_classes=-2 must be 0 or more"),
    "encoder": ({"encoder": "eagle"}, "eagle"),
}


@pytest.mark.parametrize("which", WRONG)
def test_what_cannot_be_is_refused_in_one_line(which: str) -> None:
    changes, message = WRONG[which]
    with pytest.raises(ConfigError, match=re.escape(message)) as raised:
        VilbertConfig(**changes)
    assert "\n" not in str(raised.value)


def test_a_stage_that_the_encoder_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="stage"):
        VilbertConfig(encoder="resnet-mini", stage=9).build()


def test_the_words_are_read_by_a_bert_of_the_same_sizes() -> None:
    config = preset("vilbert-base")
    assert isinstance(config, VilbertConfig)
    assert config.text == BertConfig()
    assert (config.region_width, config.region_depth, config.region_hidden) == (1024, 6, 1024)
    assert (config.joins, config.join_width, config.join_heads, config.region_heads) == (
        6,
        1024,
        8,
        8,
    )
    assert (config.region_classes, config.encoder, config.regions) == (1601, "resnet-101", "boxes")
    assert {"vilbert-nano", "vilbert-small", "vilbert-base"} <= PRESETS.keys()

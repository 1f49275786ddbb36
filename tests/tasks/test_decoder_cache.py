"""What decodes in place of a model: which, in which precision, and until when."""

from typing import Any

import pytest
import torch

from saccade.errors import ConfigError
from saccade.models.inference.cached_decoder import CachedDecoder
from saccade.tasks.decoder_cache import DecoderCache
from tests.models.zoo import TRANSLATORS, build


def transformer() -> Any:
    return build(TRANSLATORS["transformer post sinusoids"], torch.float32)


def test_is_made_once_for_each_precision() -> None:
    ready = DecoderCache(transformer())
    made = ready.decoder("auto")
    assert isinstance(made, CachedDecoder)
    assert made.precision == "float32"
    assert ready.decoder("float32") is made
    assert ready.decoder("int8").precision == "int8"
    assert ready.decoder("auto") is made


def test_is_made_anew_when_the_weights_have_changed() -> None:
    model = transformer()
    ready = DecoderCache(model)
    made = ready.decoder("auto")
    with torch.no_grad():
        model.embedding.weight.add_(1.0)
    assert ready.decoder("auto") is not made


def test_a_model_of_another_kind_decodes_itself_and_in_its_own_precision() -> None:
    model = build(TRANSLATORS["seq2seq gru reverse=True"], torch.float32)
    ready = DecoderCache(model)
    assert ready.decoder("auto") is model
    assert ready.captured("auto") is None
    message = "^precision='int8' is not to be had: Seq2Seq decodes in float32"
    with pytest.raises(ConfigError, match=message):
        ready.decoder("int8")


def test_nothing_is_captured_without_a_gpu() -> None:
    assert DecoderCache(transformer()).captured("auto") is None


def test_eight_bits_are_for_the_cpu() -> None:
    model = transformer().to("meta")
    message = "^precision='int8' is for the CPU; on a GPU use bfloat16$"
    with pytest.raises(ConfigError, match=message):
        DecoderCache(model).decoder("int8")

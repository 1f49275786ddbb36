"""What transformers have no counterpart of is refused in one line, before anything is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saccade.app.export.make import export_run
from saccade.app.export.text.counterparts import hub_model
from saccade.errors import ConfigError
from saccade.models.text.convolutional import ConvSeq2SeqConfig
from saccade.models.text.foreign import ForeignEncoderConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from tests.app.export.text_runs import (
    BERT,
    DISTILBERT,
    ELECTRA,
    LABELS,
    ROBERTA,
    TRANSFORMER,
    write_classifier,
    write_filler,
    write_translator,
)

REFUSED: dict[str, tuple[Any, str]] = {
    "norm": (
        replace(TRANSFORMER, norm="batch"),
        "transformers has no transformer with norm=batch; --to onnx takes it",
    ),
    "positions": (
        replace(TRANSFORMER, positions="learned"),
        "transformers has no transformer with positions=learned; --to onnx takes it",
    ),
    "recurrent": (
        RnnAttentionConfig(width=8),
        "transformers has no counterpart of rnn-attention; --to onnx takes it",
    ),
    "convolutional": (
        ConvSeq2SeqConfig(width=8),
        "transformers has no counterpart of convolutional; --to onnx takes it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_translator_that_is_not_there_is_refused_before_anything_is_written(
    case: str, tmp_path: Path
) -> None:
    config, says = REFUSED[case]
    run, _ = write_translator(tmp_path / "run", config)
    with pytest.raises(ConfigError) as error:
        export_run(run, "huggingface")
    assert str(error.value) == says
    assert not (run.path / "exports").exists()


SHAPES: dict[str, tuple[Any, str]] = {
    "epsilon": (
        replace(DISTILBERT, epsilon=1e-5),
        "epsilon=1e-05 (with its other settings it is a distilbert there); train with another",
    ),
    "types": (
        replace(BERT, types=0),
        "pooling=tanh (with its other settings it is a distilbert there); train with another",
    ),
    "first": (
        replace(ELECTRA, first_position=2),
        "first_position=2 (with its other settings it is an electra there); train with another",
    ),
    "reads": (
        replace(BERT, reads="mean"),
        "reads=mean (a text's class is read at its first token there); train with --model.reads "
        "first",
    ),
    "pooling": (
        replace(ROBERTA, pooling="relu"),
        "pooling=relu (with its other settings it is a roberta there); train with another",
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_an_encoder_between_two_families_is_refused_by_its_setting(
    case: str, tmp_path: Path
) -> None:
    config, says = SHAPES[case]
    run, _ = write_classifier(tmp_path / "run", config, LABELS["classes"])
    with pytest.raises(ConfigError) as error:
        export_run(run, "huggingface")
    assert str(error.value) == f"transformers has no bert with {says}"
    assert not (run.path / "exports").exists()


def test_next_sentences_are_of_bert_alone(tmp_path: Path) -> None:
    run, _ = write_filler(tmp_path / "run", replace(ROBERTA, next_sentence=True))
    with pytest.raises(ConfigError, match="no bert with next_sentence=True"):
        export_run(run, "huggingface")


def test_an_encoder_of_transformers_with_our_head_is_refused_without_a_wrong_way_out() -> None:
    with pytest.raises(ConfigError, match="no counterpart of t5 with our head, and nothing else"):
        hub_model(ForeignEncoderConfig(settings='{"model_type": "t5"}'))

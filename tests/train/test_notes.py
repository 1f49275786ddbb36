"""What a user is told before and after training."""

from dataclasses import replace
from pathlib import Path

import pytest

from saccade.config import ModelConfig
from saccade.models.text.seq2seq import Seq2SeqConfig
from saccade.train.run import make_task
from tests.train.small import small_recipe, train_noting, write_corpus

PADDED = Seq2SeqConfig(width=16, depth=1, dropout=0.0)


@pytest.mark.parametrize("model", [None, PADDED], ids=["packed", "padded"])
def test_padding_is_what_is_computed_none_where_sentences_lie_end_to_end(
    model: ModelConfig | None, tmp_path: Path
) -> None:
    recipe = small_recipe(write_corpus(tmp_path / "data"), steps=1)
    recipe = recipe if model is None else replace(recipe, model=model)
    _, notes = train_noting(recipe, tmp_path / "run")
    share = 0.0 if model is None else make_task(recipe).padding
    assert (share > 0.01) == (model is not None)
    assert any(f"padding {share:.1%}," in note for note in notes)


def test_the_filling_of_batches_of_one_shape_is_told(tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path / "data"), steps=1, batches="mixed")
    _, notes = train_noting(recipe, tmp_path / "run")
    share = make_task(recipe).padding
    assert share > 0.01
    assert any(f"padding {share:.1%}," in note for note in notes)


def test_the_seconds_before_the_first_update_and_after_it_are_told_apart(tmp_path: Path) -> None:
    recipe = small_recipe(write_corpus(tmp_path / "data"), steps=2)
    outcome, _ = train_noting(recipe, tmp_path / "run")
    assert outcome.preparing > 0
    assert outcome.training > 0

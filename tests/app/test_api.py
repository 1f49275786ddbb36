"""Loading a run and using it from Python."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import saccade
from saccade.app.kinds.language import LanguageModel
from saccade.app.kinds.translation import TranslationModel
from saccade.errors import ConfigError, DataError, RunError


def load_translator(folder: Path) -> TranslationModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, TranslationModel)
    return model


def test_many_texts_give_what_each_gives_alone_in_their_order(translator: Path) -> None:
    model = load_translator(translator)
    texts = [
        "The dog eats.",
        "A very old house is not white today.",
        "She sleeps.",
        "The dog eats.",
    ]
    together = model.predict(texts, beam=3)
    assert [one.text for one in together] == [model.predict(text, beam=3).text for text in texts]
    assert [one.source for one in together] == texts


def test_an_n_best_list_is_sorted_and_begins_with_the_prediction(translator: Path) -> None:
    prediction = load_translator(translator).predict("The dog eats.", beam=4, n_best=4)
    scores = [prediction.score, *(other.score for other in prediction.others)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)


def test_a_prediction_looks_at_the_words_of_its_source(translator: Path) -> None:
    look = load_translator(translator).predict("The dog eats an apple.").look()
    assert look.columns == ["The", "dog", "eats", "an", "apple", "."]
    assert look.weights.shape == (len(look.rows), 6)


def test_words_looked_at_are_made_of_the_pieces_that_were_written(translator: Path) -> None:
    model = load_translator(translator)
    prediction = model.predict("The dog eats an apple.", look=True)
    translated = prediction._translated
    spans = model.tool.vocabulary.spans_of(translated.tokens)
    assert "".join(translated.text[start:end] for start, end in spans) == translated.text
    (pieces,) = translated.attention.values()  # a row for each token and one for the end
    assert pieces.entropy.shape[2] == len(translated.tokens) + translated.finished
    assert prediction.look().weights.sum(dim=1).max() <= 1 + 1e-6


@pytest.mark.slow
def test_attention_of_a_hypothesis_is_there_whether_it_was_asked_for_or_not(
    translator: Path,
) -> None:
    model = load_translator(translator)
    asked = model.predict("The dog eats an apple.", beam=3, n_best=3, look=True)
    later = model.predict("The dog eats an apple.", beam=3, n_best=3)
    for one, other in zip((asked, *asked.others), (later, *later.others)):
        (glance,), (same,) = one.attention.values(), other.attention.values()
        torch.testing.assert_close(glance.entropy, same.entropy)
        assert glance.entropy.shape[2] == len(one._translated.tokens) + one._translated.finished


def test_looking_at_the_network_sees_a_prediction(translator: Path) -> None:
    model = load_translator(translator)
    with saccade.looking(model.network) as trace:
        prediction = model.predict("The dog eats an apple.", beam=1)
    steps = len(prediction._translated.tokens) + prediction._translated.finished
    assert trace["decoder.cross"].entropy.shape == (1, 1, steps)


def test_a_language_model_writes_the_same_for_the_same_seed(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    assert isinstance(model, LanguageModel)
    one, other = (model.predict("I", count=3, most_tokens=5, seed=7) for _ in range(2))
    assert [text.text for text in one] == [text.text for text in other]
    assert all(text.text.startswith("I") for text in one)


def test_a_model_without_attention_says_so(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    assert isinstance(model, LanguageModel)
    with pytest.raises(ConfigError, match="writer has no attention to look at"):
        model.look("I am")


@pytest.mark.parametrize("text", ["", "  ", "\ud800"])
def test_text_that_is_none_is_refused(translator: Path, text: str) -> None:
    with pytest.raises(DataError):
        load_translator(translator).predict(text)


def test_an_unknown_setting_is_named(translator: Path) -> None:
    with pytest.raises(ConfigError, match="beams is not a decoding setting; there are: beam"):
        load_translator(translator).predict("The dog eats.", beams=3)


def test_no_run_is_told_from_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run at"):
        saccade.load(tmp_path / "none")
    with pytest.raises(RunError, match=r"is not a run: it has no config\.json"):
        saccade.load(tmp_path)


@pytest.mark.slow
def test_import_takes_less_than_three_seconds() -> None:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import saccade; saccade.load"], check=True)
    assert time.perf_counter() - begun < 10  # three on a quiet machine

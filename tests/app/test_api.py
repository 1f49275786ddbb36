"""Loading a run and using it from Python."""

import inspect
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import saccade
from saccade.app.kinds.language.kind import LanguageModel
from saccade.app.kinds.translation.kind import TranslationModel
from saccade.app.look.settings import LookSettings
from saccade.errors import ConfigError, DataError, RunError
from saccade.models.text.gpt import GptConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from tests.app.conftest import QUICK


def _load(folder: Path, **options: Any) -> Any:
    """As somebody calls it whose types nobody checks."""
    return getattr(saccade.load, "__wrapped__", saccade.load)(folder, **options)


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


def test_a_search_is_not_watched_and_what_it_found_is(translator: Path) -> None:
    model, text = load_translator(translator), "The dog eats an apple."
    with (
        saccade.looking(model.network),
        pytest.raises(ConfigError, match=r"a search cannot be watched.*look=True"),
    ):
        model.predict(text)
    prediction = model.predict(text, look=True)
    steps = len(prediction._translated.tokens) + prediction._translated.finished
    assert prediction.attention["decoder.cross"].entropy.shape == (1, 1, steps)


def test_a_language_model_writes_the_same_for_the_same_seed(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    assert isinstance(model, LanguageModel)
    one, other = (model.predict("I", count=3, most_tokens=5, seed=7) for _ in range(2))
    assert [text.text for text in one] == [text.text for text in other]
    assert all(text.text.startswith("I") for text in one)


def test_a_list_of_prompts_gives_what_each_gives_alone(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    sizes = {"count": 2, "most_tokens": 4}
    together = model.predict(["I", "I am"], **sizes)
    alone = [*model.predict("I", **sizes), *model.predict("I am", **sizes)]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.prompt for one in together] == ["I", "I", "I am", "I am"]


def test_a_beam_asks_a_language_model_for_a_search(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    (found,) = model.predict("I", beam=3, n_best=3, most_tokens=5)
    every = [found, *found.others]
    assert len({one.text for one in every}) == 3
    assert [one.score for one in every] == sorted((one.score for one in every), reverse=True)
    (greedy,) = model.predict("I", beam=1, most_tokens=5)
    assert greedy.text == model.predict("I", sample=False, beam=1, most_tokens=5)[0].text
    for seed in (1, 2):  # a search does not depend on chance
        assert model.predict("I", beam=3, most_tokens=5, seed=seed)[0].text == found.text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"beam": 3, "sample": True}, "beam=3 searches, and sample=True is of words drawn"),
        ({"beam": 3, "count": 2}, "count=2: a search finds the same text each time"),
        ({"n_best": 2}, "n_best=2 is of a search"),
        ({"count": 0}, "count=0 must be at least 1"),
        ({"most_tokens": 0}, "most_tokens=0 must be at least 1"),
        ({"seed": 2**63}, "seed=9223372036854775808 must be from"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: dict[str, int], told: str, writer: Path
) -> None:
    with pytest.raises(ConfigError, match=f"^{told}"):
        saccade.load(writer, device="cpu").predict("I", **options)


def test_what_a_language_model_wrote_can_be_looked_at(tmp_path: Path) -> None:
    recipe = replace(
        RECIPES["gpt"],
        model=GptConfig(width=16, depth=1, heads=2),
        task=LanguageSettings(unit="lines", level="words", sentences=60),
        train=QUICK,
    )
    train(recipe, tmp_path / "gpt", lambda event: None)
    model = saccade.load(tmp_path / "gpt", device="cpu")
    for one in model.predict("I am", count=2, most_tokens=4, seed=5):
        look = one.look()
        assert len(look.rows) == len(one.tokens)
        (entry,) = look.document().looks
        assert entry.text == one.text == look.caption
        assert entry.score == one.score
    asked = LookSettings(most_tokens=3)
    assert model.look("I am", asked).caption == model.look("I am", asked).document().looks[0].text


@pytest.mark.parametrize("given", [b"The dog.", 3, None, ["a", b"b"], Path("x.txt")])
def test_what_is_no_text_is_refused_in_one_line(
    given: object, translator: Path, writer: Path
) -> None:
    for folder in (translator, writer):
        with pytest.raises(DataError, match=r"^give a text or a list of texts, not "):
            saccade.load(folder, device="cpu").predict(given)


def test_what_is_no_image_is_refused_in_one_line(captioner: Path) -> None:
    model = saccade.load(captioner, device="cpu")
    for given in (3, None, [None], ("a.png",)):
        with pytest.raises(DataError, match=r"is no image; give a file, its bytes"):
            model.predict(given)
    assert model.predict([]) == []


def test_python_shows_predictions_and_models_in_short(
    translator: Path, writer: Path, captioner: Path
) -> None:
    image = torch.zeros(3, 40, 40, dtype=torch.uint8)
    for folder, given in ((translator, "The dog."), (writer, "I"), (captioner, image)):
        model = saccade.load(folder, device="cpu")
        made = model.predict(given)
        assert len(repr(model)) < 200
        assert folder.name in repr(model)
        assert len(repr(made)) < 400
        assert "tensor" not in repr(made)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"engine": "foo"}, "engine='foo' is not one of saccade, ctranslate2"),
        ({"engine_precision": "int3"}, "engine_precision='int3' is not one of float32"),
        ({"engine_precision": "int8"}, "engine_precision='int8' is for engine='ctranslate2'"),
        ({"engine": "ctranslate2"}, "CTranslate2 runs Transformer and Gpt models"),
    ],
)
def test_an_engine_that_is_none_is_refused(
    options: dict[str, str], told: str, translator: Path
) -> None:
    with pytest.raises(ConfigError, match=f"^{told}"):
        _load(translator, **options)


def test_a_model_without_attention_says_so(writer: Path) -> None:
    model = saccade.load(writer, device="cpu")
    assert isinstance(model, LanguageModel)
    with pytest.raises(ConfigError, match="writer has no attention to look at"):
        model.look("I am")


@pytest.mark.parametrize("text", ["", "  ", "\ud800"])
def test_text_that_is_none_is_refused(translator: Path, text: str) -> None:
    with pytest.raises(DataError):
        load_translator(translator).predict(text)


def test_what_there_is_is_listed() -> None:
    assert {*saccade.__all__, "__version__"} <= set(dir(saccade))


def test_an_unknown_setting_is_named(translator: Path) -> None:
    with pytest.raises(ConfigError, match="beams is not a decoding setting; there are: beam"):
        load_translator(translator).predict("The dog eats.", beams=3)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beam": "x"}, "beam='x' must be a whole number, as 5 is"),
        ({"beam": 2.0}, r"beam=2\.0 must be a whole number, as 5 is"),
        ({"temperature": "hot"}, r"temperature='hot' must be a number, as 1\.0 is"),
        ({"length_penalty": "x"}, "length_penalty='x' must be a number"),
        ({"sample": "yes"}, "sample='yes' must be True or False"),
        ({"precision": 3}, "precision=3 must be a text"),
    ],
)
def test_a_setting_of_another_type_is_named(
    setting: dict[str, Any], message: str, translator: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_translator(translator).predict("The dog eats.", **setting)


@pytest.mark.parametrize("kind", ["translator", "writer", "filler", "classifier", "captioner"])
def test_a_look_is_at_one_and_a_list_is_no_pair(kind: str, request: pytest.FixtureRequest) -> None:
    model = _load(request.getfixturevalue(kind), device="cpu")
    look = inspect.unwrap(type(model).look)
    with pytest.raises(DataError, match="a look is at one, not at a list; look at each by itself"):
        look(model, ["The ___ eats.", "She sleeps."])
    if kind in ("writer", "filler"):
        with pytest.raises(DataError, match="give a text or a list of texts, not NoneType"):
            look(model, None)


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

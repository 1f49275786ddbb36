"""The look document says what the model saw, in the words of its format."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from saccade.app.look.document import LookSettings, look_document
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.data.vocabulary import END, START, Vocabulary
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError
from saccade.models.text.gpt import GptConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.task import encode_source
from saccade.tasks.translation.translator import Translator

from .models import TEXTS, Model, gpt, rnn, transformer
from .reading import values

TEXT = TEXTS[0]


def tool(model: Model) -> Translator:
    assert isinstance(model.tool, Translator)
    return model.tool


def test_a_document_is_plain_json_in_its_format() -> None:
    document = look_document(transformer(), TEXT, LookSettings(beam=3))
    assert json.loads(json.dumps(document, allow_nan=False))["format"] == "saccade-look/1"
    assert document["kind"] == "translation"
    assert document["title"] == f"transformer · {TEXT}"
    look = document["looks"][0]
    assert [site["name"] for site in look["sites"]] == [
        "encoder.0.self", "encoder.1.self",
        "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross",
    ]  # fmt: skip
    assert {(site["rows"], site["columns"]) for site in look["sites"]} == {
        ("source", "source"), ("target", "past"), ("target", "source"),
    }  # fmt: skip


def test_every_axis_has_as_many_tokens_as_the_arrays_have_rows_and_columns() -> None:
    for model in (transformer(), rnn()):
        document = look_document(model, TEXT, LookSettings(beam=2))
        for look in document["looks"]:
            for site in look["sites"]:
                rows, columns = (look["axes"][site[side]]["tokens"] for side in ("rows", "columns"))
                shape = site["arrays"]["weights"]["shape"]
                assert shape == [site["heads"], len(rows), len(columns)]
                assert values(document, site["arrays"]["weights"]).shape == tuple(shape)


@pytest.mark.slow
def test_weights_are_those_of_a_forced_pass_over_each_hypothesis() -> None:
    model = transformer()
    document = look_document(model, TEXT, LookSettings(beam=3))
    assert len(document["looks"]) == 3
    source = encode_source(tool(model).vocabulary, TEXT)[None]
    for look in document["looks"]:
        pieces = tool(model).vocabulary
        said = list(tokens_of(model, look))
        inputs = torch.tensor([[START, *said[:-1]]])
        with looking(tool(model).model, keep=Keep(dense=128)) as trace, torch.inference_mode():
            tool(model).model(source, torch.tensor([source.shape[1]]), inputs)
        for site in look["sites"]:
            found = values(document, site["arrays"]["weights"])
            np.testing.assert_allclose(found, trace.weights()[site["name"]][0], atol=6e-4)
        assert pieces.decode([t for t in said if t != END]) == look["text"]


def tokens_of(model: Model, look: dict) -> list[int]:
    """The tokens of a hypothesis, found again by searching for its text."""
    ((_, best),) = tool(model).translate([TEXT], Decoding(beam=3, n_best=3))
    (one,) = [one for one in (best, *best.others) if one.score == look["score"]]
    return [*one.tokens, *([END] if one.finished else [])]


def test_the_beam_leads_to_the_best_hypothesis() -> None:
    document = look_document(transformer(), TEXT, LookSettings(beam=4))
    best = document["looks"][0]
    steps = best["beam"]
    assert all(look["beam"] is None for look in document["looks"][1:])
    texts = {one["text"] for step in steps for one in step}
    assert best["text"] in texts
    for before, step in pairwise(steps):
        live = [one for one in before if not one["ended"]]
        for one in step:
            assert one["text"].startswith(live[one["parent"]]["text"].rstrip("�"))


def test_words_are_made_of_their_pieces() -> None:
    look = look_document(transformer(), TEXTS[2], LookSettings(beam=1))["looks"][0]
    axis = look["axes"]["source"]
    words = ["".join(axis["tokens"][a:b]).strip() for a, b in axis["words"]]
    assert words == ["They", "don't", "sing", "in", "Paris", "!"]
    assert axis["tokens"][-1] == "<end>"


def test_choices_hold_what_was_said_when_it_was_the_most_probable() -> None:
    look = look_document(transformer(), TEXT, LookSettings(beam=1))["looks"][0]
    target = look["axes"]["target"]
    assert len(target["choices"]) == len(target["log_p"]) == len(target["tokens"])
    for token, choices, log_p in zip(target["tokens"], target["choices"], target["log_p"]):
        assert choices[0][1] == pytest.approx(np.exp(log_p), abs=2e-4)
        assert choices[0][0] == token


def test_a_language_model_shows_prompt_and_continuation() -> None:
    document = look_document(gpt(), "The dog", LookSettings(most_tokens=6))
    look = document["looks"][0]
    axis = look["axes"]["text"]
    assert document["kind"] == "language"
    assert len(axis["tokens"]) > axis["prompt"]
    assert look["text"].startswith("The dog")
    assert len(axis["choices"]) == len(axis["tokens"]) + 1  # also for the word that would come next
    assert axis["log_p"][0] is None
    assert sum(axis["log_p"][axis["prompt"] :]) == pytest.approx(look["log_probability"], abs=1e-3)
    for site in look["sites"]:
        weights = values(document, site["arrays"]["weights"])
        np.testing.assert_allclose(np.triu(weights, 1), 0.0)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=2e-3)


def test_words_of_a_vocabulary_of_words_are_told_with_their_blanks() -> None:
    words = Vocabulary.train(["I think therefore I am", "I like machine learning"], level="words")
    config = GptConfig(vocabulary=len(words), width=8, heads=2, depth=1, longest=16)
    settings = LanguageSettings(unit="lines", level="words")
    model = Model("words", Writer(config.build(), words, settings))
    axis = look_document(model, "I think I am", LookSettings())["looks"][0]["axes"]["text"]
    assert axis["tokens"] == ["<start>", "I", " think", " I", " am"]
    assert axis["words"] == [(1, 2), (2, 3), (3, 4), (4, 5)]


def long_document(*, width: int = 16, **settings: object) -> tuple[Model, dict]:
    model = gpt(longest=600, width=width)
    text = " ".join(TEXTS * 12)
    return model, look_document(model, text, LookSettings(**settings))  # type: ignore[arg-type]


def test_a_long_text_keeps_maps_top_keys_and_exact_zoom() -> None:
    model, document = long_document()
    assert isinstance(model.tool, Writer)
    tokens = model.tool.begin(" ".join(TEXTS * 12))
    size = len(tokens)
    assert size > 256
    with looking(model.tool.model, keep=Keep(dense=size)) as trace, torch.inference_mode():
        model.tool.model(torch.tensor([tokens]))
    for site in document["looks"][0]["sites"]:
        weights = trace.weights()[site["name"]][0].numpy()
        arrays, zoom = site["arrays"], site["zoom"]
        assert "weights" not in arrays
        np.testing.assert_allclose(
            values(document, arrays["received"]), weights.sum(axis=1), rtol=2e-3, atol=1e-2
        )
        cell = site["cell"][0]
        cells = [weights[:, a : a + cell].mean(axis=1) for a in range(0, size, cell)]
        sums = [np.add.reduceat(row, range(0, size, cell), axis=-1) for row in cells]
        found = values(document, arrays["mean_map"])
        np.testing.assert_allclose(found, np.stack(sums, axis=1), atol=4.1e-3)
        top = values(document, arrays["top_weights"])
        np.testing.assert_allclose(top, -np.sort(-weights)[..., : top.shape[-1]], atol=4.1e-3)
        q, k, lse = (values(document, zoom[name]).astype(float) for name in ("q", "k", "lse"))
        exact = np.exp(zoom["scale"] * q @ k.swapaxes(1, 2) - lse[..., None])
        np.testing.assert_allclose(np.tril(exact), weights[zoom["heads"]], atol=2e-3)


def test_what_does_not_fit_is_named_and_what_was_asked_for_is_there() -> None:
    _, document = long_document(width=128, budget=150_000, zoom=(("decoder.1.self", 1),))
    kept = [site["zoom"] and site["zoom"]["heads"] for site in document["looks"][0]["sites"]]
    assert kept == [None, [1]]
    assert (
        "exact zoom is kept for 1 of 4 heads; name others with --zoom SITE:HEAD"
        in document["notes"]
    )
    assert sum(map(len, document["blobs"])) < 250_000


def test_two_runs_are_compared_side_by_side() -> None:
    document = look_document(
        transformer("one"), TEXT, LookSettings(beam=2), compare=transformer("two", seed=1)
    )
    assert [look["run"] for look in document["looks"]] == ["one", "two"]
    assert document["title"].startswith("one and two · ")


def test_what_cannot_be_compared_or_seen_is_said() -> None:
    with pytest.raises(ConfigError, match="transformer and gpt do different work"):
        look_document(transformer(), TEXT, LookSettings(), compare=gpt())
    with pytest.raises(DataError, match="tokens, but the model sees 64; shorten it"):
        look_document(gpt(), TEXT * 20, LookSettings())
    with pytest.raises(ConfigError, match="budget=5 must be at least 100000 bytes"):
        LookSettings(budget=5)
    with pytest.raises(ConfigError, match="most_tokens=-1 must be 0"):
        LookSettings(most_tokens=-1)

"""The look document of a language model: prompt, continuation, and what a long text keeps."""

import numpy as np
import pytest
import torch

from saccade.app.look.document import LookDocument
from saccade.app.look.language import language_document
from saccade.app.look.settings import LookSettings
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError, DataError
from saccade.models.text.gpt import GptConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Writer

from .models import TEXTS, Model, gpt
from .reading import values


def test_a_language_model_shows_prompt_and_continuation() -> None:
    document = language_document([gpt()], "The dog", LookSettings(most_tokens=6))
    look = document.looks[0]
    axis = look.axes["text"]
    assert document.kind == "language"
    assert len(axis.tokens) > axis.prompt
    assert look.text.startswith("The dog")
    assert len(axis.choices) == len(axis.tokens) + 1  # also for the word that would come next
    assert axis.log_p[0] is None
    assert sum(axis.log_p[axis.prompt :]) == pytest.approx(look.log_probability, abs=1e-3)
    for site in look.sites:
        weights = values(document.blobs, site.arrays["weights"])
        np.testing.assert_allclose(np.triu(weights, 1), 0.0)
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=2e-3)


def test_words_of_a_vocabulary_of_words_are_told_with_their_blanks() -> None:
    words = Vocabulary.train(["I think therefore I am", "I like machine learning"], level="words")
    config = GptConfig(vocabulary=len(words), width=8, heads=2, depth=1, longest=16)
    settings = LanguageSettings(unit="lines", level="words")
    model = Model("words", Writer(config.build(), words, settings))
    axis = language_document([model], "I think I am", LookSettings()).looks[0].axes["text"]
    assert axis.tokens == ["<start>", "I", " think", " I", " am"]
    assert axis.words == [(1, 2), (2, 3), (3, 4), (4, 5)]


def long_document(*, width: int = 16, **settings: object) -> tuple[Model, LookDocument]:
    model = gpt(longest=600, width=width)
    text = " ".join(TEXTS * 12)
    return model, language_document([model], text, LookSettings(**settings))  # type: ignore[arg-type]


def test_a_long_text_keeps_maps_top_keys_and_exact_zoom() -> None:
    model, document = long_document()
    assert isinstance(model.tool, Writer)
    tokens = model.tool.begin(" ".join(TEXTS * 12))
    size = len(tokens)
    assert size > 256
    with looking(model.tool.model, keep=Keep(dense=size)) as trace, torch.inference_mode():
        model.tool.model(torch.tensor([tokens]))
    for site in document.looks[0].sites:
        weights = trace.weights()[site.name][0].numpy()
        arrays, zoom = site.arrays, site.zoom
        assert zoom is not None
        assert "weights" not in arrays
        np.testing.assert_allclose(
            values(document.blobs, arrays["received"]), weights.sum(axis=1), rtol=2e-3, atol=1e-2
        )
        cell = site.cell[0]
        cells = [weights[:, a : a + cell].mean(axis=1) for a in range(0, size, cell)]
        sums = [np.add.reduceat(row, range(0, size, cell), axis=-1) for row in cells]
        found = values(document.blobs, arrays["mean_map"])
        np.testing.assert_allclose(found, np.stack(sums, axis=1), atol=4.1e-3)
        top = values(document.blobs, arrays["top_weights"])
        np.testing.assert_allclose(top, -np.sort(-weights)[..., : top.shape[-1]], atol=4.1e-3)
        q, k, lse = (
            values(document.blobs, one).astype(float) for one in (zoom.q, zoom.k, zoom.lse)
        )
        exact = np.exp(zoom.scale * q @ k.swapaxes(1, 2) - lse[..., None])
        np.testing.assert_allclose(np.tril(exact), weights[zoom.heads], atol=2e-3)


def test_what_does_not_fit_is_named_and_what_was_asked_for_is_there() -> None:
    _, document = long_document(width=128, budget=150_000, zoom=(("decoder.1.self", 1),))
    kept = [site.zoom and site.zoom.heads for site in document.looks[0].sites]
    assert kept == [None, [1]]
    assert (
        "exact zoom is kept for 1 of 4 heads; name others with --zoom SITE:HEAD" in document.notes
    )
    assert sum(map(len, document.blobs)) < 250_000


def test_what_cannot_be_seen_is_said() -> None:
    with pytest.raises(DataError, match="tokens, but the model sees 64; shorten it"):
        language_document([gpt()], TEXTS[0] * 20, LookSettings())
    with pytest.raises(ConfigError, match="budget=5 must be at least 100000 bytes"):
        LookSettings(budget=5)
    with pytest.raises(ConfigError, match="most_tokens=-1 must be 0"):
        LookSettings(most_tokens=-1)

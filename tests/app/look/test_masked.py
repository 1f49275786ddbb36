"""The look document of a model that fills blanks: words for each, and weights between all words."""

import numpy as np
import pytest
import torch

from saccade.app.look.document import read_json, to_json
from saccade.app.look.masked import masked_document
from saccade.app.look.settings import LookSettings
from saccade.attention.look.glance import Keep
from saccade.errors import DataError
from saccade.tasks.masked.watched import watched_text
from tests.app.look.reading import values
from tests.tasks.masked.test_filler import BLANKS, filler


class Named:
    name, tool = "bert", filler()


def test_blanks_are_words_and_have_choices_and_all_else_has_none() -> None:
    document = masked_document([Named()], BLANKS, LookSettings())
    (look,) = document.looks
    axis, (found,) = look.axes["text"], Named.tool.fill([BLANKS])
    assert (document.kind, document.subject, look.text) == ("masked", BLANKS, found.text)
    blanks = [at for at, token in enumerate(axis.tokens) if token == " ___"]
    assert blanks == Named.tool.blanks.read(BLANKS).at
    assert axis.choices is not None
    assert axis.log_p is not None
    assert [at for at, some in enumerate(axis.choices) if some] == blanks
    for at, words in zip(blanks, found.blanks):
        assert [word for word, _ in axis.choices[at]] == [word for word, _ in words]
        assert (at, at + 1) in axis.words
        assert axis.log_p[at] == pytest.approx(np.log(words[0].probability), abs=0.03)
    assert axis.words == sorted(axis.words)
    assert read_json(to_json(document)) == document


def test_weights_are_the_model_s_own_in_both_directions_and_the_rollout_is_derived() -> None:
    document = masked_document([Named()], BLANKS, LookSettings())
    rollout, *sites = document.looks[0].sites
    read = Named.tool.blanks.read(BLANKS)
    seen = watched_text(Named.tool, read, keep=Keep(dense=64))
    assert (rollout.name, rollout.derived, rollout.heads) == ("rollout", True, 1)
    assert [site.name for site in sites] == ["encoder.0.self", "encoder.1.self"]
    for site in sites:
        found = values(document.blobs, site.arrays["weights"])
        weights = seen.sites[site.name].weights
        assert weights is not None
        np.testing.assert_allclose(found, weights[0].numpy(), atol=1e-3)
        assert not site.causal
        assert np.triu(found, 1).sum() > 0
    summed = values(document.blobs, rollout.arrays["weights"]).sum(axis=-1)
    np.testing.assert_allclose(summed, 1.0, atol=2e-3)


def test_a_text_without_blanks_is_shown_as_it_is() -> None:
    document = masked_document([Named()], "The old castle.", LookSettings())
    (look,) = document.looks
    assert look.text == "The old castle."
    assert look.axes["text"].choices is None


def test_a_text_is_never_looked_at_in_part() -> None:
    with torch.no_grad(), pytest.raises(DataError, match="but the model sees 48; shorten it"):
        masked_document([Named()], "word " * 60, LookSettings())

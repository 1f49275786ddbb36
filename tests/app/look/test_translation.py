"""The look document of a translation says what the model saw."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from saccade.app.look.document import LookEntry
from saccade.app.look.settings import LookSettings
from saccade.app.look.translation import translation_document
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.engine import Decoding
from saccade.tasks.translation.task import encode_source
from saccade.tasks.translation.translator import Translator
from tests.marks import one_fast

from .models import TEXTS, Model, rnn, transformer
from .reading import values

END, START = OURS.end, OURS.start

TEXT = TEXTS[0]


def tool(model: Model) -> Translator:
    assert isinstance(model.tool, Translator)
    return model.tool


def test_a_document_names_its_kind_its_text_and_its_sites() -> None:
    document = translation_document([transformer()], TEXT, LookSettings(beam=3))
    assert document.kind == "translation"
    assert document.title == f"transformer · {TEXT}"
    look = document.looks[0]
    assert [site.name for site in look.sites] == [
        "encoder.0.self", "encoder.1.self",
        "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross",
    ]  # fmt: skip
    assert {(site.rows, site.columns) for site in look.sites} == {
        ("source", "source"), ("target", "past"), ("target", "source"),
    }  # fmt: skip


def test_every_axis_has_as_many_tokens_as_the_arrays_have_rows_and_columns() -> None:
    for model in (transformer(), rnn()):
        document = translation_document([model], TEXT, LookSettings(beam=2))
        for look in document.looks:
            for site in look.sites:
                rows, columns = (
                    look.axes[getattr(site, side)].tokens for side in ("rows", "columns")
                )
                shape = site.arrays["weights"].shape
                assert shape == [site.heads, len(rows), len(columns)]
                assert values(document.blobs, site.arrays["weights"]).shape == tuple(shape)


@pytest.mark.slow
def test_weights_are_those_of_a_forced_pass_over_each_hypothesis() -> None:
    model = transformer()
    document = translation_document([model], TEXT, LookSettings(beam=3))
    assert len(document.looks) == 3
    source = encode_source(tool(model).vocabulary, TEXT)[None]
    for look in document.looks:
        pieces = tool(model).vocabulary
        said = list(tokens_of(model, look))
        inputs = torch.tensor([[START, *said[:-1]]])
        with looking(tool(model).model, keep=Keep(dense=128)) as trace, torch.inference_mode():
            tool(model).model(source, torch.tensor([source.shape[1]]), inputs)
        for site in look.sites:
            found = values(document.blobs, site.arrays["weights"])
            np.testing.assert_allclose(found, trace.weights()[site.name][0], atol=6e-4)
        assert pieces.decode([t for t in said if t != END]) == look.text


def tokens_of(model: Model, look: LookEntry) -> list[int]:
    """The tokens of a hypothesis, found again by searching for its text."""
    ((_, best),) = tool(model).translate([TEXT], Decoding(beam=3, n_best=3))
    (one,) = [one for one in (best, *best.others) if one.score == look.score]
    return [*one.tokens, *([END] if one.finished else [])]


def test_the_beam_leads_to_the_best_hypothesis() -> None:
    document = translation_document([transformer()], TEXT, LookSettings(beam=4))
    best = document.looks[0]
    steps = best.beam
    assert steps is not None
    assert all(look.beam is None for look in document.looks[1:])
    texts = {one.text for step in steps for one in step}
    assert best.text in texts
    for before, step in pairwise(steps):
        live = [one for one in before if not one.ended]
        for one in step:
            assert one.text.startswith(live[one.parent].text.rstrip("�"))


def test_words_are_made_of_their_pieces() -> None:
    look = translation_document([transformer()], TEXTS[2], LookSettings(beam=1)).looks[0]
    axis = look.axes["source"]
    words = ["".join(axis.tokens[a:b]).strip() for a, b in axis.words]
    assert words == ["They", "don't", "sing", "in", "Paris", "!"]
    assert axis.tokens[-1] == "<end>"


def test_choices_hold_what_was_said_when_it_was_the_most_probable() -> None:
    look = translation_document([transformer()], TEXT, LookSettings(beam=1)).looks[0]
    target = look.axes["target"]
    assert len(target.choices) == len(target.log_p) == len(target.tokens)
    for token, choices, log_p in zip(target.tokens, target.choices, target.log_p):
        assert choices[0][1] == pytest.approx(np.exp(log_p), abs=2e-4)
        assert choices[0][0] == token


def test_two_runs_are_compared_side_by_side() -> None:
    document = translation_document(
        [transformer("one"), transformer("two", seed=1)], TEXT, LookSettings(beam=2)
    )
    assert [look.run for look in document.looks] == ["one", "two"]
    assert document.title.startswith("one and two · ")


@pytest.mark.parametrize(
    "how",
    one_fast(
        [
            Decoding(beam=1),
            Decoding(beam=4, length_penalty=0.3, n_best=2),
            Decoding(beam=1, sample=True, temperature=1.5, top_k=9, seed=3),
        ]
    ),
)
def test_the_text_that_is_shown_is_the_one_that_a_prediction_gave(how: Decoding) -> None:
    model = transformer()
    ((_, best),) = tool(model).translate([TEXT], how)
    document = translation_document([model], TEXT, LookSettings(beam=how.beam), decoding=how)
    assert (document.looks[0].text, document.looks[0].score) == (best.text, best.score)


def test_what_was_predicted_is_shown_whatever_another_search_finds() -> None:
    model = transformer()
    ((_, best),) = tool(model).translate([TEXT], Decoding(beam=3, n_best=3))
    other = best.others[-1]
    assert other.tokens != best.tokens
    document = translation_document(
        [model], TEXT, LookSettings(beam=3), decoding=Decoding(beam=3), predicted=other
    )
    (look,) = document.looks
    assert (look.text, look.score, look.beam) == (other.text, other.score, None)
    same = translation_document([model], TEXT, LookSettings(beam=3), predicted=best)
    assert [look.text for look in same.looks] == [one.text for one in (best, *best.others)]
    assert same.looks[0].beam is not None

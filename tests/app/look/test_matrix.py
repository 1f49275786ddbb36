"""The one matrix that is drawn: which layer and head, between words or pieces."""

from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.app.cli.text_look import LONG, look_at_text
from saccade.app.kinds.language.kind import LanguageModel
from saccade.app.look.axis import text_axis
from saccade.app.look.document import AxisEntry, LookDocument
from saccade.app.look.language import language_look
from saccade.app.look.settings import LookSettings, Selection, make_selection
from saccade.app.look.translation import translation_look
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import word_spans, words
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.metrics.alignment import merge_pieces
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.translation.translator import Translated, Translator
from saccade.train.recipes import RECIPES

from .models import TEXTS, Model, gpt, rnn, transformer

CHINESE = "我喜欢小猫，也喜欢花。"


def empty() -> LookDocument:
    return LookDocument(kind="translation", title="", notes=[], looks=[], blobs=[])


def translated(model: Model, text: str = TEXTS[0]) -> Translated:
    assert isinstance(model.tool, Translator)
    ((_, one),) = model.tool.translate([text], Decoding(beam=1), look=True)
    return one


def heads_of(one: Translated) -> dict[str, Any]:
    return {
        site: glance.weights[0]
        for site, glance in one.attention.items()
        if glance.weights is not None
    }


def look(model: Model, one: Translated, **select: Any) -> Any:
    assert isinstance(model.tool, Translator)
    return translation_look(model, one, make_selection(select), empty)


@pytest.mark.parametrize("model", [transformer(), rnn()], ids=["transformer", "rnn"])
def test_words_share_what_their_pieces_looked_at(model: Model) -> None:
    one, tool = translated(model), model.tool
    assert isinstance(tool, Translator)
    found = look(model, one)
    weights = torch.stack([w.mean(dim=0) for w in heads_of(one).values()]).mean(dim=0)
    expected = merge_pieces(
        weights,
        source_pieces=tool.vocabulary.spans(one.source),
        target_pieces=tool.vocabulary.spans_of(one.tokens),
        source_words=word_spans(one.source),
        target_words=word_spans(one.text),
    )
    text = [i for i, row in enumerate(found.rows) if row != "<start>"]  # which it may well write
    assert [found.rows[i] for i in text] == words(one.text)
    assert found.columns == words(one.source)
    torch.testing.assert_close(found.weights[text], expected)


def test_a_head_of_a_layer_is_what_was_seen_there() -> None:
    model = transformer()
    one = translated(model)
    for number, (site, weights) in enumerate(heads_of(one).items()):
        for head in range(2):
            found = look(model, one, units="pieces", layer=number, head=head)
            torch.testing.assert_close(found.weights, weights[head])
            assert found.title == f"transformer: {site}, head {head}"
            assert found.columns[-1] == "<end>"
            assert "".join(found.columns[:-1]) == one.source
        mean = look(model, one, units="pieces", layer=site)
        torch.testing.assert_close(mean.weights, weights.mean(dim=0))


def test_any_site_can_be_named() -> None:
    model = transformer()
    one = translated(model)
    found = look(model, one, layer="encoder.1.self", units="pieces")
    assert found.rows == found.columns
    torch.testing.assert_close(found.weights.sum(dim=1), torch.ones(len(found.rows)))
    own = look(model, one, layer="decoder.0.self")
    assert own.columns[0] == "<start>"


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ({"layer": 2}, r"--layer 2 is not there; there are 0 \(decoder\.0\.cross\), 1 \(dec.*"),
        ({"layer": "x"}, r"others by name: encoder\.0\.self, encoder\.1\.self, decoder\.0\.self"),
        ({"layer": 0, "head": 2}, r"--head 2 is not there; decoder\.0\.cross has heads 0 to 1"),
        ({"layer": 0, "head": -1}, r"--head -1 is not there"),
        ({"head": 1}, r"--head 1 is a head of one layer; name that as well, with --layer 0 to 1"),
        ({"units": "letters"}, r"units='letters' must be words or pieces"),
        ({"head": "a"}, r"head='a' must be a number"),
        ({"size": 3}, r"size selects nothing of a look; there are: units, layer, head"),
    ],
)
def test_what_is_not_there_is_refused(select: dict[str, Any], message: str) -> None:
    model = transformer()
    with pytest.raises(ConfigError, match=message):
        look(model, translated(model), **select)


def read(axis: AxisEntry, word: tuple[int, int]) -> str:
    return "".join(axis.tokens[slice(*word)]).strip()


def test_a_language_model_shows_any_layer_in_pieces_or_words() -> None:
    model = gpt()
    text = "They don't sing in Paris!"
    last = language_look(model, text, Selection(), empty)  # type: ignore[arg-type]
    assert "".join(last.rows) == text
    named = language_look(model, text, Selection(layer="1"), empty)  # type: ignore[arg-type]
    torch.testing.assert_close(last.weights, named.weights)
    assert last.title.endswith(", mean over heads")
    by_word = language_look(model, text, Selection(units="words", layer="0"), empty)  # type: ignore[arg-type]
    axis = text_axis(model.tool.vocabulary, model.tool.begin(text))
    assert by_word.rows == by_word.columns == [read(axis, word) for word in axis.words]
    pieces = language_look(model, text, Selection(layer="0"), empty).weights  # type: ignore[arg-type]
    for i, (start, end) in enumerate(axis.words):  # as the page has it, blanks by themselves too
        row = pieces[start:end].double().mean(dim=0)
        expected = torch.stack([row[a:b].sum() for a, b in axis.words])
        torch.testing.assert_close(by_word.weights[i], expected)
    torch.testing.assert_close(by_word.weights.sum(dim=1), torch.ones(len(by_word.rows)).double())
    with pytest.raises(ConfigError, match="--layer 7 is not there; there are 0"):
        language_look(model, text, Selection(layer="7"), empty)  # type: ignore[arg-type]


def test_a_long_text_is_drawn_in_cells_of_pieces_and_not_in_words() -> None:
    model = gpt(longest=800)
    text = " ".join(TEXTS * 12)
    drawn = language_look(model, text, Selection(), empty)  # type: ignore[arg-type]
    assert "cells of" in drawn.title
    with pytest.raises(ConfigError, match="not in words; leave --units away"):
        language_look(model, text, Selection(units="words"), empty)  # type: ignore[arg-type]


def test_too_many_rows_are_refused_before_the_model_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    translator, writer = transformer(), gpt()
    one = translated(translator)
    counts = {units: len(look(translator, one, units=units).rows) for units in ("words", "pieces")}
    source = len(look(translator, one, units="pieces", layer="encoder.0.self").rows)

    def too_late(*_: object, **__: object) -> None:
        raise AssertionError("the model looked")

    for kind in ("language.teacher_forced_text", "translation.teacher_forced_translation"):
        monkeypatch.setattr(f"saccade.app.look.{kind}", too_late)
    for units, count in counts.items():
        with pytest.raises(ConfigError, match=f"^{count} rows are too many to print; name a file"):
            look(translator, one, units=units, most_rows=count - 1)
        with pytest.raises(AssertionError, match="looked"):
            look(translator, one, units=units, most_rows=count)
    with pytest.raises(ConfigError, match=f"^{source} rows are too many"):
        look(translator, one, units="pieces", layer="encoder.0.self", most_rows=source - 1)
    with pytest.raises(ConfigError, match="rows are too many"):
        language_look(writer, TEXTS[0], Selection(most_rows=3), empty)  # type: ignore[arg-type]
    long = " ".join(TEXTS * 12)
    with pytest.raises(ConfigError, match="not in words"):
        language_look(gpt(longest=800), long, Selection(units="words"), empty)  # type: ignore[arg-type]


def test_a_long_prompt_is_refused_before_anything_is_written_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool: Any = gpt().tool
    monkeypatch.setattr(tool, "write", lambda *_, **__: pytest.fail("it wrote"))
    model = LanguageModel("gpt", RECIPES["gpt"], tool)
    with pytest.raises(ConfigError, match="rows are too many to print"):
        model.look(TEXTS[0], LookSettings(most_tokens=5), most_rows=3)


def test_what_is_printed_alone_has_a_bound() -> None:
    asked: list[Any] = []

    class Stub:
        def look(self, text: str, how: LookSettings, **select: Any) -> Any:
            asked.append(select["most_rows"])
            raise ConfigError("enough")

    for out in (None, Path("x.png")):
        with pytest.raises(ConfigError, match="enough"):
            look_at_text([Stub()], "text", LookSettings(), out, lambda *_: empty(), Selection())
    assert asked == [LONG, None]


@pytest.mark.parametrize("size", [262, 400])
def test_chinese_is_shown_word_by_word(size: int) -> None:
    torch.manual_seed(0)
    vocabulary = Vocabulary.train([CHINESE] if size > 262 else ["x"], size=size)
    config = TransformerConfig(vocabulary=len(vocabulary), width=16, heads=2, depth=1, hidden=16)
    model = Model("zh", Translator(config.build(), vocabulary))
    one = translated(model, CHINESE)
    found = look(model, one)
    assert "".join(found.columns) == CHINESE
    assert len(found.columns) == (
        len(CHINESE) if size == 262 else len(words(CHINESE, vocabulary.spans(CHINESE)))
    )
    assert len(found.columns) > 1
    assert (found.weights.sum(dim=1) > 0).any()

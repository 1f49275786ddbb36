"""The look document goes to JSON and comes back, and says of which version it is."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from saccade.app.look.arrays import Blobs
from saccade.app.look.captioning.document import caption_document
from saccade.app.look.document import LONGEST_TITLE, VERSION, LookDocument, read_json, to_json
from saccade.app.look.language import language_document
from saccade.app.look.settings import LookSettings
from saccade.app.look.translation import translation_document
from saccade.errors import ConfigError
from tests.marks import one_fast

from .captioners import captioner, shown
from .models import TEXTS, gpt, rnn, transformer

HOW = LookSettings(beam=2, most_tokens=2)
MADE: dict[str, Callable[[], LookDocument]] = {
    "transformer": lambda: translation_document([transformer()], TEXTS[0], HOW),
    "rnn": lambda: translation_document([rnn()], TEXTS[0], HOW),
    "compared": lambda: translation_document([transformer(), rnn()], TEXTS[0], HOW),
    "gpt": lambda: language_document([gpt()], TEXTS[0], HOW),
    "long": lambda: language_document([gpt(longest=600)], " ".join(TEXTS * 12), LookSettings()),
    **{
        kind: lambda kind=kind: caption_document([captioner(kind)], shown(2), HOW)
        for kind in ("soft", "hard", "blind", "vit")
    },
}


@pytest.mark.parametrize("name", one_fast(MADE))
def test_every_document_comes_back_from_json_as_it_was(name: str) -> None:
    document = MADE[name]()
    text = to_json(document)
    assert read_json(text) == document
    assert text.isascii()
    values = json.loads(text)
    assert (values["format"], values["version"]) == ("saccade-look", VERSION)


@pytest.mark.parametrize(
    "text", one_fast(["a <b>bold</b> & word", " two  blanks ", "unknown ÅÄÖ <unk>"])
)
def test_a_document_holds_the_text_as_it_was_given(text: str) -> None:
    document = translation_document([transformer()], text, HOW)
    assert document.subject == text
    assert document.title == f"{transformer().name} · {text}"


@pytest.mark.parametrize("letter", ["x", "e\u0301", "👨‍👩‍👧‍👦", "👍🏽", "क्षि"])
def test_a_title_is_cut_between_characters(letter: str) -> None:
    title = LookDocument.of("language", ["run"], letter * 70, [], Blobs()).title
    kept = title.removeprefix("run · ").removesuffix("…")
    assert len(kept) <= LONGEST_TITLE
    assert kept
    assert set(kept.split(letter)) == {""}


def empty() -> LookDocument:
    return LookDocument(kind="language", title="é", notes=[], looks=[], blobs=[])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, f"this reads version {VERSION} of a look, not 1"),
        ({"version": None}, f"this reads version {VERSION} of a look, not None"),
        ({"format": "other"}, "look.format='other' must be one of: saccade-look"),
        ({"picture": 1}, "look.picture is not a setting"),
        ({"notes": [1]}, "look.notes=1 must be str, not int"),
        ({"looks": [{"axes": {"text": {"words": [[1, 2, 3]]}}}]}, "must hold 2 values, not 3"),
    ],
)
def test_what_is_no_document_of_this_version_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_json(json.dumps({**json.loads(to_json(empty())), **change}))


def test_numbers_that_json_does_not_have_are_refused() -> None:
    document = translation_document([rnn()], TEXTS[0], LookSettings(beam=1))
    broken = replace(document, looks=[replace(document.looks[0], score=float("nan"))])
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(broken)


def test_a_long_subject_is_cut_in_the_title() -> None:
    title = language_document([gpt(longest=200)], "ab " * 40, LookSettings()).title
    assert title == f"gpt · {('ab ' * 40)[:57]}…"

"""Texts that stream for a score: those that are read at once, of every split."""

from pathlib import Path
from typing import Any

import pytest

from saccade.data.tokens.streamed_encoding import encode_ragged
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks import corpus as corpora
from saccade.tasks.base import silent
from saccade.tasks.corpus import CorpusEncoder
from saccade.tasks.language.task import LanguageSettings, read_language
from saccade.tasks.masked import task as masked_task
from saccade.tasks.masked.task import MaskedSettings, read_masked
from saccade.tasks.plain_texts import text_part

TEXT = "".join(f"the dog {n} sees a cat\n" for n in range(60))
VOCABULARY = Vocabulary.train([TEXT], level="bpe", size=300)


def data_in(folder: Path, form: str) -> Path:
    folder.mkdir()
    for split in ("train", *(["valid"] if form == "splits" else []), "test"):
        (folder / f"{split}.txt").write_text(TEXT + split)
    return folder / "train.txt" if form == "single" else folder


@pytest.mark.parametrize("kept_from", [1, 1 << 30])
@pytest.mark.parametrize("unit", ["stream", "lines"])
@pytest.mark.parametrize(
    ("form", "split"),
    [
        *[("splits", split) for split in ("train", "valid", "test")],
        *[("held out", split) for split in ("train", "valid", "test")],
        *[("single", split) for split in ("train", "valid", None)],
        *[("built-in", split) for split in ("valid", "test", None)],
    ],
)
def test_what_streams_is_what_is_read(
    form: str,
    split: str | None,
    unit: str,
    kept_from: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpora, "KEPT_FROM", kept_from)
    monkeypatch.setattr(masked_task, "HELD_BACK", 100)
    data = "" if form == "built-in" else str(data_in(tmp_path / "data", form))
    way: Any = {"data": data, "unit": unit, "sentences": 200}
    language, masked = LanguageSettings(**way), MaskedSettings(**way)
    for part, texts in (
        (text_part(language, split, read_language), read_language(language, split)[0]),
        (text_part(masked, split, read_masked), read_masked(masked, split)[0]),
    ):
        (found,) = CorpusEncoder(VOCABULARY, silent).encode(part).columns
        expected = encode_ragged(VOCABULARY, texts)
        assert len(found) == len(texts)
        assert found.fingerprint() == expected.fingerprint()

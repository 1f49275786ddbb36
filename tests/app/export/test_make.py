"""From a run to an export and back, from Python and from the command line."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

import saccade
from saccade.app.export.make import export_run
from saccade.app.kinds.language.kind import LanguageModel
from saccade.app.kinds.translation.kind import TranslationModel
from saccade.errors import ConfigError, RunError
from saccade.train.storage.folder import RunFolder
from tests.app.test_cli import run
from tests.train.small import pairs

TEXTS = [source for source, _ in pairs(12)]


def load(folder: Path, **options: str) -> TranslationModel:
    model = saccade.load(folder, device="cpu", **options)  # type: ignore[arg-type]
    assert isinstance(model, TranslationModel)
    return model


@pytest.mark.parametrize("beam", [1, 4])
def test_a_run_says_the_same_through_either_engine(beam: int, translator_run: Path) -> None:
    ours, theirs = load(translator_run), load(translator_run, engine="ctranslate2")
    one, other = (model.predict(TEXTS, beam=beam) for model in (ours, theirs))
    assert [each.text for each in one] == [each.text for each in other]
    assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-4)


def test_an_export_is_written_once_and_again_after_more_training(translator_run: Path) -> None:
    folder = RunFolder(translator_run)
    weights = folder.weights.read_bytes()
    first, _ = export_run(folder, "ctranslate2", quantization="int8")
    assert first == translator_run / "exports" / "ctranslate2-int8"
    assert export_run(folder, "ctranslate2", quantization="int8") == (first, False)
    before = (first / "model.bin").read_bytes()
    try:
        model = folder.load_model(torch.device("cpu"))
        with torch.no_grad():
            model.embedding.weight.mul_(2)  # type: ignore[union-attr]
        folder.save_weights(model)
        assert export_run(folder, "ctranslate2", quantization="int8") == (first, True)
        assert (first / "model.bin").read_bytes() != before
    finally:
        folder.manifest.replace(folder.weights.name, weights)


@pytest.mark.parametrize("name", ["model.bin", "config.json", "saccade.json"])
def test_an_export_that_was_cut_short_is_made_anew(name: str, translator_run: Path) -> None:
    cut = translator_run / "exports" / "ctranslate2-float32" / name
    before = load(translator_run, engine="ctranslate2").predict(TEXTS[0]).text
    os.truncate(cut, cut.stat().st_size // 2)
    assert load(translator_run, engine="ctranslate2").predict(TEXTS[0]).text == before


def test_int8_is_smaller_and_can_be_used(translator_run: Path) -> None:
    sizes = {}
    for precision in ("float32", "int8"):
        model = load(translator_run, engine="ctranslate2", engine_precision=precision)
        assert len(model.predict(TEXTS, beam=2)) == len(TEXTS)
        out = translator_run / "exports" / f"ctranslate2-{precision}"
        sizes[precision] = (out / "model.bin").stat().st_size
    assert sizes["int8"] < sizes["float32"]


def test_the_precision_of_our_own_decoder_is_not_taken_for_the_engines(
    translator_run: Path,
) -> None:
    model = load(translator_run, engine="ctranslate2")
    with pytest.raises(ConfigError, match="precision='int8' is our own decoder's; ctranslate2 has"):
        model.predict("one two", precision="int8")


def test_what_another_engine_has_written_can_be_looked_at(translator_run: Path) -> None:
    theirs, ours = (load(translator_run, engine=engine) for engine in ("ctranslate2", "saccade"))
    for look in (True, False):
        one, other = (model.predict("one two", look=look) for model in (theirs, ours))
        assert one.text == other.text
        for site, seen in one.attention.items():
            torch.testing.assert_close(seen.weights, other.attention[site].weights)


def test_a_language_model_writes_through_the_engine(writer_run: Path) -> None:
    ours, theirs = (
        saccade.load(writer_run, device="cpu", engine=engine)  # type: ignore[arg-type]
        for engine in ("saccade", "ctranslate2")
    )
    assert isinstance(ours, LanguageModel)
    assert isinstance(theirs, LanguageModel)
    one, other = (m.predict("I", sample=False, beam=1, most_tokens=9) for m in (ours, theirs))
    assert one[0].tokens == other[0].tokens
    assert len(theirs.predict("I", count=3)) == 3


@pytest.mark.slow
def test_a_run_of_another_kind_is_refused_before_anything_is_written(translator: Path) -> None:
    with pytest.raises(ConfigError, match="not RnnAttention"):
        load(translator, engine="ctranslate2")
    assert not (translator / "exports").exists()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run at"):
        export_run(RunFolder(tmp_path / "none"), "ctranslate2")


def test_an_engine_that_is_not_installed_is_named(
    translator_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match=r"pip install 'saccade\[export\]'"):
        load(translator_run, engine="ctranslate2")


def test_the_commands_write_an_export_and_use_it(
    translator_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    arguments = ["export", str(translator_run), "--to", "ctranslate2", "-o", str(out), "--json"]
    assert run(arguments, monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(out)
    assert told["bytes"]["model.bin"] == (out / "model.bin").stat().st_size
    assert {"README.md", "tokenizer.json", "saccade.json", "config.json"} <= set(told["bytes"])
    predict = ["predict", str(translator_run), "one two", "--n-best", "2", "--json"]
    answers = []
    for more in ([], ["--engine", "ctranslate2"]):
        assert run([*predict, *more], monkeypatch) == 0
        answers.append(json.loads(capsys.readouterr().out)[0])
    assert answers[0]["text"] == answers[1]["text"]
    assert len(answers[1]["others"]) == 1


def test_onnx_has_no_quantisation_and_says_so(translator_run: Path) -> None:
    with pytest.raises(ConfigError, match="quantization='int8' is for --to ctranslate2"):
        export_run(RunFolder(translator_run), "onnx", quantization="int8")

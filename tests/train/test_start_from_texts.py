"""Runs of words that start from others: their tokenizer, their sizes, and where they came from."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from saccade.app.cli.train import parse_options
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import CheckpointError, ConfigError, SaccadeError
from saccade.models import preset
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.gpt import GptConfig
from saccade.tasks.base import Preparation
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.tokenizer import trained_tokenizer
from saccade.train.recipe import Recipe, from_table, to_table
from saccade.train.recipes import recipe as recipe_named
from saccade.train.run import train
from saccade.train.starting.start import adopted, check_start
from tests.data.tokenizers_made import TEXTS, bert_like, gpt_like, write_byte_pairs
from tests.models.foreigners import save
from tests.train.small import ignore, small_language, small_recipe, train_noting, write_corpus

FIRST = "we eat bread and they drink water\n" * 40
OTHER = "they read a book about the bread that we eat\n" * 40
SMALL = GptConfig(width=16, depth=2, heads=2, longest=48, dropout=0.0)
QUICK = "--train.steps 2 --train.validate-every 2 --train.batch-tokens 64 --train.device cpu"


def language(data: Path, init: Path | str = "", **changes: Any) -> Recipe:
    return replace(
        small_language(steps=2, validate_every=2),
        model=SMALL,
        task=LanguageSettings(data=str(data), unit="lines", vocabulary=290, **changes),
        init=str(init),
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "first.txt").write_text(FIRST)
    (folder / "other.txt").write_text(OTHER)
    return folder


@pytest.fixture(scope="module")
def first(texts: Path) -> Path:
    train(language(texts / "first.txt"), texts / "first", ignore)
    return texts / "first"


def told(name: str, options: str) -> tuple[Recipe, Any]:
    return parse_options(name, recipe_named(name), options.split())


def test_a_language_model_goes_on_with_other_data(texts: Path, first: Path, tmp_path: Path) -> None:
    """Tokenizer, sizes and weights come along, and it is said."""
    data = f"--data {texts / 'other.txt'} --unit lines --window 48"
    chosen, options = told("gpt", f"--init {first} --out {tmp_path / 'run'} {data} {QUICK}")
    assert chosen.model == replace(SMALL, vocabulary=vars(chosen.model)["vocabulary"])
    _, notes = train_noting(chosen, Path(options.out))
    count = len(load_file(first / "model.safetensors"))
    at = notes.index(f"starting from {first}: {count} of {count} tensors loaded")
    size = len(Vocabulary.load(first / "tokenizer.json"))
    assert notes[at + 1 :] == [
        "  sizes as there",
        f"  its tokenizer of {size:,} tokens, whatever the options say of tokens",
    ]
    same = [(one / "tokenizer.json").read_bytes() for one in (first, tmp_path / "run")]
    assert same[0] == same[1]


@pytest.mark.slow
def test_options_change_the_sizes_that_come_along(first: Path, tmp_path: Path) -> None:
    out = f"--out {tmp_path / 'run'}"
    chosen, _ = told("gpt", f"--init={first} {out} --model.depth 3 --model.dropout 0.1")
    assert (vars(chosen.model)["depth"], vars(chosen.model)["width"]) == (3, 16)
    recipe = replace(chosen, task=LanguageSettings(unit="lines", sentences=40))
    quick = replace(recipe.train, steps=1, validate_every=1, device="cpu")
    _, notes = train_noting(replace(recipe, train=quick), tmp_path / "run")
    assert "  sizes as there, but for depth 3, there 2; dropout 0.1, there 0.0" in notes


def test_what_is_no_start_or_of_another_family_changes_no_size(first: Path, tmp_path: Path) -> None:
    rnn, gpt = recipe_named("rnn-lm"), recipe_named("gpt")
    assert adopted(gpt, tmp_path) is gpt
    for init in (first / "model.safetensors", tmp_path / "nowhere", tmp_path):
        asked = replace(gpt, init=str(init))
        assert adopted(asked, tmp_path / "run") == asked
    asked = replace(rnn, init=str(first))
    assert adopted(asked, tmp_path / "run") == asked


def test_of_an_electra_the_discriminator_tells_the_sizes(tmp_path: Path) -> None:
    electra = preset("electra-nano")
    assert isinstance(electra, ElectraConfig)
    (tmp_path / "config.json").write_text(json.dumps(to_table(recipe_named("electra"))))
    for name in ("bert", "bert-classify"):
        chosen = adopted(replace(recipe_named(name), init=str(tmp_path)), tmp_path / "run")
        assert chosen.model == electra.discriminator
    again = adopted(replace(recipe_named("electra"), init=str(tmp_path)), tmp_path / "run")
    assert again.model == electra


@pytest.mark.slow
def test_a_run_that_was_begun_has_its_sizes_though_its_start_is_gone(
    texts: Path, first: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(first, start)
    data = f"--data {texts / 'other.txt'} --unit lines --window 48"
    command = f"--init {start} --out {tmp_path / 'run'} {data} {QUICK} --model.depth 1"
    train(told("gpt", command)[0], tmp_path / "run", ignore)
    shutil.rmtree(start)
    chosen, _ = told("gpt", command)
    _, notes = train_noting(chosen, tmp_path / "run")
    assert notes[-1] == "already trained to step 2 of 2"
    anew = told("gpt", f"{command} --start-over")[0]
    with pytest.raises(ConfigError, match="is not there"):
        train(anew, tmp_path / "run", ignore, start_over=True)


@pytest.mark.slow
def test_weights_alone_bring_no_tokenizer(texts: Path, first: Path, tmp_path: Path) -> None:
    """The way to learn another one."""
    recipe = language(texts / "other.txt", first / "model.safetensors")
    _, notes = train_noting(recipe, tmp_path / "run")
    assert not any("its tokenizer" in note for note in notes)
    learnt = (tmp_path / "run" / "tokenizer.json").read_text()
    assert learnt != (first / "tokenizer.json").read_text()


@pytest.mark.slow
def test_a_tokenizer_that_disagrees_with_its_weights_is_refused_with_both_numbers(
    texts: Path, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tmp_path / "start"
    shutil.copytree(first, start)
    (start / "manifest.json").unlink()
    rows = len(Vocabulary.load(start / "tokenizer.json"))
    bert_like().save(str(start / "tokenizer.json"))
    tokens = len(Vocabulary.load(start / "tokenizer.json"))

    def read(*args: Any) -> None:
        raise AssertionError("data were read")

    with monkeypatch.context() as patch:
        patch.setattr(LanguageSettings, "prepare", read)
        with pytest.raises(ConfigError) as error:
            train(language(texts / "other.txt", start), tmp_path / "run", ignore)
    message = str(error.value)
    assert message.startswith(
        f"the tokenizer of {start} has {tokens} tokens, and its weights have {rows} rows for them "
        "(embedding.weight); put the tokenizer that they were trained with there, or take the "
    )
    way_out = message.rpartition("--init ")[2]
    train(language(texts / "other.txt", way_out), tmp_path / "run", ignore)


def test_an_encoder_of_others_may_have_just_as_many_rows_as_its_tokenizer_has_tokens(
    tmp_path: Path,
) -> None:
    """As ALBERT's and MPNet's published files have."""
    save(tmp_path, "albert", vocab_size=bert_like().get_vocab_size())
    recipe = replace(recipe_named("bert-glue"), init=str(tmp_path))
    assert check_start(adopted(recipe, tmp_path / "run")) == tmp_path


def test_a_folder_of_somebody_else_brings_its_tokenizer_in_the_older_form(
    texts: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    write_byte_pairs(folder, gpt_like())
    model = replace(SMALL, vocabulary=330).build()
    save_file(model.state_dict(), folder / "model.safetensors")
    _, notes = train_noting(language(texts / "other.txt", folder), tmp_path / "run")
    assert "  its tokenizer of 330 tokens, whatever the options say of tokens" in notes
    kept = Vocabulary.load(tmp_path / "run" / "tokenizer.json")
    assert kept.encode(TEXTS[0]) == Vocabulary(gpt_like()).encode(TEXTS[0])
    assert kept.special == (0, 0, 0, None, None)


def test_a_translator_takes_the_tokenizer_of_its_start(tmp_path: Path) -> None:
    data = write_corpus(tmp_path / "data")
    quick = {"steps": 2, "validate_every": 2}
    train(small_recipe(data, **quick), tmp_path / "first", ignore)
    again = replace(small_recipe(data, **quick), init=str(tmp_path / "first"))
    again = replace(again, task=replace(again.task, level="characters"))  # type: ignore[call-arg]
    _, notes = train_noting(again, tmp_path / "second")
    assert any(note.startswith("  its tokenizer of") for note in notes)
    assert not any("missing" in note or "another shape" in note for note in notes)


def test_the_runs_own_tokenizer_comes_first_then_that_of_the_start(
    first: Path, tmp_path: Path
) -> None:
    settings, how = LanguageSettings(vocabulary=280), Preparation(budget=1, seed=0, start=first)
    taken = trained_tokenizer(settings, TEXTS, how)
    assert taken.to_json() == Vocabulary.load(first / "tokenizer.json").to_json()
    bert_like().save(str(tmp_path / "tokenizer.json"))
    own = trained_tokenizer(settings, TEXTS, replace(how, folder=tmp_path))
    assert own.special.mask == 4
    learnt = trained_tokenizer(settings, TEXTS, replace(how, start=None), masks=True)
    assert (len(learnt), learnt.mask) == (280, 4)


def test_a_damaged_tokenizer_of_the_start_is_refused_in_one_line(
    texts: Path, first: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(first, start)
    (start / "tokenizer.json").write_text("{}")
    for told_by in (r"tokenizer\.json is damaged: its SHA-256", r"json is not a tokenizer: "):
        with pytest.raises(SaccadeError, match=told_by) as error:
            train(language(texts / "other.txt", start), tmp_path / "run", ignore)
        assert "\n" not in str(error.value)
        (start / "manifest.json").unlink(missing_ok=True)


def test_a_card_tells_every_generation_also_when_they_are_gone(
    texts: Path, first: Path, tmp_path: Path
) -> None:
    grand = tmp_path / "grandmother"
    shutil.copytree(first, grand)
    train(language(texts / "other.txt", grand), tmp_path / "mother", ignore)
    shutil.rmtree(grand)
    recipe = language(texts / "first.txt", tmp_path / "mother")
    train(recipe, tmp_path / "child", ignore)
    came = f"from the weights of {tmp_path / 'mother'}, which came from {grand}."
    assert came in (tmp_path / "child" / "README.md").read_text()
    shutil.rmtree(tmp_path / "mother")
    longer = replace(recipe, train=replace(recipe.train, steps=3))
    train(longer, tmp_path / "child", ignore)
    assert came in (tmp_path / "child" / "README.md").read_text()
    config = json.loads((tmp_path / "child" / "config.json").read_text())
    assert config["lineage"] == [str(tmp_path / "mother"), str(grand)]


def test_a_lineage_survives_its_table_and_an_odd_one_is_refused() -> None:
    recipe = replace(small_language(), init="b", lineage=("b", "a"))
    assert from_table(to_table(recipe), where="here") == recipe
    assert "lineage" not in to_table(small_language())
    with pytest.raises(ConfigError, match=r"^here: lineage must be a list of names$"):
        from_table({**to_table(recipe), "lineage": "b"}, where="here")


def test_wrong_sizes_of_a_start_are_one_line(first: Path, tmp_path: Path) -> None:
    table = json.loads((first / "config.json").read_text())
    table["model"]["heads"] = 3
    (tmp_path / "config.json").write_text(json.dumps(table))
    asked = replace(recipe_named("gpt"), init=str(tmp_path))
    with pytest.raises(SaccadeError, match="width=16 does not divide into heads=3") as error:
        adopted(asked, tmp_path / "run")
    assert "\n" not in str(error.value)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SaccadeError, match=r"config\.json"):
        adopted(asked, tmp_path / "run")


def test_a_start_of_another_kind_of_model_is_refused_as_ever(
    first: Path, texts: Path, tmp_path: Path
) -> None:
    recipe = replace(recipe_named("rnn-lm"), init=str(first))
    task = LanguageSettings(data=str(texts / "other.txt"), unit="lines")
    quick = replace(recipe.train, steps=1, validate_every=1, device="cpu")
    with pytest.raises(CheckpointError, match=r"is it of another architecture\?|fits this"):
        train(replace(recipe, task=task, train=quick), tmp_path / "run", ignore)


@pytest.mark.slow
def test_in_python_it_is_the_same(texts: Path, first: Path, tmp_path: Path) -> None:
    import saccade

    done = saccade.train(
        "gpt",
        data=texts / "other.txt",
        out=tmp_path / "run",
        init=first,
        unit="lines",
        window=48,
        model={"depth": 1},
        train={"steps": 2, "validate_every": 2, "batch_tokens": 64, "device": "cpu"},
        quiet=True,
    )
    config = json.loads((done.folder / "config.json").read_text())
    assert (config["model"]["width"], config["model"]["depth"]) == (16, 1)
    assert (done.folder / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()

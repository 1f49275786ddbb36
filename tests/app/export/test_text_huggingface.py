"""Text models in transformers: the same tokens, logits and texts there, or a line that says why."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import saccade
from saccade.app.export.make import export_run
from saccade.config import ModelConfig
from saccade.data.batching.rows import Rows
from saccade.data.tokens.foreign_tokenizer import read_tokenizer
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.names.described import described
from saccade.models.names.pretrained import load_pretrained
from saccade.tasks.masked.filler import BlankFiller
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.understanding.labels import Labels
from saccade.train.storage.folder import RunFolder
from tests.app.export.text_runs import (
    BERT,
    ELECTRA,
    LABELS,
    PRETRAINED,
    RELATIVES,
    ROBERTA,
    TEXTS,
    TRANSFORMER,
    vocabulary,
    write_classifier,
    write_filler,
    write_translator,
    write_writer,
)
from tests.app.test_cli import run as run_command
from tests.marks import one_fast

HF: Any = transformers
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}
TRANSLATORS: dict[str, Any] = {
    "post-norm": TRANSFORMER,
    "pre-norm": replace(TRANSFORMER, residual="pre"),
    "swish, biased": replace(TRANSFORMER, activation="swish", output_bias=True),
    "gelu, pre-norm": replace(TRANSFORMER, residual="pre", activation="gelu", depth=1),
}


ENDING = {("post-norm", "words"), ("pre-norm", "characters")}  # with these random weights


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = HF.logging.get_verbosity()
    HF.logging.set_verbosity_error()
    yield
    HF.logging.set_verbosity(before)


def exported(run: RunFolder, auto: str) -> tuple[Path, Any, Any]:
    """The folder, and what transformers load from it: every tensor, and nothing too many."""
    folder, _ = export_run(run, "huggingface")
    model, how = getattr(HF, auto).from_pretrained(folder, output_loading_info=True)
    assert not any(how.values()), how
    return folder, model.eval(), HF.AutoTokenizer.from_pretrained(folder)


def read(tokenizer: Any, *texts: list[str]) -> tuple[dict[str, Tensor], Rows, Tensor]:
    """A padded batch as they read it; the same tokens end to end, and their types."""
    given = tokenizer(*texts, padding=True, truncation=True, return_tensors="pt")
    real = given["attention_mask"].bool()
    rows = Rows.of(given["input_ids"][real], real.sum(dim=1))
    types = given["token_type_ids"][real] if "token_type_ids" in given else torch.zeros(len(real))
    return dict(given), rows, types.long() if len(types) == len(rows.tokens) else rows.tokens * 0


def in_again(folder: Path, run: RunFolder, network: Any) -> None:
    """What the folder tells is the model that was written, and every weight comes back."""
    config = described(folder)
    wanted: Any = run.load_recipe().model
    assert config == getattr(wanted, "discriminator", wanted)
    assert config is not None
    again = config.build()
    report = load_pretrained(again, folder)
    assert report.complete
    assert not report.unexpected
    expected = getattr(network, "discriminator", network).state_dict()
    found = again.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def spread(found: Tensor, expected: Tensor) -> None:
    """Equal, and not because there is nothing to tell apart."""
    assert expected.std() > 0.05
    torch.testing.assert_close(found, expected, **NEAR)


@pytest.mark.parametrize("name", one_fast(TRANSLATORS))
@torch.no_grad()
def test_a_translator_gives_the_same_logits_and_comes_back(name: str, tmp_path: Path) -> None:
    run, ours = write_translator(tmp_path / "run", TRANSLATORS[name])
    folder, theirs, tokenizer = exported(run, "AutoModelForSeq2SeqLM")
    given, source, _ = read(tokenizer, TEXTS)
    words = [[1, 9, 30, 4], [1, 5], [1, 7, 8], [1, 6, 5, 4, 3]]
    target = Rows.of(torch.tensor([*chain(*words)]), torch.tensor([len(one) for one in words]))
    logits = theirs(**given, decoder_input_ids=target.padded()).logits
    spread(target.out_of_rectangle(logits), ours.output(ours.packed(source, target)))
    in_again(folder, run, ours)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["bpe", "words", "characters"])
@pytest.mark.parametrize("name", ["post-norm", "pre-norm"])
@torch.no_grad()
def test_a_translator_writes_the_same_text_greedily_and_by_a_search(
    name: str, level: Any, tmp_path: Path
) -> None:
    words = Vocabulary.train(["a b c"], level=level, size=270)  # few, so that some texts end
    config = replace(TRANSLATORS[name], longest=300)
    run, _ = write_translator(tmp_path / "run", config, level=level, words=words)
    _, theirs, tokenizer = exported(run, "AutoModelForSeq2SeqLM")
    model: Any = saccade.load(run.path, device="cpu")
    said, ended = set[str](), 0
    texts = [" ".join(some) for size in (1, 2, 3) for some in product("abc", repeat=size)]
    for beam in (1, 4):
        how = {"beam": beam, "length_penalty": 0.0}
        for text, one in zip(texts, model.predict(texts, **how)):
            given = tokenizer(text, return_tensors="pt")
            most = 2 * given["input_ids"].shape[1] + 20
            search = {"num_beams": beam, "length_penalty": 0.0} if beam > 1 else {}
            found = theirs.generate(**given, **search, max_length=most + 1)
            assert tokenizer.decode(found[0], skip_special_tokens=True) == one.text
            said.add(one.text)
            ended += int(found[0, -1] == words.end)
    assert len(said) > 2
    assert ended > 3 or (name, level) not in ENDING


@pytest.mark.parametrize("unit", one_fast(["lines", "stream"]))
@pytest.mark.parametrize("level", one_fast(["bpe", "words"]))
@torch.no_grad()
def test_a_language_model_gives_the_same_logits_and_goes_on_alike(
    unit: str, level: str, tmp_path: Path
) -> None:
    run, ours = write_writer(tmp_path / "run", unit=unit, level=level)
    folder, theirs, tokenizer = exported(run, "AutoModelForCausalLM")
    tokenizer.padding_side = "right"
    given, rows, _ = read(tokenizer, TEXTS)
    spread(rows.out_of_rectangle(theirs(**given).logits), ours.output(ours.packed(rows)))
    in_again(folder, run, ours)
    model: Any = saccade.load(run.path, device="cpu")
    for text in ("", *TEXTS[:2]):
        (one,) = model.predict(text, beam=1, most_tokens=8)
        asked = tokenizer(text, return_tensors="pt") if text else {}
        found = theirs.generate(**asked, max_new_tokens=8)
        assert tokenizer.decode(found[0], skip_special_tokens=True) == one.text


@pytest.mark.parametrize("name", RELATIVES)
@torch.no_grad()
def test_a_model_of_hidden_words_gives_the_same_logits_and_comes_back(
    name: str, tmp_path: Path
) -> None:
    run, ours = write_filler(tmp_path / "run", RELATIVES[name])
    folder, theirs, tokenizer = exported(run, "AutoModelForMaskedLM")
    assert theirs.config.model_type == name
    given, rows, types = read(tokenizer, TEXTS, TEXTS[::-1])
    hidden = ours(rows, types)
    expected = ours.output(ours.transformed(hidden))
    spread(rows.out_of_rectangle(theirs(**given).logits), expected)
    in_again(folder, run, ours)


@torch.no_grad()
def test_next_sentences_come_along(tmp_path: Path) -> None:
    run, ours = write_filler(tmp_path / "run", replace(BERT, next_sentence=True))
    folder, theirs, tokenizer = exported(run, "AutoModelForPreTraining")
    given, rows, types = read(tokenizer, TEXTS, TEXTS[::-1])
    hidden, found = ours(rows, types), theirs(**given)
    expected = ours.output(ours.transformed(hidden))
    spread(rows.out_of_rectangle(found.prediction_logits), expected)
    spread(found.seq_relationship_logits, ours.follows(hidden, rows))
    in_again(folder, run, ours)
    assert "prediction_logits" in (folder / "README.md").read_text()


@pytest.mark.parametrize("model", [PRETRAINED, replace(ELECTRA, head="replaced")])
@torch.no_grad()
def test_of_an_electra_the_discriminator_is_kept(model: ModelConfig, tmp_path: Path) -> None:
    run, ours = write_filler(tmp_path / "run", model)
    folder, theirs, tokenizer = exported(run, "AutoModelForPreTraining")
    given, rows, types = read(tokenizer, TEXTS)
    found = rows.out_of_rectangle(theirs(**given).logits[..., None])
    spread(found, ours.scores(ours(rows, types), rows))
    in_again(folder, run, ours)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", RELATIVES)
@torch.no_grad()
def test_a_classifier_says_the_same_of_a_text(name: str, kind: Any, tmp_path: Path) -> None:
    labels = LABELS[kind]
    run, ours = write_classifier(tmp_path / "run", RELATIVES[name], labels)
    auto = "TokenClassification" if kind == "tags" else "SequenceClassification"
    folder, theirs, tokenizer = exported(run, f"AutoModelFor{auto}")
    given, rows, types = read(tokenizer, TEXTS)
    found, expected = theirs(**given).logits, ours.scores(ours(rows, types), rows)
    if kind == "number":
        spread(found, expected * labels.deviation + labels.mean)
        model: Any = saccade.load(run.path, device="cpu")
        said = [one.number for one in model.predict(TEXTS)]
        assert found[:, 0].tolist() == pytest.approx(said, abs=1e-4)
    else:
        spread(rows.out_of_rectangle(found) if kind == "tags" else found, expected)
        in_again(folder, run, ours)
    names = labels.names or ("number",)
    assert theirs.config.id2label == dict(enumerate(names))
    problems = {"classes": "single_label_classification", "labels": "multi_label_classification"}
    wanted = {**problems, "number": "regression", "tags": None}[kind]
    assert theirs.config.problem_type == wanted


@torch.no_grad()
def test_a_pair_is_read_and_cut_as_ours(tmp_path: Path) -> None:
    labels = replace(LABELS["classes"], pairs=True)
    run, _ = write_classifier(tmp_path / "run", BERT, labels, longest=12)
    folder, theirs, tokenizer = exported(run, "AutoModelForSequenceClassification")
    model: Any = saccade.load(run.path, device="cpu")
    given, rows, types = read(tokenizer, TEXTS, TEXTS[::-1])
    pairs = list(zip(TEXTS, TEXTS[::-1]))
    readings = model.tool.vocabulary.readings(pairs, longest=12)
    assert rows.tokens.tolist() == [token for one in readings for token in one.tokens]
    assert types.tolist() == [kind for one in readings for kind in one.types]
    scores, _ = model.tool.scored(pairs)
    torch.testing.assert_close(theirs(**given).logits, torch.stack(scores), **NEAR)
    assert 'tokenizer("…", "…", truncation' in (folder / "README.md").read_text()


@pytest.mark.parametrize("level", ["bpe", "words", "characters"])
def test_a_tokenizer_reads_and_writes_as_ours(level: Any, tmp_path: Path) -> None:
    run, _ = write_translator(tmp_path / "run", TRANSFORMER, level=level)
    folder, _, tokenizer = exported(run, "AutoModelForSeq2SeqLM")
    words = vocabulary(level)
    for text in (*TEXTS, "unseen Wörter", "<end of text> <unknown word> <no word>"):
        tokens = words.encode(text)
        assert tokenizer(text)["input_ids"] == [*tokens, words.end]
        assert tokenizer.decode([1, *tokens, 2, 0], skip_special_tokens=True) == words.decode(
            tokens
        )
        again = read_tokenizer(folder)
        assert again is not None
        assert again.encode(text) == tokens
        assert again.decode(tokens) == words.decode(tokens)
        assert again.special == words.special
    assert tokenizer.model_max_length == TRANSFORMER.longest
    saved = tmp_path / "saved"
    tokenizer.save_pretrained(saved)
    once_more = HF.AutoTokenizer.from_pretrained(saved)
    assert all(once_more(text) == tokenizer(text) for text in TEXTS)


@pytest.mark.parametrize("level", ["bpe", "words"])
def test_hidden_words_are_typed_by_their_name(level: Any, tmp_path: Path) -> None:
    words = vocabulary(level, masks=True)
    run, ours = write_filler(tmp_path / "run", BERT, words=words)
    folder, _, tokenizer = exported(run, "AutoModelForMaskedLM")
    filler = BlankFiller(ours, words, MaskedSettings())
    blanks = ["The old ___ sleeps.", "___ runs", "a ___ ___ falls"]
    for text in [*blanks, *(["Dogs ___, a ___."] if level == "bpe" else []), *TEXTS[:2]]:
        typed = text.replace("___", tokenizer.mask_token)
        assert tokenizer(typed)["input_ids"] == filler.blanks.read(text).tokens
        again = read_tokenizer(folder)
        assert again is not None
        assert again.encode(text) == words.encode(text)
        tokens = words.encode(text)
        assert again.word_groups(tokens) == words.word_groups(tokens)
        assert again.mask == words.mask


@torch.no_grad()
def test_positions_of_a_roberta_begin_after_its_padding(tmp_path: Path) -> None:
    run, ours = write_filler(tmp_path / "run", replace(ROBERTA, first_position=2))
    folder, theirs, tokenizer = exported(run, "AutoModelForMaskedLM")
    given, rows, types = read(tokenizer, TEXTS)
    expected = ours.output(ours.transformed(ours(rows, types)))
    spread(rows.out_of_rectangle(theirs(**given).logits), expected)
    wanted: Any = run.load_recipe().model
    assert described(folder) == replace(wanted, first_position=1)


def foreign(kind: str) -> Vocabulary:
    """A tokenizer with special tokens and a template of others."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    names = {
        "bert": ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"),
        "roberta": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    }[kind]
    words = [*names, "the", "old", "dog", "sleeps", "one", "a", "river", "runs", ".", ",", "and"]
    numbers = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=names[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(names))
    around = processors.BertProcessing if kind == "bert" else processors.RobertaProcessing
    start = names[1] if kind == "bert" else names[0]
    tokenizer.post_processor = around((names[2], numbers[names[2]]), (start, numbers[start]))
    return Vocabulary(tokenizer)


@pytest.mark.parametrize(("kind", "model"), [("bert", BERT), ("roberta", ROBERTA)])
@torch.no_grad()
def test_the_template_of_a_tokenizer_that_came_along_stays(
    kind: str, model: Any, tmp_path: Path
) -> None:
    words = foreign(kind)
    config = replace(model, first_position=2) if kind == "roberta" else model
    labels = replace(LABELS["classes"], pairs=True)
    run, ours = write_classifier(tmp_path / "run", config, labels, words=words)
    folder, theirs, tokenizer = exported(run, "AutoModelForSequenceClassification")
    given, rows, types = read(tokenizer, TEXTS, TEXTS[::-1])
    readings = words.readings(list(zip(TEXTS, TEXTS[::-1])), longest=30)
    assert rows.tokens.tolist() == [token for one in readings for token in one.tokens]
    spread(theirs(**given).logits, ours.scores(ours(rows, types), rows))
    in_again(folder, run, ours)
    assert tokenizer.unk_token == words.name(words.special.unknown or 0)


def test_other_labels_make_an_export_stale(tmp_path: Path) -> None:
    run, _ = write_classifier(tmp_path / "run", BERT, LABELS["classes"])
    assert export_run(run, "huggingface")[1]
    assert not export_run(run, "huggingface")[1]
    renamed = Labels("classes", ("x", "y", "z"))
    (run.path / "labels.json").write_bytes(renamed.to_json())
    (run.path / "manifest.json").unlink()  # which would refuse it
    folder, written = export_run(run, "huggingface")
    assert written
    assert json.loads((folder / "config.json").read_text())["id2label"]["2"] == "z"


def test_the_command_writes_a_folder_from_which_another_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_writer(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert run_command(["export", "run", "--to", "huggingface", "--json"], monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    names = {"config.json", "model.safetensors", "generation_config.json"}
    tokens = {"tokenizer.json", "tokenizer_config.json"}
    assert {*names, *tokens, "README.md", "saccade.json"} == set(told["bytes"])
    few = "--train.steps 1 --train.validate-every 1 --sentences 8 --train.device cpu"
    line = f"train gpt {few} --unit lines --window 32 --init {told['folder']} --out again"
    assert run_command(line.split(), monkeypatch) == 0
    said = capsys.readouterr().err
    assert "36 of 36 tensors loaded" in said
    assert "sizes as there" in said
    assert "its tokenizer of" in said

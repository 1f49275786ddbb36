"""A model of transformers as a user meets it: trained, used, looked into, served."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import saccade
from saccade.app.kinds.understanding.model import UnderstandingModel
from saccade.app.look.settings import LookSettings
from saccade.app.look.understanding.document import understanding_document
from saccade.errors import ConfigError
from saccade.models.text.foreign import ForeignEncoderConfig
from saccade.train.recipes import recipe
from saccade.train.starting.start import adopted
from saccade.train.storage.folder import RunFolder
from tests.app.serve.serving import LocalServer
from tests.app.test_classification import run
from tests.app.test_cli import Capture
from tests.data.tokenizers_made import bert_like
from tests.models.foreigners import save, t5_like
from tests.tasks.understanding.texts import write_texts

ASKED = "the very old dog sleeps ."
QUICK = (
    *("--longest", 32, "--train.steps", 2, "--train.validate-every", 2, "--train.device", "cpu"),
    *("--train.batch-tokens", 64),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and runs by family, whose starts are gone."""
    folder = tmp_path_factory.mktemp("foreign")
    write_texts(folder / "data", "classes")
    write_texts(folder / "tags", "tags")
    for kind, data, tokenizer in (
        ("albert", "data", bert_like()),
        ("t5", "data", t5_like()),
        ("deberta-v2", "tags", bert_like()),
        ("funnel", "data", bert_like()),
    ):
        start = folder / f"{kind}-start"
        save(start, kind, tokenizer=tokenizer, vocab_size=300)
        saccade.train(
            "bert-tag" if data == "tags" else "bert-classify",
            data=folder / data,
            init=start,
            out=folder / kind,
            longest=32,
            train={"steps": 2, "validate_every": 2, "batch_tokens": 64, "device": "cpu"},
            quiet=True,
        )
        shutil.rmtree(start)
    return folder


def loaded(run: Path) -> UnderstandingModel:
    model = saccade.load(run, device="cpu")
    assert isinstance(model, UnderstandingModel)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["albert", "t5", "deberta-v2", "funnel"])
def test_a_run_needs_nothing_of_where_it_came_from(kind: str, folder: Path) -> None:
    """Not even the answers depend on what else is read."""
    config = RunFolder(folder / kind).load_recipe().model
    assert isinstance(config, ForeignEncoderConfig)
    assert config.kind == kind
    texts = [ASKED, "a cat", "the very very old tree falls .", "dog"]
    together = loaded(folder / kind).predict(list(texts))
    one_by_one = [loaded(folder / kind).predict(text) for text in texts]
    assert [one.text for one in together] == [one.text for one in one_by_one]
    for one, other in zip(together, one_by_one):
        assert one.score == (other.score if other.score is None else pytest.approx(other.score))


@pytest.mark.slow
def test_commands_work_as_on_our_own(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "predict", folder / "albert", ASKED, "--best", 2)
    assert (code, len(out.splitlines())) == (0, 2)
    code, out, _ = run(capsys, "eval", folder / "albert", "--json")
    assert (code, json.loads(out)["texts"]) == (0, 12)
    code, out, _ = run(capsys, "look", folder / "albert", ASKED)
    assert code == 0
    sites = ["relevance", "rollout", "encoder.0.self", "encoder.0~2.self", "encoder.0~3.self"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == sites
    for kind in ("albert", "t5", "deberta-v2"):
        for end in ("html", "json", "svg"):
            out = tmp_path / f"{kind}.{end}"
            assert run(capsys, "look", folder / kind, ASKED, "--out", out)[0] == 0
        model = loaded(folder / kind)
        (look,) = understanding_document([model], (ASKED,), LookSettings()).looks
        assert {site.name for site in look.sites} >= {"relevance", "rollout"}
        assert {site.heads for site in look.sites if not site.derived} == {2}
        assert bool(look.axes["decision"].places) == (kind != "t5")
    words, tags = run(capsys, "predict", folder / "deberta-v2", ASKED)[1].splitlines()
    assert (words.split(), len(tags.split())) == (ASKED.split(), 6)


@pytest.mark.slow
def test_what_cannot_be_looked_into_says_so_in_one_line(folder: Path, capsys: Capture) -> None:
    code, _, err = run(capsys, "look", folder / "funnel", ASKED)
    assert (code, err.count("\n")) == (2, 1)
    assert "pools or cuts the text" in err
    albert = folder / "albert"
    for zoom, message in (
        ("encoder.9.self:0", "has no site 'encoder.9.self'; there are: encoder.0.self"),
        ("encoder.0.self:2", "encoder.0.self has no head 2; it has 2, counted from 0"),
    ):
        code, _, err = run(capsys, "look", albert, ASKED, "--out", "x.html", "--zoom", zoom)
        assert (code, message in err) == (2, True), err


@pytest.mark.slow
def test_it_is_served_with_its_looks(folder: Path) -> None:
    with LocalServer([folder / "albert"]) as server:
        answer = server.predict(ASKED).json()
        assert loaded(folder / "albert").predict(ASKED).text in json.dumps(answer)
        look = server.post("/v1/look", {"text": ASKED})
        assert look.status_code == 200


@pytest.mark.slow
def test_a_run_goes_on_from_a_run_and_other_recipes_refuse_it(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    given = ("--data", folder / "data", "--out", tmp_path / "next", *QUICK)
    code, _, err = run(capsys, "train", "bert-glue", "--init", folder / "albert", *given)
    assert code == 0, err
    assert "27 of 27 tensors loaded" in err
    given = ("--out", tmp_path / "other", "--train.device", "cpu")
    for name, options, message in (
        ("bert", (), "tells classes of texts and of words, not words; train one of ours"),
        ("bert-glue", ("--train.freeze", 1), "does not say which of its layers lies above which"),
        ("bert-glue", ("--train.layer-decay", 0.9), "does not say which of its layers lies above"),
        ("bert-glue", ("--train.lora", 4), "has no matrices of queries and values to adapt"),
    ):
        code, _, err = run(capsys, "train", name, "--init", folder / "albert", *options, *given)
        assert (code, message in err) == (2, True), err


def test_only_recipes_of_text_encoders_take_such_a_model(tmp_path: Path) -> None:
    save(tmp_path, "albert")
    for name, taken in (("bert-glue", True), ("gpt", False), ("vit", False)):
        chosen = adopted(replace(recipe(name), init=str(tmp_path)), tmp_path / "out")
        assert isinstance(chosen.model, ForeignEncoderConfig) == taken
    with pytest.raises(ConfigError, match="not words"):
        recipe("bert").task.check(ForeignEncoderConfig())

"""A ViLBERT that starts from a BERT of others, from one of ours, and from a pre-trained ViLBERT."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from saccade.errors import CheckpointError
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.models.names.pretrained import load_pretrained
from saccade.models.text.bert import BertConfig, encoded
from saccade.tasks import KINDS
from saccade.tasks.base import TaskSettings
from saccade.tasks.joint import data as joint_data
from saccade.tasks.joint.answering import AnsweringSettings
from saccade.tasks.joint.choosing import ChoosingSettings
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.tasks.joint.referring import ReferringSettings
from saccade.tasks.masked.task import MaskedSettings
from saccade.train.recipe import Recipe
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted
from tests.data.tokenizers_made import bert_like
from tests.models.encoders import rows_of, types_of
from tests.train.small import ignore, train_noting

HF: Any = transformers
SMALL = VilbertConfig(
    vocabulary=150,
    width=16,
    depth=3,
    heads=2,
    hidden=24,
    longest=40,
    region_width=12,
    region_depth=2,
    region_heads=2,
    region_hidden=12,
    joins=2,
    join_width=8,
    join_heads=2,
    dropout=0.0,
    encoder="resnet-mini",
    stage=3,
    regions="boxes",
    contrast=True,
)
SIZES: dict[str, Any] = {"image": 32, "scenes": 12}
NAMES: dict[str, type[TaskSettings]] = {
    "answering": AnsweringSettings,
    "fitting": FittingSettings,
    "referring": ReferringSettings,
    "choosing": ChoosingSettings,
    "joint": JointPretrainingSettings,
}
FEW = TrainSettings(steps=1, batch_tokens=20, warmup=0, validate_every=1, device="cpu")
TEXTS = [[2, 5, 6, 7, 3], [2, 8, 3], [2, 9, 10, 4, 8, 11, 12, 3]]


@pytest.fixture(scope="module", autouse=True)
def few_held_back() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_data, "HELD_BACK", 6)
        for name, kind in NAMES.items():
            patch.setitem(KINDS, name, kind)
        yield


def theirs(kind: str, **more: Any) -> Any:
    torch.manual_seed(3)
    config = HF.BertConfig(
        vocab_size=150,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        initializer_range=0.5,
        **more,
    )
    return getattr(HF, kind)(config).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of Hugging Face's, with a tokenizer."""
    path = tmp_path_factory.mktemp("theirs")
    theirs("BertForPreTraining").save_pretrained(path)
    bert_like().save(str(path / "tokenizer.json"))
    return path


def recipe(task: TaskSettings, init: Path | str = "", model: Any = SMALL) -> Recipe:
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=model,
        task=task,
        train=FEW,
        init=str(init),
    )


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "pretrained"
    train(recipe(JointPretrainingSettings(**SIZES)), path, ignore)
    return path


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM", "BertModel"])
@torch.no_grad()
def test_the_stream_of_words_is_then_that_bert(kind: str, tmp_path: Path) -> None:
    bert, rows = theirs(kind), rows_of(TEXTS)
    bert.save_pretrained(tmp_path)
    model = Vilbert(SMALL).eval()
    report = load_pretrained(model, tmp_path)
    types = types_of(rows)
    found = encoded(model.embeddings(rows, types), None, model.encoder, rows)
    inside = bert if kind == "BertModel" else bert.bert
    real = rows.rectangle(torch.ones_like(rows.tokens))
    expected = inside(
        input_ids=rows.padded(), attention_mask=real, token_type_ids=rows.rectangle(types)
    ).last_hidden_state
    torch.testing.assert_close(found, expected[real.bool()], atol=1e-4, rtol=1e-4)
    assert {name.split(".")[0] for name in report.missing} == {
        *("image_encoder", "joins", "region_input", "region_encoder"),
        *("pool_words", "pool_regions", "contrast"),
    }
    fills = kind != "BertModel"
    fresh = {"fit", "tells"} | (set[str]() if fills else {"words"})
    assert {name.split(".")[0] for name in report.fresh} == fresh
    if fills:
        z = model.output(model.transformed(found))
        head = bert.cls.predictions(expected[real.bool()])
        torch.testing.assert_close(z, head, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
def test_its_tokenizer_comes_along_and_it_is_said(folder: Path, tmp_path: Path) -> None:
    asked = recipe(JointPretrainingSettings(**SIZES), folder)
    assert adopted(asked, tmp_path / "run") == asked  # a BERT does not say how two streams meet
    _, notes = train_noting(asked, tmp_path / "run")
    said = "\n".join(notes)
    assert "its tokenizer of 150 tokens" in said
    assert "of a new head, random at first (fit.weight" in said
    assert "bert.pooler.dense.weight" in said  # in the file but not in the model
    weights = load_file(tmp_path / "run" / "model.safetensors")
    assert weights["embeddings.words.weight"].shape == (150, 16)


def test_a_roberta_counts_its_places_otherwise_and_is_refused(tmp_path: Path) -> None:
    config = HF.RobertaConfig(
        vocab_size=150,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=42,
    )
    HF.RobertaForMaskedLM(config).save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"no weight of .* belongs to Vilbert: it has lm_head"
    ):
        load_pretrained(Vilbert(SMALL), tmp_path)


@pytest.mark.slow
def test_from_a_bert_of_our_own(tmp_path: Path) -> None:
    bert = BertConfig(width=16, depth=3, heads=2, hidden=24, longest=40, dropout=0.0)
    (tmp_path / "texts.txt").write_text("a red circle is left of a blue square\n" * 40)
    task = MaskedSettings(data=str(tmp_path / "texts.txt"), level="words")
    train(
        replace(recipe(task, model=bert), train=replace(FEW, batch_tokens=64)),
        tmp_path / "bert",
        ignore,
    )
    asked = recipe(JointPretrainingSettings(**SIZES), tmp_path / "bert")
    asked = replace(asked, train=replace(FEW, learning_rate=1e-12))
    _, notes = train_noting(asked, tmp_path / "joint")
    before = load_file(tmp_path / "bert" / "model.safetensors")
    after = load_file(tmp_path / "joint" / "model.safetensors")
    stream = [n for n in before if n.startswith(("embeddings", "encoder", "words"))]
    assert len(stream) == len([n for n in after if n.startswith(("emb", "enc", "words"))])
    for name in stream:
        torch.testing.assert_close(after[name], before[name], atol=1e-6, rtol=0)
    tokenizers = [(tmp_path / run / "tokenizer.json").read_bytes() for run in ("bert", "joint")]
    assert tokenizers[0] == tokenizers[1]
    assert "starting from" in "\n".join(notes)


SECOND: dict[str, tuple[TaskSettings, set[str]]] = {
    "answering": (AnsweringSettings(**SIZES), {"answer"}),
    "fitting": (FittingSettings(**SIZES), set[str]()),
    "referring": (ReferringSettings(**SIZES), {"choose"}),
    "choosing": (ChoosingSettings(**SIZES), set[str]()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SECOND)
def test_from_pre_training_to_what_it_was_for(kind: str, pretrained: Path, tmp_path: Path) -> None:
    task, fresh = SECOND[kind]
    other = replace(SMALL, width=32, depth=2)  # the start knows better
    asked = adopted(recipe(task, pretrained, other), tmp_path / "run")
    assert isinstance(asked.model, VilbertConfig)
    assert (asked.model.width, asked.model.depth) == (16, 3)
    asked = replace(asked, train=replace(FEW, learning_rate=1e-12))
    _, notes = train_noting(asked, tmp_path / "run")
    before = load_file(pretrained / "model.safetensors")
    after = load_file(tmp_path / "run" / "model.safetensors")
    same = [name for name in after if name in before and name.split(".")[0] not in fresh]
    assert {name.split(".")[0] for name in after if name not in before} == fresh
    for name in same:
        if not name.endswith(("running_mean", "running_var", "num_batches_tracked")):
            torch.testing.assert_close(after[name], before[name], atol=1e-6, rtol=0)
    said = "\n".join(notes)
    assert "missing" not in said
    assert ("of a new head, random at first" in said) == bool(fresh)
    assert "its tokenizer of" in said

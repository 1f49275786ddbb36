"""Weights of text models as files have them: tied twice, in old names, without a head, or with
another than is wanted.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor

from saccade.errors import CheckpointError
from saccade.models.names.pretrained import load_pretrained
from tests.models import zoo
from tests.models.encoders import ELECTRA
from tests.models.names.counterparts import SIZES, TEXTS, TWINS, TYPES, WORDS

HF: Any = transformers
State = dict[str, Tensor]


def twins(name: str) -> tuple[Any, Any, State]:
    """Theirs, ours with the same weights, and all that a file of theirs may hold."""
    theirs, ours = TWINS[name].built(SIZES[0])
    state = {key: x.detach().clone() for key, x in theirs.state_dict().items()}
    return theirs, ours, state


def fresh(name: str, **changes: Any) -> Any:
    torch.manual_seed(5)
    config: Any = TWINS[name].config(SIZES[0])
    return replace(config, **changes).build().double().eval()


def same(one: Any, two: Any) -> bool:
    ours, theirs = one.state_dict(), two.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[x], theirs[x]) for x in ours)


def saved(folder: Path, state: State) -> Path:
    save_file(state, folder / "model.safetensors")
    return folder


TIED = {
    "bert pretraining": ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    "Roberta MaskedLM": ("lm_head.decoder.weight", "lm_head.decoder.bias"),
    "DistilBert MaskedLM": ("vocab_projector.weight",),
    "Electra MaskedLM": ("generator_lm_head.weight",),
    "gpt2": ("lm_head.weight",),
    "marian": (
        *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
        *("lm_head.weight", "model.encoder.embed_positions.weight"),
    ),
}


@pytest.mark.parametrize("name", TIED)
def test_tied_tensors_may_be_in_a_file_or_not(name: str, tmp_path: Path) -> None:
    _, ours, state = twins(name)
    assert state.keys() >= set(TIED[name])
    for dropped in ((), TIED[name]):
        model = fresh(name)
        few = {key: x for key, x in state.items() if key not in dropped}
        report = load_pretrained(model, saved(tmp_path, few))
        assert report.complete
        assert report.unexpected == ()
        assert same(model, ours)


@pytest.mark.parametrize(
    ("name", "kept", "given_up"),
    [
        ("Roberta MaskedLM", "lm_head.decoder.bias", "lm_head.bias"),
        ("gpt2", "lm_head.weight", "transformer.wte.weight"),
        ("marian", "lm_head.weight", "model.shared.weight"),
    ],
)
def test_a_tied_tensor_may_be_there_under_its_other_name_alone(
    name: str, kept: str, given_up: str, tmp_path: Path
) -> None:
    _, ours, state = twins(name)
    del state[given_up]
    assert kept in state
    model = fresh(name)
    assert load_pretrained(model, saved(tmp_path, state)).complete
    assert same(model, ours)


def test_an_output_layer_that_is_not_the_embedding_is_told(tmp_path: Path) -> None:
    _, _, state = twins("gpt2")
    state["lm_head.weight"] += 1
    assert load_pretrained(fresh("gpt2"), saved(tmp_path, state)).unexpected == ("lm_head.weight",)


def test_a_bias_of_words_that_the_model_cannot_have_is_told_unless_it_is_zero(
    tmp_path: Path,
) -> None:
    _, _, state = twins("marian")
    model = fresh("marian", output_bias=False)
    report = load_pretrained(model, saved(tmp_path, state))
    assert report.unexpected == ("final_logits_bias",)
    state["final_logits_bias"].zero_()
    assert load_pretrained(model, saved(tmp_path, state)).unexpected == ()


def test_names_of_old_files_and_what_is_not_learnt_are_known(tmp_path: Path) -> None:
    _, ours, state = twins("bert MaskedLM")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in state.items()
    }
    assert any(name.endswith("gamma") for name in old)
    old["bert.embeddings.position_ids"] = torch.arange(12)[None]
    model = fresh("bert MaskedLM")
    report = load_pretrained(model, saved(tmp_path, old))
    assert report.complete
    assert report.unexpected == ()
    assert same(model, ours)


def test_masks_that_old_files_of_gpt2_hold_are_no_weights(tmp_path: Path) -> None:
    _, ours, state = twins("gpt2")
    bare = {name.removeprefix("transformer."): x for name, x in state.items() if "lm" not in name}
    bare["h.0.attn.bias"] = torch.ones(1, 1, 12, 12)
    bare["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    model = fresh("gpt2")
    report = load_pretrained(model, saved(tmp_path, bare))
    assert report.complete
    assert report.unexpected == ()
    assert same(model, ours)


HEADLESS = [
    "bert SequenceClassification",
    "Roberta SequenceClassification",
    "DistilBert SequenceClassification",
    "Electra SequenceClassification",
]


@pytest.mark.parametrize("name", HEADLESS)
def test_a_model_saved_without_its_head_gives_all_but_that(name: str, tmp_path: Path) -> None:
    theirs, ours, _ = twins(name)
    theirs.base_model.save_pretrained(tmp_path)
    model = fresh(name)
    drawn = {key: x.clone() for key, x in model.state_dict().items()}
    report = load_pretrained(model, tmp_path)
    assert report.fits
    assert report.unexpected == ()
    has_pooler = name.startswith("bert")
    assert {key.partition(".")[0] for key in report.fresh} == (
        {"classifier"} if has_pooler else {"pooler", "classifier"}
    )
    for key, found in model.state_dict().items():
        expected = drawn if key in report.fresh else ours.state_dict()
        assert torch.equal(found, expected[key])
    with torch.no_grad():
        torch.testing.assert_close(model(TEXTS, TYPES), ours(TEXTS, TYPES))


@pytest.mark.parametrize("head", ["text", "tokens"])
def test_a_pre_trained_model_becomes_a_classifier_whose_head_is_drawn(
    head: str, tmp_path: Path
) -> None:
    _, ours, state = twins("bert pretraining")
    model = fresh("bert pretraining", head=head, labels=5)
    report = load_pretrained(model, saved(tmp_path, state))
    assert report.fits
    assert report.fresh == (
        ("classifier.weight", "classifier.bias")
        if head == "text"
        else ("tagger.weight", "tagger.bias")
    )
    assert {name.partition(".")[0] for name in report.unexpected} - {"bert"} == {"cls"}
    assert "2 of a new head, random at first" in str(report)
    assert "in the file but not in the model (" in str(report)
    own = model.state_dict()
    assert own[report.fresh[0]].std().item() == pytest.approx(0.02, rel=0.3)
    assert not own[report.fresh[1]].any()
    with torch.no_grad():
        torch.testing.assert_close(model(TEXTS, TYPES), ours(TEXTS, TYPES))


def test_a_head_for_other_labels_is_drawn_and_told(tmp_path: Path) -> None:
    _, _, state = twins("bert SequenceClassification")
    model = fresh("bert SequenceClassification", labels=7)
    report = load_pretrained(model, saved(tmp_path, state))
    assert report.fresh == ("classifier.weight: 3×16, not 7×16", "classifier.bias: 3, not 7")
    assert model.classifier.weight.std().item() == pytest.approx(0.02, rel=0.3)


def test_shorter_texts_take_the_first_positions_and_longer_ones_are_told(tmp_path: Path) -> None:
    _, ours, state = twins("Roberta MaskedLM")
    folder = saved(tmp_path, state)
    model = fresh("Roberta MaskedLM", longest=8)
    report = load_pretrained(model, folder)
    assert report.complete
    assert report.resized == ("embeddings.positions.table",)
    assert torch.equal(model.embeddings.positions.table, ours.embeddings.positions.table[:10])
    longer = load_pretrained(fresh("Roberta MaskedLM", longest=20), folder)
    assert longer.mismatched == ("embeddings.positions.table: 14×16, not 22×16",)


def test_a_classifier_starts_from_the_discriminator_of_an_electra_of_ours(tmp_path: Path) -> None:
    run = zoo.build(ELECTRA)
    saved(tmp_path, run.state_dict())
    model: Any = replace(ELECTRA.discriminator, head="text").build().double().eval()
    report = load_pretrained(model, tmp_path)
    assert report.fits
    assert {name.partition(".")[0] for name in report.fresh} == {"pooler", "classifier"}
    assert {name.partition(".")[0] for name in report.unexpected} == {
        "generator_layers",
        "discriminator",
    }
    few = TEXTS._replace(tokens=TEXTS.tokens % ELECTRA.vocabulary)
    with torch.no_grad():
        assert torch.equal(model(few, TYPES), run(few, TYPES))


def test_an_electra_goes_on_from_a_discriminator_of_others(tmp_path: Path) -> None:
    _, ours, state = twins("electra discriminator")
    sizes = {"vocabulary": WORDS, "longest": 12, "hidden": 24, "width": 16, "depth": 2}
    model = replace(ELECTRA, **sizes).build().double()
    report = load_pretrained(model, saved(tmp_path, state))
    assert all(name.startswith("generator_layers") for name in report.missing)
    assert same(model.discriminator, ours)


def test_weights_of_another_architecture_are_refused(tmp_path: Path) -> None:
    _, _, state = twins("gpt2")
    with pytest.raises(CheckpointError, match=r"no weight of .* belongs to Bert: it has lm_head"):
        load_pretrained(fresh("bert MaskedLM"), saved(tmp_path, state))


def test_tensors_of_odd_shapes_are_told_and_break_nothing(tmp_path: Path) -> None:
    for name, odd in (("gpt2", torch.tensor(1.0)), ("marian", torch.ones(2, 3, 4))):
        _, _, state = twins(name)
        wrong = {key: odd.clone() if "attn" in key else x for key, x in state.items()}
        report = load_pretrained(fresh(name), saved(tmp_path, wrong))
        assert not report.fits

"""A folder of an encoder that is not ours tells what transformers makes of it, or what it needs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_model

from saccade.errors import ConfigError, SaccadeError
from saccade.models.names import foreign as module
from saccade.models.names.described import described
from saccade.models.names.pretrained import load_pretrained
from tests.models.foreigners import MADE, ROWS, drawn, save, some_rows, their_config, told

HF: Any = transformers


@pytest.mark.parametrize(
    ("kind", "tokenizer", "longest", "reads"),
    [
        ("albert", "albert", 40, "first"),
        ("mpnet", "roberta", 38, "first"),  # it counts positions from its padding on
        ("deberta-v2", "bert", 40, "first"),
        ("t5", "t5", None, "mean"),
        ("bart", "roberta", 40, "first"),
        ("xlnet", "xlnet", None, "last"),
    ],
)
def test_a_folder_tells_its_length_and_its_tokenizer_where_a_text_is_read(
    kind: str, tokenizer: str, longest: int | None, reads: str, tmp_path: Path
) -> None:
    made = MADE[tokenizer]()
    save(tmp_path, kind, tokenizer=made, vocab_size=400)
    config = told(tmp_path)
    assert (config.kind, config.longest, config.reads) == (kind, longest, reads)
    assert config.vocabulary == made.get_vocab_size()
    assert json.loads(config.settings)["vocab_size"] == 400
    model = config.build().eval()
    rows = some_rows((longest or 60, 3))
    assert model(rows, torch.zeros_like(rows.tokens)).isfinite().all()


HEADS: dict[str, tuple[Any, str]] = {
    "albert": (lambda: HF.AlbertForSequenceClassification, "albert."),
    "mpnet": (lambda: HF.MPNetForMaskedLM, "mpnet."),
    "deberta-v2": (lambda: HF.DebertaV2ForTokenClassification, "deberta."),
    "xlnet": (lambda: HF.XLNetLMHeadModel, "transformer."),
    "t5": (lambda: HF.T5ForConditionalGeneration, "shared."),
    "bart": (lambda: HF.BartForConditionalGeneration, "model."),
    "funnel": (lambda: HF.FunnelForMaskedLM, "funnel."),
}


@pytest.mark.parametrize("kind", HEADS)
@torch.no_grad()
def test_weights_load_from_under_another_head(kind: str, tmp_path: Path) -> None:
    save(tmp_path, kind)
    headed, inside = HEADS[kind]
    theirs: Any = drawn(headed()(their_config(kind)), seed=3)
    assert any(key.startswith(inside) for key in theirs.state_dict())
    theirs.save_pretrained(tmp_path)
    model = told(tmp_path).build().eval()
    report = load_pretrained(model, tmp_path)
    assert report.fits, str(report)
    assert {one.partition(".")[0] for one in report.fresh} <= {"pooler", "classifier"}
    rows = some_rows((9,))
    inner = theirs.get_encoder() if theirs.config.is_encoder_decoder else theirs.base_model
    wanted = inner(input_ids=rows.tokens[None], attention_mask=torch.ones(1, 9).long())
    found = model(rows, torch.zeros(9).long())
    torch.testing.assert_close(found, wanted.last_hidden_state[0], atol=2e-6, rtol=1e-5)


def test_the_pooler_comes_along_where_the_library_has_one(tmp_path: Path) -> None:
    for kind, name in (("albert", "pooler.weight"), ("mpnet", "pooler.dense.weight")):
        theirs = save(tmp_path, kind)
        model = told(tmp_path).build()
        load_pretrained(model, tmp_path)
        assert model.pooler is not None
        torch.testing.assert_close(model.pooler.weight, theirs.state_dict()[name])


def test_a_run_of_ours_loads_as_a_whole(tmp_path: Path) -> None:
    save(tmp_path, "albert")
    ours = told(tmp_path).build()
    save_model(ours, str(tmp_path / "ours.safetensors"))
    assert load_pretrained(told(tmp_path).build(), tmp_path / "ours.safetensors").complete


def write(folder: Path, **settings: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_code_beside_weights_is_never_run(tmp_path: Path) -> None:
    save(tmp_path, "albert")
    (tmp_path / "evil.py").write_text("raise SystemExit('run')")
    values = json.loads((tmp_path / "config.json").read_text())
    code = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    write(tmp_path, **{**values, "auto_map": code})
    assert "evil" not in told(tmp_path).settings
    told(tmp_path).build()
    write(tmp_path, **{**values, "auto_map": code, "model_type": "evil"})
    with pytest.raises(ConfigError, match=r"config.json: model_type=evil is no architecture") as it:
        described(tmp_path)
    assert "\n" not in str(it.value)


def test_what_reads_no_texts_or_reads_one_way_is_left_to_others(tmp_path: Path) -> None:
    for kind in ("llama", "clip", "wav2vec2", "nobody-knows-it"):
        assert described(write(tmp_path, model_type=kind, vocab_size=10)) is None


def test_a_folder_without_a_tokenizer_or_with_a_larger_one_is_refused(tmp_path: Path) -> None:
    save(tmp_path, "albert", tokenizer=MADE["roberta"]())
    more = MADE["roberta"]().get_vocab_size()
    with pytest.raises(
        ConfigError, match=f"has {more} tokens, and this albert has rows for {ROWS}"
    ):
        described(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match="no tokenizer lies beside it; put its tokenizer"):
        described(tmp_path)


def test_wrong_sizes_are_refused_in_one_line(tmp_path: Path) -> None:
    save(tmp_path, "albert")
    values = json.loads((tmp_path / "config.json").read_text())
    for change in ({"hidden_size": "wide"}, {"num_hidden_layers": [1]}, {"vocab_size": -1}):
        with pytest.raises(SaccadeError) as caught:
            described(write(tmp_path, **{**values, **change}))
        assert "\n" not in str(caught.value)
        assert str(tmp_path) in str(caught.value)


def test_without_transformers_a_text_model_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        return None

    def fail(why: str) -> Any:
        raise ConfigError(f"{why} needs transformers")

    monkeypatch.setattr(module, "find_spec", absent)
    monkeypatch.setattr(module, "hugging_face", fail)
    with pytest.raises(ConfigError, match="model_type=mpnet needs transformers"):
        described(write(tmp_path, model_type="mpnet", vocab_size=10))

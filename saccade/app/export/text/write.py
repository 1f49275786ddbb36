"""Text models for `AutoModel….from_pretrained`: weights, sizes, tokenizer and how to generate."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from saccade.app.export.counterpart import State
from saccade.app.export.text.counterparts import HubModel, hub_model
from saccade.app.export.text.readme import text_readme
from saccade.app.export.text.tokenizer import HubTokenizer, roles_of
from saccade.app.kinds.base import Exporter, LoadedRun
from saccade.app.kinds.understanding.model import labels_of
from saccade.blocks.positions import make_positions
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.models.names import LIBRARIES
from saccade.models.names.table import SHAPES, to_theirs
from saccade.models.text.bert import BertConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.tokenizer import TOKENIZER
from saccade.tasks.understanding.labels import ASSET, Labels
from saccade.train.recipe import Recipe

SIDES = ("encoder", "decoder")
POSITIONS = "embeddings.positions.table"
PROBLEMS = {
    "classes": {"problem_type": "single_label_classification"},
    "labels": {"problem_type": "multi_label_classification"},
    "number": {"problem_type": "regression"},
    "tags": {},
}


class HubFolder(NamedTuple):
    """What is written beside the weights: more settings, the tokenizer, how to generate."""

    kind: str
    tokenizer: HubTokenizer
    settings: dict[str, Any]
    generation: dict[str, Any] | None = None


def _check(recipe: Recipe) -> None:
    hub_model(recipe.model)


def _fill_translation(run: LoadedRun, folder: Path, quantization: str) -> str:
    config: Any = run.recipe.model
    vocabulary = _vocabulary(run)
    ends = {"eos_token_id": vocabulary.end, "pad_token_id": vocabulary.pad}
    starts = {"decoder_start_token_id": vocabulary.start, "bos_token_id": vocabulary.start}
    tokenizer = HubTokenizer(
        roles=roles_of(vocabulary, eos_token=vocabulary.end),
        longest=config.longest,
        after=(vocabulary.end,),
        writes=True,
    )
    told = {**starts, **ends}
    generation = {**told, "max_length": config.longest}
    return _write(run, folder, HubFolder("translation", tokenizer, told, generation))


def _fill_language(run: LoadedRun, folder: Path, quantization: str) -> str:
    config, vocabulary = run.recipe.model, _vocabulary(run)
    lines = vars(run.recipe.task)["unit"] == "lines"
    first = vocabulary.start if lines else vocabulary.end  # a stream goes on as after an end
    told = {
        "bos_token_id": first,
        "eos_token_id": vocabulary.end,
        "pad_token_id": vocabulary.pad,
    }
    tokenizer = HubTokenizer(
        roles=roles_of(vocabulary, bos_token=first, eos_token=vocabulary.end),
        longest=vars(config)["longest"],
        before=(first,) if lines else (),
        writes=True,
        left=True,
    )
    return _write(run, folder, HubFolder("language", tokenizer, told, told))


def _fill_masked(run: LoadedRun, folder: Path, quantization: str) -> str:
    vocabulary, longest = _vocabulary(run), vars(run.recipe.model)["longest"]
    tokenizer = _of_encoder(run, vocabulary, longest, blanks=True)
    settings = {"pad_token_id": vocabulary.pad, "num_labels": vars(run.recipe.model)["labels"]}
    kind = "replaced" if vars(run.recipe.model)["head"] == "replaced" else "masked"
    return _write(run, folder, HubFolder(kind, tokenizer, settings))


def _fill_understanding(run: LoadedRun, folder: Path, quantization: str) -> str:
    vocabulary, labels = _vocabulary(run), labels_of(run)
    longest = min(vars(one)["longest"] for one in (run.recipe.task, run.recipe.model))
    names = labels.names or ("number",)
    settings = {
        "pad_token_id": vocabulary.pad,
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
        **PROBLEMS[labels.kind],
    }
    tokenizer = _of_encoder(run, vocabulary, longest, blanks=False)
    return _write(run, folder, HubFolder(labels.kind, tokenizer, settings), labels)


def _of_encoder(
    run: LoadedRun, vocabulary: Vocabulary, longest: int, *, blanks: bool
) -> HubTokenizer:
    roles = {"cls_token": vocabulary.start, "sep_token": vocabulary.end}
    return HubTokenizer(
        roles=roles_of(vocabulary, **roles, mask_token=vocabulary.mask),
        longest=longest,
        before=(vocabulary.start,),
        after=(vocabulary.end,),
        blanks=blanks,
        types=hub_model(run.recipe.model).sizes.get("type_vocab_size", 0) > 1,
    )


def _vocabulary(run: LoadedRun) -> Vocabulary:
    return Vocabulary.load(run.asset(TOKENIZER))


def _write(run: LoadedRun, folder: Path, wanted: HubFolder, labels: Labels | None = None) -> str:
    found, vocabulary = hub_model(run.recipe.model), _vocabulary(run)
    state, sizes = _as_there(run, found, vocabulary, labels)
    theirs = to_theirs(LIBRARIES[type(run.network)][found.names], state)
    config = run.recipe.model
    fixed = _fixed(config) if isinstance(config, TransformerConfig) else {}
    tensors = {name: tensor.contiguous() for name, tensor in {**fixed, **theirs}.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    files = {
        "config.json": found.table(**sizes, **wanted.settings),
        **wanted.tokenizer.files(vocabulary),
    }
    if wanted.generation is not None:
        files["generation_config.json"] = wanted.generation
    for name, table in files.items():
        text = json.dumps(table, indent=2, ensure_ascii=False)
        (folder / name).write_text(text, encoding="utf-8")
    pairs = labels is not None and labels.pairs
    return text_readme(run.name, wanted.kind, found.auto, vocabulary, pairs=pairs)


def _fixed(config: TransformerConfig) -> State:
    """What a Marian and a Pegasus have in any case: a bias, and tables of the positions."""
    positions = make_positions("sinusoids", longest=config.longest, width=config.width)
    assert positions is not None
    table = SHAPES["reads_halves"](positions(0, config.longest))
    places = {f"model.{side}.embed_positions.weight": table.clone() for side in SIDES}
    return {"final_logits_bias": torch.zeros(1, config.vocabulary), **places}


def _as_there(
    run: LoadedRun, found: HubModel, vocabulary: Vocabulary, labels: Labels | None
) -> tuple[State, dict[str, Any]]:
    """Our tensors once they are what theirs compute with, and sizes that follow from them."""
    state: State = dict(run.network.state_dict())
    if labels is not None and labels.kind == "number":
        for leaf in ("weight", "bias"):  # their score is the number itself
            state[f"classifier.{leaf}"] = state[f"classifier.{leaf}"] * labels.deviation
        state["classifier.bias"] = state["classifier.bias"] + labels.mean
    if found.model_type != "roberta":
        return state, {}
    config = run.recipe.model
    assert isinstance(config, BertConfig)
    if vocabulary.pad in (vocabulary.start, vocabulary.end):
        raise ConfigError(
            "a roberta of transformers tells places by a token for padding alone, which is the "
            f"start or end of a text here ({vocabulary.name(vocabulary.pad)}); "
            "train with --model.first-position 0"
        )
    first, places = vocabulary.pad + 1, state[POSITIONS]
    if first != config.first_position:
        unused = places.new_zeros(first, places.shape[1])
        state[POSITIONS] = torch.cat([unused, places[config.first_position :]])
    return state, {"max_position_embeddings": first + config.longest}


def _exporter(fill: Any, *assets: str) -> dict[str, Exporter]:
    return {"huggingface": Exporter(check=_check, fill=fill, assets=(TOKENIZER, *assets))}


TRANSLATION = _exporter(_fill_translation)
LANGUAGE = _exporter(_fill_language)
MASKED = _exporter(_fill_masked)
UNDERSTANDING = _exporter(_fill_understanding, ASSET)

"""What Hugging Face calls the parts of a BERT and of its relatives.

A classifier of texts is called as one of tokens, for no model has both. Files may hold what is tied
twice (`TIED`), and those of models that were saved without a head lack the first part of a name.
"""

from saccade.models.names.table import Names


def _names(
    model: str,
    layers: str,
    embeddings: dict[str, str],
    inside: dict[str, str],
    head: dict[str, str],
) -> Names:
    return {
        "embeddings.words": f"{model}.embeddings.word_embeddings",
        "embeddings.positions.table": f"{model}.embeddings.position_embeddings.weight",
        "embeddings.norm": f"{model}.embeddings.LayerNorm",
        **{ours: f"{model}.{part}" for ours, part in embeddings.items()},
        **{f"encoder.{{i}}.{ours}": f"{model}.{layers}.{part}" for ours, part in inside.items()},
        **head,
        "tagger": "classifier",
    }


LAYER = {
    "self_attention.to_q": "attention.self.query",
    "self_attention.to_k": "attention.self.key",
    "self_attention.to_v": "attention.self.value",
    "self_attention.to_output": "attention.output.dense",
    "around_attention.norm": "attention.output.LayerNorm",
    "mlp.widen": "intermediate.dense",
    "mlp.narrow": "output.dense",
    "around_mlp.norm": "output.LayerNorm",
}
TYPES = {"embeddings.types": "embeddings.token_type_embeddings"}
POOLED = {"pooler": "classifier.dense", "classifier": "classifier.out_proj"}
BERT = _names(
    "bert",
    "encoder.layer.{i}",
    TYPES,
    LAYER,
    {
        "pooler": "bert.pooler.dense",
        "words.dense": "cls.predictions.transform.dense",
        "words.norm": "cls.predictions.transform.LayerNorm",
        "words.bias": "cls.predictions.bias",
        "follow": "cls.seq_relationship",
        "classifier": "classifier",
    },
)
ROBERTA = _names(
    "roberta",
    "encoder.layer.{i}",
    TYPES,
    LAYER,
    {
        **POOLED,
        "words.dense": "lm_head.dense",
        "words.norm": "lm_head.layer_norm",
        "words.bias": "lm_head.bias",
    },
)
DISTILBERT = _names(
    "distilbert",
    "transformer.layer.{i}",
    {},
    {
        **{f"self_attention.to_{x}": f"attention.{x}_lin" for x in "qkv"},
        "self_attention.to_output": "attention.out_lin",
        "around_attention.norm": "sa_layer_norm",
        "mlp.widen": "ffn.lin1",
        "mlp.narrow": "ffn.lin2",
        "around_mlp.norm": "output_layer_norm",
    },
    {
        "pooler": "pre_classifier",
        "words.dense": "vocab_transform",
        "words.norm": "vocab_layer_norm",
        "words.bias": "vocab_projector.bias",
        "classifier": "classifier",
    },
)
ELECTRA = _names(
    "electra",
    "encoder.layer.{i}",
    {**TYPES, "project": "embeddings_project"},
    LAYER,
    {
        **POOLED,
        "words.dense": "generator_predictions.dense",
        "words.norm": "generator_predictions.LayerNorm",
        "words.bias": "generator_lm_head.bias",
        "replaced.dense": "discriminator_predictions.dense",
        "replaced.score": "discriminator_predictions.dense_prediction",
    },
)
LIBRARIES: dict[str, Names] = {
    "huggingface": BERT,
    "huggingface-roberta": ROBERTA,
    "huggingface-distilbert": DISTILBERT,
    "huggingface-electra": ELECTRA,
    "electra": {ours: f"discriminator.{ours}" for ours in ELECTRA},  # a run of our own
}
# What is kept of an ELECTRA; the generator's file is another.
DISCRIMINATOR: dict[str, Names] = {
    "huggingface-electra": {f"discriminator.{ours}": theirs for ours, theirs in ELECTRA.items()},
}
# The stream of words of a joint model is a BERT's, by the same names; it pools otherwise. Positions
# of a RoBERTa begin elsewhere.
TEXT_STREAM: dict[str, Names] = {
    library: {
        ours: x for ours, x in names.items() if ours.startswith(("embeddings", "encoder", "words"))
    }
    for library, names in LIBRARIES.items()
    if library in ("huggingface", "huggingface-distilbert", "huggingface-electra")
}
HEAD = ("pooler", "words", "follow", "classifier", "tagger", "replaced")
# Names of one tensor, of which a file may hold any; the first is the one that the table knows.
TIED: tuple[tuple[str, ...], ...] = (
    ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    ("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"),
    ("lm_head.bias", "lm_head.decoder.bias"),
    ("distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight"),
    ("electra.embeddings.word_embeddings.weight", "generator_lm_head.weight"),
)

"""Text models as Hugging Face's transformers have them: class, names of tensors, and sizes.

A post-norm Transformer is a Marian there, and a pre-norm one a Pegasus, whose layers differ in just
that. Which relative of BERT a text encoder is follows from its settings.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from saccade.app.export.counterpart import ONNX, refuse
from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models import family
from saccade.models.text.bert import BertConfig
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.foreign import ForeignEncoderConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.text_encoder import HeadKind
from saccade.models.text.transformer import TransformerConfig

LIBRARY = "transformers"
DISTILBERT_EPSILON = 1e-12  # which nothing changes there
HEADS: dict[HeadKind, str] = {
    "words": "ForMaskedLM",
    "text": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "replaced": "ForPreTraining",
}


class HubModel(NamedTuple):
    """What a model is there; `names` is our table of its tensors' names, `auto` finds the class."""

    model_type: str
    architecture: str
    names: str
    auto: str
    sizes: dict[str, Any]

    def table(self, **more: Any) -> dict[str, Any]:
        """What its config.json says."""
        named = {"model_type": self.model_type, "architectures": [self.architecture]}
        return {**named, **self.sizes, **more, "dtype": "float32"}


def hub_model(config: ModelConfig) -> HubModel:
    """The counterpart of a model; refuses one that has none."""
    if type(config) not in FAMILIES:
        raise ConfigError(f"{LIBRARY} has no counterpart of {family(config)}; {ONNX}")
    return FAMILIES[type(config)](config)


def _translator(config: TransformerConfig) -> HubModel:
    if config.norm != "layer":
        refuse(config, LIBRARY, "norm")
    if config.positions != "sinusoids":
        refuse(config, LIBRARY, "positions")
    pre = config.residual == "pre"
    model_type, architecture = (
        ("pegasus", "PegasusForConditionalGeneration") if pre else ("marian", "MarianMTModel")
    )
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {
            f"{side}_layers": config.depth,
            f"{side}_attention_heads": config.heads,
            f"{side}_ffn_dim": config.hidden,
        }
    sizes = {
        "vocab_size": config.vocabulary,
        "d_model": config.width,
        **sides,
        "num_hidden_layers": config.depth,
        "max_position_embeddings": config.longest,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": config.dropout,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": pre,
        "add_final_layer_norm": pre,
        "normalize_embedding": False,
        "tie_word_embeddings": True,
        "is_encoder_decoder": True,
        "forced_eos_token_id": None,
        "output_bias": config.output_bias,  # ours: whether the bias in the file was learnt
    }
    if not pre:
        sizes |= {"decoder_vocab_size": config.vocabulary, "share_encoder_decoder_embeddings": True}
    return HubModel(model_type, architecture, "huggingface", "AutoModelForSeq2SeqLM", sizes)


def _gpt(config: GptConfig) -> HubModel:
    sizes = {
        "vocab_size": config.vocabulary,
        "n_embd": config.width,
        "n_layer": config.depth,
        "n_head": config.heads,
        "n_positions": config.longest,
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": True,
    }
    return HubModel("gpt2", "GPT2LMHeadModel", "huggingface", "AutoModelForCausalLM", sizes)


def _encoder(config: BertConfig) -> HubModel:
    """By what only one of the relatives has."""
    if config.head == "text" and config.reads != "first":
        why = "a text's class is read at its first token there"
        refuse(config, LIBRARY, "reads", why, instead="train with --model.reads first")
    gelu = config.pooling == "gelu"
    if config.head == "replaced" or config.word_width != config.width or gelu:
        return _electra(config)
    if config.first_position:
        return _roberta(config)
    return _distilbert(config) if not config.types or config.pooling == "relu" else _bert(config)


def _sizes(config: BertConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.heads,
        "intermediate_size": config.hidden,
        "max_position_embeddings": config.longest,
        "type_vocab_size": config.types,
        "layer_norm_eps": config.epsilon,
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "tie_word_embeddings": True,
    }


def _bert(config: BertConfig) -> HubModel:
    ending = "ForPreTraining" if config.next_sentence else HEADS[config.head]
    if config.head != "words":
        ending = HEADS[config.head]
    return HubModel("bert", f"Bert{ending}", "huggingface", f"AutoModel{ending}", _sizes(config))


def _roberta(config: BertConfig) -> HubModel:
    """Its first position is that after the number of its padding: see `write`."""
    _holds(config, "a roberta", types=config.types > 0, pooling=_pools(config, "tanh"))
    return _relative(config, "roberta", "Roberta", _sizes(config))


def _electra(config: BertConfig) -> HubModel:
    _holds(
        config,
        "an electra",
        types=config.types > 0,
        first_position=config.first_position == 0,
        pooling=_pools(config, "gelu"),
    )
    return _relative(
        config, "electra", "Electra", {**_sizes(config), "embedding_size": config.word_width}
    )


def _distilbert(config: BertConfig) -> HubModel:
    _holds(
        config,
        "a distilbert",
        types=config.types == 0,
        epsilon=config.epsilon == DISTILBERT_EPSILON,
        pooling=_pools(config, "relu"),
    )
    sizes = {
        "vocab_size": config.vocabulary,
        "dim": config.width,
        "n_layers": config.depth,
        "n_heads": config.heads,
        "hidden_dim": config.hidden,
        "max_position_embeddings": config.longest,
        "sinusoidal_pos_embds": False,
        "activation": "gelu",
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "seq_classif_dropout": config.dropout,
        "tie_word_embeddings": True,
    }
    return _relative(config, "distilbert", "DistilBert", sizes)


def _relative(config: BertConfig, kind: str, name: str, sizes: dict[str, Any]) -> HubModel:
    ending = HEADS[config.head]
    return HubModel(kind, f"{name}{ending}", f"huggingface-{kind}", f"AutoModel{ending}", sizes)


def _pools(config: BertConfig, how: str) -> bool:
    """Whether a text's class is read as there; where none is read it does not matter."""
    return config.head != "text" or config.pooling == how


def _holds(config: BertConfig, kind: str, **settings: bool) -> None:
    """Refuse the first setting that this relative has otherwise; none but BERT has pairs."""
    follows = config.head == "words" and config.next_sentence
    for name, held in {**settings, "next_sentence": not follows}.items():
        if not held:
            why = f"with its other settings it is {kind} there"
            refuse(config, LIBRARY, name, why, instead="train with another")


def _foreign(config: ForeignEncoderConfig) -> HubModel:
    raise ConfigError(
        f"{LIBRARY} has no counterpart of {config.kind} with our head, and nothing else takes it; "
        "use the run itself: saccade predict, saccade serve, saccade.load"
    )


FAMILIES: dict[type[ModelConfig], Callable[[Any], HubModel]] = {
    TransformerConfig: _translator,
    GptConfig: _gpt,
    BertConfig: _encoder,
    ForeignEncoderConfig: _foreign,
    ElectraConfig: lambda config: _encoder(config.discriminator),  # the part that is kept
}

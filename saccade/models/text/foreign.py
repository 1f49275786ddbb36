"""Encoders of others: any that Hugging Face's transformers can build, as a model of ours.

The library computes, on texts side by side with padding; reading, training, looking and the heads
are ours. Of an encoder–decoder the encoder is taken. A text is read at the first token where the
tokenizer puts one before it (BERT's [CLS]), at the last where that is the one for the class
(XLNet's <cls>), else from the mean of all tokens (T5). Nothing is downloaded, and no code that lies
beside weights is run.
"""

import inspect
import json
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.attention.parameters import FREE, TABLE, Role
from saccade.blocks.dropout import Dropout
from saccade.config import ModelConfig, check_fraction
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import refused_as
from saccade.errors import ConfigError
from saccade.models.text.bert import initialise
from saccade.models.text.text_encoder import (
    HeadKind,
    ReadingPlace,
    TextEncoderConfig,
    place_read,
    state_read,
)
from saccade.printable import printable

# What says nothing of sizes, chooses code or kernels, or is decided here.
LEFT_OUT = frozenset({
    "auto_map", "custom_pipelines", "quantization_config", "use_kernels",
    "attn_implementation", "_attn_implementation", "_attn_implementation_internal",
    "experts_implementation", "_experts_implementation", "_experts_implementation_internal",
    "dtype", "torch_dtype", "_name_or_path", "transformers_version", "architectures",
    "id2label", "label2id", "num_labels", "problem_type", "task_specific_params",
    "return_dict", "use_return_dict", "output_attentions", "output_hidden_states", "torchscript",
})  # fmt: skip
# Whose hidden states depend on padding, mask or no mask: texts of one length go together.
LEAKS = frozenset({
    "bigbird_pegasus", "big_bird", "canine", "convbert", "fnet", "funnel", "led", "longt5",
    "mobilebert", "mra", "nystromformer", "reformer", "yoso",
})  # fmt: skip
UNCOUNTED_TYPES = frozenset({"funnel", "xlnet"})  # they tell texts apart without a table of types
DEEPEST = 8  # tables within tables


@dataclass(frozen=True, kw_only=True)
class ForeignEncoderConfig(TextEncoderConfig):
    """Which model of transformers, and the head on it.

    Args:
        settings: what its config.json holds, as text; the rows of its vocabulary among it.
        longest: how many tokens a text may have; None: any number.
        reads: at which token a text is read, or from the mean of all.
        dropout: share of a text's state that is dropped in training before the head; the rest of
            the model drops what its settings say.
    """

    head: HeadKind = "text"
    vocabulary: int = 1
    settings: str = '{"model_type": "bert"}'
    longest: int | None = None
    reads: ReadingPlace = "first"
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "dropout")
        if self.longest is not None and self.longest < 1:
            raise ConfigError(f"longest={self.longest} must be at least 1, or None")
        if self.head not in ("text", "tokens"):
            raise ConfigError(
                f"a model of transformers tells classes of texts and of words, not {self.head}; "
                "train one of ours on that: bert, or electra"
            )
        rows = parsed(self.settings).get("vocab_size")
        if isinstance(rows, int) and self.vocabulary > rows:
            raise ConfigError(
                f"the tokenizer has {self.vocabulary:,} tokens, and this {self.kind} has rows for "
                f"{rows:,}; put the tokenizer that it was trained with beside its weights"
            )

    @property
    def most_words(self) -> int | None:
        return self.longest

    @property
    def kind(self) -> str:
        """What the library calls its architecture."""
        return parsed(self.settings)["model_type"]

    def stands_in_for(self, other: ModelConfig) -> bool:
        return isinstance(other, TextEncoderConfig)

    def build(self) -> "ForeignEncoder":
        return ForeignEncoder(self)


def parsed(settings: str) -> dict[str, Any]:
    """A config.json as plain values, without what would choose code or kernels."""
    try:
        values = json.loads(settings)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"settings is not JSON ({printable(error)})") from error
    match values:
        case {"model_type": str()}:
            return _sizes_alone(cast(dict[str, Any], values), DEEPEST)
        case _:
            raise ConfigError("settings names no model_type; give what a config.json holds")


def _sizes_alone(values: dict[str, Any], deepest: int) -> dict[str, Any]:
    if not deepest:
        raise ConfigError(f"settings has tables within tables beyond {DEEPEST}; no model has")
    return {
        name: _sizes_alone(cast(dict[str, Any], value), deepest - 1)
        if isinstance(value, dict)
        else value
        for name, value in values.items()
        if name not in LEFT_OUT
    }


def hugging_face(why: str) -> Any:
    """The library, which is large and not everybody's."""
    try:
        return import_module("transformers")
    except ImportError as error:
        raise ConfigError(
            f"{why} needs transformers, which is not installed: pip install 'saccade[huggingface]'"
        ) from error


def library_network(settings: str) -> tuple[Any, Any]:
    """The library's own network with fresh weights, of a translator its encoder; its config."""
    values = parsed(settings)
    kind = printable(values.pop("model_type"))
    library = hugging_face(f"a model of the kind {kind}")
    failed = f"transformers {library.__version__} cannot build it; take another model"
    with refused_as(ConfigError, f"model_type={kind}: {failed}"):
        config = library.AutoConfig.for_model(kind, architectures=[], **values)
        whole = library.AutoModel.from_config(config, dtype=torch.float32)
        if whole.get_input_embeddings().num_embeddings != config.vocab_size:
            raise ValueError("it reads no words")
        return (whole.get_encoder() if config.is_encoder_decoder else whole), config


class ForeignEncoder(nn.Module):
    """Texts side by side → the library's network → end to end again → one head.

    text:    W tanh(P h + b) + c, h the state at one token or the mean of all
    tokens:  W h + c, of each token
    """

    packs, capturable = False, False

    def __init__(self, config: ForeignEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self._sizes = library_network(config.settings)
        self._told = self._sizes.to_dict()
        width, head = int(self._sizes.hidden_size), config.head
        self._their_pooler = _taken_off(self.encoder)
        self._types = self._known_types()
        self.dropout = Dropout(config.dropout)
        self.pooler = Linear(width, width) if head == "text" else None
        self.classifier = Linear(width, config.labels) if head == "text" else None
        self.tagger = Linear(width, config.labels) if head == "tokens" else None
        for part in (self.pooler, self.classifier, self.tagger):
            if part is not None:
                initialise(part)

    def _known_types(self) -> int | None:
        """How many texts it tells apart; 0: it is not told of them, None: any number."""
        if "token_type_ids" not in inspect.signature(self.encoder.forward).parameters:
            return 0
        counted = self._told.get("type_vocab_size", 0)
        return None if self.config.kind in UNCOUNTED_TYPES else counted

    @property
    def longest(self) -> int | None:
        return self.config.longest

    def layers_upwards(self) -> list[nn.Module]:
        """None where the same weights serve several layers, or layers do not simply follow."""
        depth = self._sizes.num_hidden_layers
        lists = [list(x) for x in self.encoder.modules() if isinstance(x, nn.ModuleList)]
        if any(isinstance(part, nn.ModuleList) for one in lists for part in one):
            return []
        return next((one for one in lists if len(one) == depth), [])

    def roles(self) -> dict[str, Role]:
        """Of matrices that no layer of torch holds; of the others torch's own."""
        known = {
            f"{path}.weight"
            for path, part in self.named_modules()
            if isinstance(part, nn.Linear | nn.Embedding | nn.Conv1d | nn.Conv2d)
        }
        return {
            name: FREE if name.endswith("bias") else TABLE
            for name, parameter in self.named_parameters()
            if parameter.dim() > 1 and name not in known
        }

    def published_names(self, given: Collection[str], /) -> dict[str, str]:
        """What a file calls our tensors: by the library's names, with or without what it calls the
        model inside one with a head. Words of an encoder–decoder are shared by both sides.
        """
        inner = list(self.encoder.state_dict())
        outer = self.encoder.base_model_prefix + "."
        prefixes = ["", outer]
        if self._sizes.is_encoder_decoder:
            prefixes = [f"{one}encoder." for one in dict.fromkeys(["", outer, "model."])]
        before = max(prefixes, key=lambda one: sum(one + name in given for name in inner))
        found = {f"encoder.{name}": before + name for name in inner}
        shared = before.removesuffix("encoder.") + "shared.weight"
        if self._sizes.is_encoder_decoder and shared in given:
            found |= {f"encoder.{name}": shared for name in self._word_tables()}
        if self._their_pooler:
            leaves = ("weight", "bias")
            found |= {f"pooler.{x}": f"{before}{self._their_pooler}.{x}" for x in leaves}
        return found

    def _word_tables(self) -> list[str]:
        words = self.encoder.get_input_embeddings().weight
        named = self.encoder.named_parameters(remove_duplicate=False)
        return [name for name, parameter in named if parameter is words]

    def forward(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "words D"]:
        """The hidden state of every token, zero at those that only fill a shape."""
        ids, kinds = rows.padded(), rows.rectangle(types)  # (B, T)
        places = torch.arange(ids.shape[1], device=ids.device)
        real = places < rows.lengths.to(ids.device, non_blocking=True)[:, None]
        padding = self._told.get("pad_token_id")
        ids = ids.where(real, padding if isinstance(padding, int) and padding >= 0 else 0)
        if self.config.kind in LEAKS and not rows.rectangular:
            hidden = self._by_length(ids, kinds, rows.lengths)
        else:
            hidden = self._states(ids, kinds, real)
        found = rows.out_of_rectangle(hidden)
        return F.pad(found, (0, 0, 0, len(rows.tokens) - len(found)))

    def _by_length(
        self, ids: Int[Tensor, "B T"], types: Int[Tensor, "B T"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B T D"]:
        """Texts of each length by themselves, so that there is no padding."""
        parts, order = list[Tensor](), list[Tensor]()
        for length in lengths.unique().tolist():
            chosen = (lengths == length).nonzero()[:, 0]
            mine, end = chosen.to(ids.device), max(1, length)
            some, kinds = ids[mine, :end], types[mine, :end]
            hidden = self._states(some, kinds, torch.ones_like(some, dtype=torch.bool))
            parts.append(F.pad(hidden, (0, 0, 0, ids.shape[1] - end)))
            order.append(chosen)
        return torch.cat(parts)[torch.cat(order).argsort().to(ids.device)]

    def _states(
        self, ids: Int[Tensor, "B T"], types: Int[Tensor, "B T"], real: Tensor
    ) -> Float[Tensor, "B T D"]:
        given = {"input_ids": ids, "attention_mask": real.long()}
        if self._types != 0:
            most = None if self._types is None else self._types - 1
            given["token_type_ids"] = types if most is None else types.clamp(max=most)
        return self.encoder(**given).last_hidden_state

    def read_at(self, tokens: int, /) -> int | None:
        """At which of so many tokens a text is read; None: from the mean of all."""
        return place_read(self.config.reads, tokens)

    def pooled(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "B D"]:
        """One vector for each sequence; an empty one gets any."""
        assert self.pooler is not None, f"a head for {self.config.head} pools nothing"
        return self.pooler(state_read(hidden, rows, self.config.reads)).tanh()

    def scores(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "n labels"]:
        """Logits of each sequence, those that only fill a shape as well, or of each token."""
        if self.classifier is not None:
            return self.classifier(self.dropout(self.pooled(hidden, rows)))
        assert self.tagger is not None, f"a head for {self.config.head} scores no texts"
        return self.tagger(self.dropout(hidden))


def _taken_off(network: Any) -> str:
    """Where the library's own pooler was, whose place ours takes; nothing where it had none."""
    children = dict(network.named_children())
    if "pooler" not in children:
        return ""
    inside = children["pooler"].named_modules(prefix="pooler")
    linear = [path for path, part in inside if isinstance(part, nn.Linear)]
    network.pooler = nn.Identity()  # some call it whatever it is
    return linear[0] if len(linear) == 1 else ""

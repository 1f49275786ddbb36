"""Hugging Face's BertForMaskedLM and BertForSequenceClassification."""

from importlib import import_module
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.models.names.bert import BERT
from saccade.models.names.table import to_theirs
from saccade.models.text.bert import Bert, BertConfig

NEEDS = "transformers"
BertKind = Literal["BertForMaskedLM", "BertForSequenceClassification"]


def make_bert(kind: BertKind, config: BertConfig, *, attention_dropout: float = 0.0) -> Any:
    """Random weights in our sizes; by its own defaults it drops attention weights too."""
    hf: Any = import_module(NEEDS)
    settings = hf.BertConfig(
        vocab_size=config.vocabulary,
        hidden_size=config.width,
        num_hidden_layers=config.depth,
        num_attention_heads=config.heads,
        intermediate_size=config.hidden,
        hidden_act="gelu",
        max_position_embeddings=config.longest,
        type_vocab_size=config.types,
        layer_norm_eps=config.epsilon,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=attention_dropout,
        num_labels=config.labels,
    )
    classes: dict[BertKind, Any] = {
        "BertForMaskedLM": hf.BertForMaskedLM,
        "BertForSequenceClassification": hf.BertForSequenceClassification,
    }
    return classes[kind](settings)


@torch.no_grad()
def copy_weights(ours: Bert, theirs: nn.Module) -> None:
    """Make theirs compute what ours does; what is tied there is given once."""
    weights = to_theirs(BERT, ours.state_dict())
    missing = dict(theirs.named_parameters()).keys() - weights.keys()
    assert not missing, f"nothing of ours is called {', '.join(sorted(missing))}"
    theirs.load_state_dict(weights, strict=False)


class MaskedWordLoss(nn.Module):
    """The mean loss of the hidden words; logits are computed of every position, as theirs are."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, words: Int[Tensor, "B T"], real: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        return self.model(input_ids=words, attention_mask=real, labels=labels).loss

"""Every kind of text encoder, small; texts for them; and what each says about texts."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.models.text.bert import BertConfig
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.text_encoder import TextEncoderConfig

VOCABULARY, LABELS = 19, 3
BERT = BertConfig(
    vocabulary=VOCABULARY,
    labels=LABELS,
    width=16,
    depth=2,
    heads=2,
    hidden=24,
    longest=12,
    dropout=0.0,
)
ROBERTA = replace(BERT, types=1, first_position=2, epsilon=1e-5)
DISTILBERT = replace(BERT, types=0, pooling="relu")
DISCRIMINATOR = replace(BERT, embedding_width=10, pooling="gelu")
ELECTRA = ElectraConfig(
    vocabulary=VOCABULARY,
    width=16,
    depth=2,
    heads=2,
    hidden=24,
    longest=12,
    dropout=0.0,
    embedding_width=10,
    generator=0.5,
)
ENCODERS: dict[str, TextEncoderConfig] = {
    "bert words": BERT,
    "bert words and next sentence": replace(BERT, next_sentence=True),
    "bert text": replace(BERT, head="text"),
    "bert mean": replace(BERT, head="text", reads="mean"),
    "bert last": replace(BERT, head="text", reads="last"),
    "bert tokens": replace(BERT, head="tokens"),
    "roberta words": ROBERTA,
    "roberta text": replace(ROBERTA, head="text"),
    "distilbert words": DISTILBERT,
    "distilbert text": replace(DISTILBERT, head="text"),
    "discriminator replaced": replace(DISCRIMINATOR, head="replaced"),
    "discriminator text": replace(DISCRIMINATOR, head="text"),
    "electra": ELECTRA,
}
TEXTS = [[4, 5, 6, 7, 2], [8], [9, 10, 4, 8, 2, 11, 12], [5, 18, 3]]


def rows_of(texts: list[list[int]]) -> Rows:
    words = [word for text in texts for word in text]
    return Rows.of(torch.tensor(words), torch.tensor([len(text) for text in texts]))


def types_of(rows: Rows) -> Tensor:
    """The third token and those after it are of the second text."""
    return (rows.places > 1).long()


def scores(model: Any, rows: Rows, types: Tensor | None = None) -> dict[str, Tensor]:
    """All that a model says; what is for each text, and what for each token."""
    types = types_of(rows) if types is None else types
    config, said = model.config, dict[str, Tensor]()
    fills = model.generator if isinstance(config, ElectraConfig) else model
    if config.head == "words" or fills is not model:
        hidden = fills(rows, types)
        said["tokens: words"] = fills.output(fills.transformed(hidden))
        if config.next_sentence:
            said["texts: follows"] = fills.follows(hidden, rows)
    if config.head != "words":
        hidden = model(rows, types)
        of = "texts" if config.head == "text" else "tokens"
        said[f"{of}: labels"] = model.scores(hidden, rows)
    return said

"""Tiny random models of transformers and tokenizers of their kinds, in folders as it saves them."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, processors
from torch import nn

from saccade.data.batching.rows import Rows
from saccade.models.names.described import described
from saccade.models.text.foreign import ForeignEncoderConfig
from tests.data.tokenizers_made import bert_like, byte_pairs, roberta_like

HF: Any = transformers
BERT_SIZES: dict[str, Any] = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"intermediate_size": 32, "max_position_embeddings": 40},
}
SIDES: dict[str, Any] = {
    f"{side}_{what}": size
    for side in ("encoder", "decoder")
    for what, size in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))
}
SIZES: dict[str, dict[str, Any]] = {
    "albert": {**BERT_SIZES, "embedding_size": 8, "num_hidden_layers": 3},
    "deberta": {**BERT_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {
        **{**BERT_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        **{"position_biased_input": False, "type_vocab_size": 0, "norm_rel_ebd": "layer_norm"},
    },
    "mpnet": BERT_SIZES,
    "modernbert": {**BERT_SIZES, "pad_token_id": 0},
    "ernie": BERT_SIZES,
    "rembert": {**BERT_SIZES, "input_embedding_size": 8, "output_embedding_size": 8},
    "squeezebert": {**BERT_SIZES, "embedding_size": 16},
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    "umt5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    "bart": {"d_model": 16, "max_position_embeddings": 40, **SIDES},
    # Those that padding reaches in the library.
    "funnel": {"d_model": 16, "block_sizes": [1, 1], "n_head": 2, "d_head": 8, "d_inner": 32},
    "convbert": {**BERT_SIZES, "embedding_size": 16, "head_ratio": 1},
    "mobilebert": {
        **{**BERT_SIZES, "embedding_size": 8},
        **{"true_hidden_size": 16, "intra_bottleneck_size": 16},
    },
    "fnet": {**BERT_SIZES, "type_vocab_size": 2},
}
NATIVE: dict[str, dict[str, Any]] = {  # ours as well; by the library where a test asks for it
    "electra": {**BERT_SIZES, "embedding_size": 8},
    "roberta": {**BERT_SIZES, "type_vocab_size": 1},
    "xlm-roberta": {**BERT_SIZES, "type_vocab_size": 1},
}
ROWS = 170  # of words, of which the tokenizer has fewer, as T5's and DeBERTa's have


def their_config(kind: str, **more: Any) -> Any:
    sizes = {"vocab_size": ROWS, "architectures": [], **{**SIZES, **NATIVE}[kind], **more}
    return HF.AutoConfig.for_model(kind, **sizes)


def drawn(network: nn.Module, seed: int = 0) -> nn.Module:
    """With weights that make a difference, biases too."""
    torch.manual_seed(seed)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.2)
    return network.eval()


def save(folder: Path, kind: str, *, tokenizer: Tokenizer | None = None, **more: Any) -> Any:
    """A folder as the library saves it; gives its own model."""
    theirs: Any = drawn(HF.AutoModel.from_config(their_config(kind, **more)))
    theirs.save_pretrained(folder)
    (tokenizer or bert_like()).save(str(folder / "tokenizer.json"))
    return theirs


def told(folder: Path) -> ForeignEncoderConfig:
    config = described(folder)
    assert isinstance(config, ForeignEncoderConfig)
    return config


def states(theirs: Any, rows: Rows, types: torch.Tensor, *, typed: bool) -> torch.Tensor:
    """What the library itself gives each text alone, end to end."""
    encoder = theirs.get_encoder() if theirs.config.is_encoder_decoder else theirs
    parts, lengths = list[torch.Tensor](), rows.lengths.tolist()
    for ids, kinds in zip(rows.tokens.split(lengths), types.split(lengths)):
        given = {"input_ids": ids[None], "attention_mask": torch.ones_like(ids)[None]}
        given |= {"token_type_ids": kinds[None]} if typed else {}
        parts.append(encoder(**given).last_hidden_state[0])
    return torch.cat(parts)


def some_rows(lengths: tuple[int, ...] = (13, 7, 10, 7), *, seed: int = 1) -> Rows:
    drawing = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, 150, (sum(lengths),), generator=drawing)
    return Rows.of(tokens, torch.tensor(lengths))


def _around(tokenizer: Tokenizer, single: str, pair: str, *names: str) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in names],
    )
    return tokenizer


def albert_like() -> Tokenizer:
    made = byte_pairs(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], 160)
    return _around(made, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS]", "[SEP]")


def t5_like() -> Tokenizer:
    made = byte_pairs(["<pad>", "</s>", "<unk>"], 160)
    return _around(made, "$A </s>", "$A </s> $B </s>", "</s>")


def xlnet_like() -> Tokenizer:
    names: list[Any] = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    made = byte_pairs(names, 160)
    pair = "$A <sep> $B:1 <sep>:1 <cls>:2"
    return _around(made, "$A <sep> <cls>:2", pair, "<sep>", "<cls>")


MADE = {
    "albert": albert_like,
    "t5": t5_like,
    "xlnet": xlnet_like,
    "roberta": roberta_like,
    "bert": bert_like,
}

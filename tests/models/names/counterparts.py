"""Models of Hugging Face's and ours of the same sizes, and what both say about the same texts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.data.batching.rows import Rows
from saccade.models.names import LIBRARIES
from saccade.models.names.table import to_ours
from saccade.models.text.bert import BertConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig

HF: Any = transformers
WORDS, LABELS = 23, 3
LENGTHS, TARGETS = torch.tensor([5, 3, 7, 1]), torch.tensor([4, 6, 2, 3])
SIZES: list[dict[str, int]] = [
    {"width": 16, "depth": 2, "heads": 2, "hidden": 24, "longest": 12},
    {"width": 24, "depth": 3, "heads": 4, "hidden": 40, "longest": 9},
]


def rows_of(lengths: Tensor, seed: int) -> Rows:
    """Texts end to end, of which no token is one of the special ones."""
    draws = torch.Generator().manual_seed(seed)
    return Rows.of(torch.randint(3, WORDS, (int(lengths.sum()),), generator=draws), lengths)


TEXTS, SECOND = rows_of(LENGTHS, 1), rows_of(TARGETS, 2)
TYPES = (TEXTS.places >= 2).long()


def _bert(sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "vocab_size": WORDS,
        "hidden_size": sizes["width"],
        "num_hidden_layers": sizes["depth"],
        "num_attention_heads": sizes["heads"],
        "intermediate_size": sizes["hidden"],
        "max_position_embeddings": sizes["longest"],
        "num_labels": LABELS,
        "initializer_range": 0.3,
    }


def roberta(sizes: dict[str, int]) -> Any:
    given = {**_bert(sizes), "max_position_embeddings": sizes["longest"] + 2}
    return HF.RobertaConfig(**given, type_vocab_size=1, layer_norm_eps=1e-5)


def distilbert(sizes: dict[str, int]) -> Any:
    return HF.DistilBertConfig(
        vocab_size=WORDS,
        dim=sizes["width"],
        n_layers=sizes["depth"],
        n_heads=sizes["heads"],
        hidden_dim=sizes["hidden"],
        max_position_embeddings=sizes["longest"],
        num_labels=LABELS,
        initializer_range=0.3,
    )


def gpt2(sizes: dict[str, int]) -> Any:
    return HF.GPT2Config(
        vocab_size=WORDS,
        n_embd=sizes["width"],
        n_layer=sizes["depth"],
        n_head=sizes["heads"],
        n_positions=sizes["longest"],
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
    )


def marian(sizes: dict[str, int], activation: str) -> Any:
    sides: dict[str, int] = {}
    for side in ("encoder", "decoder"):
        sides |= {
            f"{side}_layers": sizes["depth"],
            f"{side}_attention_heads": sizes["heads"],
            f"{side}_ffn_dim": sizes["hidden"],
        }
    return HF.MarianConfig(
        vocab_size=WORDS,
        d_model=sizes["width"],
        max_position_embeddings=sizes["longest"],
        activation_function=activation,
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=2,
        forced_eos_token_id=None,
        decoder_start_token_id=0,
        init_std=0.3,
        **sides,
    )


def padded(rows: Rows) -> dict[str, Tensor]:
    mask = torch.arange(int(rows.lengths.max())) < rows.lengths[:, None]
    return {"input_ids": rows.padded(), "attention_mask": mask.long()}


def with_types(model: Any) -> Any:
    return model(**padded(TEXTS), token_type_ids=TEXTS.rectangle(TYPES))


def without_types(model: Any) -> Any:
    return model(**padded(TEXTS))


def translated(model: Any) -> Any:
    target = padded(SECOND)
    return model(**padded(TEXTS), decoder_input_ids=target["input_ids"])


def of_words(model: Any) -> list[Tensor]:
    hidden = model(TEXTS, TYPES)
    found = [model.output(model.transformed(hidden))]
    return [*found, model.follows(hidden, TEXTS)] if model.config.next_sentence else found


def of_scores(model: Any) -> list[Tensor]:
    return [model.scores(model(TEXTS, TYPES), TEXTS)]


@dataclass(frozen=True)
class Twin:
    """How a model of theirs and one of ours are made, asked, and what is compared."""

    theirs: Callable[[dict[str, int]], Any]
    ours: ModelConfig
    library: str
    ask_theirs: Callable[[Any], Any]
    ask_ours: Callable[[Any], list[Tensor]]
    rows: Rows | None = TEXTS  # None: one vector for each text

    def config(self, sizes: dict[str, int]) -> ModelConfig:
        known = {name: size for name, size in sizes.items() if name in vars(self.ours)}
        return replace(self.ours, vocabulary=WORDS, **known)  # type: ignore[call-arg]

    def their_scores(self, model: Any) -> list[Tensor]:
        said = self.ask_theirs(model)
        if "prediction_logits" in said:
            return [self._real(said.prediction_logits), said.seq_relationship_logits]
        logits = (
            said.logits if said.logits.dim() > 2 or self.rows is None else said.logits[..., None]
        )
        return [self._real(logits)]

    def _real(self, logits: Tensor) -> Tensor:
        return logits if self.rows is None else self.rows.out_of_rectangle(logits)

    def built(self, sizes: dict[str, int]) -> tuple[Any, Any]:
        """Theirs with random weights, and ours with the same."""
        torch.manual_seed(sizes["width"])
        theirs = self.theirs(sizes).double().eval()
        with torch.no_grad():
            for parameter in theirs.parameters():  # biases and norms as well, but no fixed table
                parameter.add_(0.1 * torch.randn_like(parameter) * parameter.requires_grad)
        ours: nn.Module = self.config(sizes).build().double().eval()
        names, state = LIBRARIES[type(ours)][self.library], ours.state_dict()
        ours.load_state_dict(to_ours(names, theirs.state_dict(), state))
        return theirs, ours


BERT = BertConfig(labels=LABELS)
ROBERTA = replace(BERT, types=1, first_position=2, epsilon=1e-5)
DISTILBERT = replace(BERT, types=0, pooling="relu")
ELECTRA = replace(BERT, pooling="gelu", embedding_width=10)
MARIAN = TransformerConfig(activation="swish", output_bias=True)


def _bert_twin(name: str, head: Any, follows: bool = False) -> Twin:
    ours = replace(BERT, head=head, next_sentence=follows)
    ask, rows = (of_words if head == "words" else of_scores), (None if head == "text" else TEXTS)

    def make(sizes: dict[str, int]) -> Any:
        return getattr(HF, f"BertFor{name}")(HF.BertConfig(**_bert(sizes)))

    return Twin(make, ours, "huggingface", with_types, ask, rows)


def _relative(config: Any, kind: str, ours: BertConfig, library: str, head: Any) -> Twin:
    ask, rows = (of_words if head == "words" else of_scores), (None if head == "text" else TEXTS)
    asked = with_types if library == "huggingface-electra" else without_types

    def make(sizes: dict[str, int]) -> Any:
        return getattr(HF, kind)(config(sizes))

    return Twin(make, replace(ours, head=head), library, asked, ask, rows)


def electra(sizes: dict[str, int]) -> Any:
    return HF.ElectraConfig(**_bert(sizes), embedding_size=10)


def of_gpt(model: Any) -> list[Tensor]:
    return [model.output(model.packed(TEXTS))]


def of_marian(model: Any) -> list[Tensor]:
    return [model.output(model.packed(TEXTS, SECOND))]


def marian_model(activation: str, *, biased: bool) -> Callable[[dict[str, int]], Any]:
    def make(sizes: dict[str, int]) -> Any:
        model = HF.MarianMTModel(marian(sizes, activation))
        if biased:
            torch.manual_seed(9)
            model.final_logits_bias.normal_()
        return model

    return make


HEADS: dict[str, Any] = {
    "MaskedLM": "words",
    "SequenceClassification": "text",
    "TokenClassification": "tokens",
}
TWINS: dict[str, Twin] = {
    "bert pretraining": _bert_twin("PreTraining", "words", follows=True),
    **{f"bert {name}": _bert_twin(name, head) for name, head in HEADS.items()},
    **{
        f"{kind} {name}": _relative(config, f"{kind}For{name}", ours, library, head)
        for kind, config, ours, library in (
            ("Roberta", roberta, ROBERTA, "huggingface-roberta"),
            ("DistilBert", distilbert, DISTILBERT, "huggingface-distilbert"),
            ("Electra", electra, ELECTRA, "huggingface-electra"),
        )
        for name, head in HEADS.items()
    },
    "electra discriminator": _relative(
        electra, "ElectraForPreTraining", ELECTRA, "huggingface-electra", "replaced"
    ),
    "gpt2": Twin(
        lambda sizes: HF.GPT2LMHeadModel(gpt2(sizes)),
        GptConfig(),
        "huggingface",
        without_types,
        of_gpt,
    ),
    "marian": Twin(
        marian_model("swish", biased=True), MARIAN, "huggingface", translated, of_marian, SECOND
    ),
    "marian as published": Twin(
        marian_model("relu", biased=False),
        TransformerConfig(),
        "huggingface",
        translated,
        of_marian,
        SECOND,
    ),
}

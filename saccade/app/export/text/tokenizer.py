"""A tokenizer as transformers read it: tokenizer.json with our template, and what it is told of.

The file stays one that Saccade reads. Of a tokenizer of ours the token for unknown words is no
special one there, for `decode` would leave it out of a text, where we show it.
"""

import json
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from saccade.data.tokens.vocabulary import CONTROL, Vocabulary

Table = dict[str, Any]
# Takes the blank off that our byte pairs have before the first word.
WITHOUT_BLANK = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


@dataclass(frozen=True, kw_only=True)
class HubTokenizer:
    """What a tokenizer does for a kind of model.

    `before` and `after` are tokens around a text, and `after` also follows the second of a pair;
    `writes` is for models whose text is read; with `blanks` one may type the token of a hidden word
    into a text; special tokens have `roles` there, such as eos_token.
    """

    roles: dict[str, int | None]
    longest: int
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    writes: bool = False
    blanks: bool = False
    types: bool = False
    left: bool = False

    def files(self, vocabulary: Vocabulary) -> dict[str, Table]:
        """tokenizer.json and tokenizer_config.json."""
        table: Table = json.loads(vocabulary.to_json())
        prefix = (table["pre_tokenizer"] or {}).get("add_prefix_space", False)
        self._frame(table, vocabulary)
        if vocabulary.name(vocabulary.pad) == CONTROL[0]:
            self._shown(table, vocabulary)
        if self.blanks:
            _typed_blanks(table, vocabulary)
        return {"tokenizer.json": table, "tokenizer_config.json": self._told(vocabulary, prefix)}

    def _frame(self, table: Table, vocabulary: Vocabulary) -> None:
        """Special tokens around a text; a tokenizer that has its own for encoders keeps them."""
        own = Tokenizer.from_str(vocabulary.to_json()).num_special_tokens_to_add(False)
        if own and not self.writes:
            return
        after = [_special(vocabulary, token, 0) for token in self.after]
        again = [_special(vocabulary, token, 1) for token in self.after]
        single = [*(_special(vocabulary, token, 0) for token in self.before), _text("A", 0), *after]
        table["post_processor"] = {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, _text("B", 1), *again],
            "special_tokens": {
                name: {"id": name, "ids": [token], "tokens": [name]}
                for token in (*self.before, *self.after)
                if (name := vocabulary.name(token)) is not None
            },
        }

    def _shown(self, table: Table, vocabulary: Vocabulary) -> None:
        """Texts decode to what we say: unknown words too, and no blank at the front."""
        unknown = vocabulary.special.unknown
        silent = {token for token in vocabulary.special if token not in (None, unknown)}
        named = [(token, vocabulary.name(token)) for token in sorted(silent)]
        table["added_tokens"] = [{"id": token, "content": name, **_PLAIN} for token, name in named]
        if self.writes and table["decoder"] is not None:
            both = [table["decoder"], WITHOUT_BLANK]
            table["decoder"] = {"type": "Sequence", "decoders": both}

    def _told(self, vocabulary: Vocabulary, prefix: bool) -> Table:
        roles = {role: token for role, token in self.roles.items() if token is not None}
        names: Table = {role: vocabulary.name(token) for role, token in roles.items()}
        if self.blanks and vocabulary.mask is not None:
            names["mask_token"] = {**_BLANK, "content": vocabulary.name(vocabulary.mask)}
        types = ["token_type_ids"] if self.types else []
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **names,
            "model_max_length": self.longest,
            "model_input_names": ["input_ids", *types, "attention_mask"],
            "padding_side": "left" if self.left else "right",
            "add_prefix_space": prefix,
            "split_special_tokens": not self.blanks,  # typed, they are mere characters
            "clean_up_tokenization_spaces": False,
        }


def roles_of(vocabulary: Vocabulary, **roles: int | None) -> dict[str, int | None]:
    """Roles of special tokens, and those of all tokenizers; ours shows what is unknown."""
    ours = vocabulary.name(vocabulary.pad) == CONTROL[0]
    unknown = None if ours else vocabulary.special.unknown
    return {**roles, "pad_token": vocabulary.pad, "unk_token": unknown}


_PLAIN: Table = {
    **{"single_word": False, "lstrip": False, "rstrip": False, "normalized": False},
    "special": True,
}
_BLANK: Table = {"__type": "AddedToken", **_PLAIN, "lstrip": True}


def _typed_blanks(table: Table, vocabulary: Vocabulary) -> None:
    """The token of a hidden word takes the blank before it, and what follows it gets none."""
    name = None if vocabulary.mask is None else vocabulary.name(vocabulary.mask)
    for one in table["added_tokens"]:
        if one["content"] == name:
            one["lstrip"] = True
    match table["pre_tokenizer"]:
        case {"type": "ByteLevel", "add_prefix_space": True} as splits:
            first = {"type": "Metaspace", "replacement": " ", "prepend_scheme": "first"}
            table["pre_tokenizer"] = {
                "type": "Sequence",
                "pretokenizers": [
                    {**first, "split": False},
                    {**splits, "add_prefix_space": False},
                ],
            }
        case _:
            pass


def _special(vocabulary: Vocabulary, token: int, kind: int) -> Table:
    return {"SpecialToken": {"id": vocabulary.name(token), "type_id": kind}}


def _text(which: str, kind: int) -> Table:
    return {"Sequence": {"id": which, "type_id": kind}}

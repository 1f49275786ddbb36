"""What lies in a folder for transformers, for those who find it without us."""

from typing import NamedTuple

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.printable import printable


class Use(NamedTuple):
    """A kind of model: what it is called, how it is asked, and what is otherwise than here."""

    pipeline: str
    about: str
    code: str
    remark: str


_READ = 'given = tokenizer({texts}, truncation=True, return_tensors="pt")\n'
_SCORES = "with torch.no_grad():\n    scores = model(**given).logits\n"
_ONE, _TWO = _READ.format(texts='"…"'), _READ.format(texts='"…", "…"')
_LABEL = "print(model.config.id2label[int(scores[0].argmax())])\n"
_TYPED = "Special tokens that are typed into a text are mere characters (`split_special_tokens`)."

USES: dict[str, Use] = {
    "translation": Use(
        "translation",
        "A translator",
        f"{_ONE}found = model.generate(**given)\n"
        "print(tokenizer.decode(found[0], skip_special_tokens=True))\n",
        "`generate` is greedy, as `saccade predict --beam 1` is. `num_beams=5, length_penalty=0.0` "
        "ranks as `--beam 5 --length-penalty 0`. With a penalty α we divide log p by "
        "((5 + n) / 6)ᵅ and transformers by nᵅ, so that other sentences may win. A translation "
        "ends at `max_length` tokens there, here at twice the source and twenty. " + _TYPED,
    ),
    "language": Use(
        "text-generation",
        "A language model",
        f"{_ONE}found = model.generate(**given, max_new_tokens=50)\n"
        "print(tokenizer.decode(found[0], skip_special_tokens=True))\n",
        _TYPED,
    ),
    "masked": Use(
        "fill-mask",
        "A model that fills hidden words",
        'given = tokenizer(f"… {tokenizer.mask_token} …", return_tensors="pt")\n'
        f"{_SCORES}(at,) = (given.input_ids[0] == tokenizer.mask_token_id).nonzero()[0]\n"
        "print(tokenizer.decode(scores[0, at].argmax()))\n",
        "The names of special tokens are read as such in a text.",
    ),
    "replaced": Use(
        "feature-extraction",
        "The discriminator of an ELECTRA",
        f"{_ONE}{_SCORES}print(scores[0].sigmoid())  # of each token: somebody replaced it\n",
        "Its generator is left out. The names of special tokens are read as such in a text.",
    ),
    "classes": Use("text-classification", "A text classifier", _ONE + _SCORES + _LABEL, _TYPED),
    "labels": Use(
        "text-classification",
        "A text classifier of several labels",
        f"{_ONE}{_SCORES}print(scores[0].sigmoid())  # of each label, as model.config.id2label\n",
        _TYPED,
    ),
    "number": Use(
        "text-classification",
        "A model that gives a text a number",
        f"{_ONE}{_SCORES}print(scores[0, 0])\n",
        "The mean and the deviation of the training data are in the last layer. " + _TYPED,
    ),
    "tags": Use(
        "token-classification",
        "A tagger of words",
        f"{_ONE}{_SCORES}for place in range(scores.shape[1]):\n"
        "    tag = model.config.id2label[int(scores[0, place].argmax())]\n"
        "    print(tokenizer.decode(given.input_ids[0, place]), tag)\n",
        "The first piece of a word has its tag; those of others mean nothing. " + _TYPED,
    ),
}


def text_readme(name: str, kind: str, auto: str, vocabulary: Vocabulary, *, pairs: bool) -> str:
    """How transformers load it."""
    use, special = USES[kind], vocabulary.special._asdict()
    code = use.code.replace(_ONE, _TWO) if pairs else use.code
    if kind == "masked" and auto == "AutoModelForPreTraining":  # it gives two kinds of logits
        code = code.replace(".logits", ".prediction_logits")
    tokens = ", ".join(f"{number} {role}" for role, number in special.items() if number is not None)
    return f"""---
library_name: transformers
pipeline_tag: {use.pipeline}
---
# {printable(name)} for Hugging Face's transformers

{use.about} trained by Saccade. `saccade.json` says which run it was made of; `--init` starts
another run from this folder.

```python
import torch
from transformers import AutoTokenizer, {auto}

model = {auto}.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
{code}```

For the same tokens the logits are those of Saccade. Special tokens: {tokens}.
{use.remark}
"""

"""What lies in an exported folder, for those who find it without us."""

from collections.abc import Sequence

from saccade.app.export.graphs import Slot
from saccade.data.tokens.vocabulary import Vocabulary

_TOKENS = """`tokenizer.json` is read by the `tokenizers` package. Some numbers are control tokens:
{pad} fills up, {start} starts a text, {end} ends it, {unknown} is an unknown word."""

_TRANSLATE = """translator = ctranslate2.Translator(".")
source = [entries[i] for i in tokenizer.encode("…", add_special_tokens=False).ids]
result = translator.translate_batch([source], beam_size=5, min_decoding_length=0)[0]
print(tokenizer.decode([tokenizer.token_to_id(t) for t in result.hypotheses[0]]))
"""

_WRITE = """generator = ctranslate2.Generator(".")
start = [entries[{start}]]
result = generator.generate_batch([start], max_length=50, sampling_topk=0)[0]
print(tokenizer.decode(result.sequences_ids[0]))
"""


_MEANINGS = {
    "source": "the words of each sentence, then {end} for its end, filled up with {pad}",
    "lengths": "the end included",
    "images": "red, green and blue from 0 to 255",
}
_READ = """`encoder.onnx` takes {given}. It gives the state
before the first word; a state with a `past` begins with a past of 0.
"""
_START = """There is no encoder: at first every state is zeros, and a `past` has the size 0.
"""


def control_tokens(vocabulary: Vocabulary) -> dict[str, int | None]:
    """The numbers that are no words."""
    return vocabulary.special._asdict()


def ctranslate2_readme(
    name: str, quantization: str, vocabulary: Vocabulary, *, translates: bool
) -> str:
    """How to use a CTranslate2 folder without Saccade."""
    control = control_tokens(vocabulary)
    kind = "translator" if translates else "language model"
    use = _TRANSLATE if translates else _WRITE.format(**control)
    end = "The end of the source is added by the engine. " if translates else ""
    return f"""# {name} for CTranslate2

A {kind} trained by Saccade, weights as {quantization}. {end}`saccade.json` says which run it was
made of.

{_TOKENS.format(**control)}

```python
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
entries = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
{use}```
"""


def onnx_readme(
    name: str, vocabulary: Vocabulary, inputs: Sequence[Slot], tokens: Slot, state: Sequence[Slot]
) -> str:
    """What goes into the graphs and what comes out."""
    rows = "\n".join(
        f"| `{slot.name}` | {slot.dtype} | {_shape(slot)} | "
        f"{'`next_' + slot.name + '`' if slot.changes else 'stays as it is'} |"
        for slot in state
    )
    control = control_tokens(vocabulary)
    start, end = control["start"], control["end"]
    first = f"{start}" if inputs else f"{start} (lines) or {end} (stream)"
    given = " and ".join(
        f"`{slot.name}` ({_shape(slot)}, {slot.dtype}: {_MEANINGS[slot.name].format(**control)})"
        for slot in inputs
    )
    return f"""# {name} as ONNX

`saccade.json` says which run it was made of, `interface.json` has the table below for programs.

{_TOKENS.format(**control)}

{_READ.format(given=given) if inputs else _START}
`decoder.onnx` takes `tokens` ({_shape(tokens)}, int64), the words chosen last, and the state; it
gives `scores` (rows × vocabulary) of the next word, before softmax, and the state after it. The
first token is {first}; a row is done when {end} is chosen. To keep some hypotheses and drop
others, index the rows of every state.

| state | type | shape | after the step |
|---|---|---|---|
{rows}
"""


def _shape(slot: Slot) -> str:
    return " × ".join(map(str, slot.shape))

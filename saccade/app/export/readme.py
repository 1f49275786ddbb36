"""What lies in an exported folder, for those who find it without us."""

from saccade.app.export.graphs import Slot
from saccade.config import ModelConfig
from saccade.data.vocabulary import END, PAD, START, UNKNOWN
from saccade.models.text.transformer import TransformerConfig

TOKENS = f"""`tokenizer.json` is read by the `tokenizers` package. Numbers below four are control
tokens: {PAD} fills up, {START} starts a text, {END} ends it, {UNKNOWN} is an unknown word."""

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


def ctranslate2_readme(config: ModelConfig, name: str, quantization: str) -> str:
    """How to use a CTranslate2 folder without Saccade."""
    translates = isinstance(config, TransformerConfig)
    kind = "translator" if translates else "language model"
    use = _TRANSLATE if translates else _WRITE.format(start=START)
    end = "The end of the source is added by the engine. " if translates else ""
    return f"""# {name} for CTranslate2

A {kind} trained by Saccade, weights as {quantization}. {end}`saccade.json` says which run it was
made of.

{TOKENS}

```python
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
entries = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
{use}```
"""


def onnx_readme(name: str, state: list[Slot], *, translates: bool) -> str:
    """What goes into the graphs and what comes out."""
    rows = "\n".join(
        f"| `{slot.name}` | {slot.dtype} | {' × '.join(map(str, slot.shape))} | "
        f"{'`next_' + slot.name + '`' if slot.changes else 'stays as it is'} |"
        for slot in state
    )
    words, first = (
        ("1", f"{START}") if translates else ("words", f"{START} (lines) or {END} (stream)")
    )
    return f"""# {name} as ONNX

`saccade.json` says which run it was made of, `interface.json` has the table below for programs.

{TOKENS}

{_READ if translates else _START}
`decoder.onnx` takes `tokens` (rows × {words}, int64), the words chosen last, and the state; it
gives `scores` (rows × vocabulary) of the next word, before softmax, and the state after it. The
first token is {first}; a row is done when {END} is chosen. To keep some hypotheses and drop
others, index the rows of every state.

| state | type | shape | after the step |
|---|---|---|---|
{rows}
"""


_READ = """`encoder.onnx` takes `source` (rows × source, int64: the words of each sentence, then
2 for its end, filled up with 0) and `lengths` (rows, int64, the end included). It gives the state
before the first word; a state with a `past` begins with a past of 0.
"""
_START = """There is no encoder: at first every state is zeros, and a `past` has the size 0.
"""

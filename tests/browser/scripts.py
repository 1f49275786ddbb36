"""Look documents in many scripts: without spaces, from right to left, with emoji."""

from typing import Any

import numpy as np

from tests.browser.documents import (
    Blobs,
    Made,
    axis,
    beam_of,
    cross_weights,
    document_of,
    self_weights,
    site,
)

Sides = tuple[str, str, str, str]

# For each: source pieces, which of them are words, target pieces, which of those are words. A word
# is a run of the same letter; a dot is a piece in no word.
TEXTS: dict[str, Sides] = {
    "short": (
        "She| does| not| eat| apples|.|<end>",
        "abcdef.",
        "Elle| ne| mange| pas| de| pommes|.|<end>",
        "abcdefg.",
    ),
    "Latin": (
        "The| old| cat| drinks| warm| milk| in| the| kit|chen|.|<end>",
        "abcdefghiij.",
        "La| viei|lle| chatte| boit| du| lait| chaud| dans| la| cui|sine|.|<end>",
        "abbcdefghijjk.",
    ),
    "Chinese–Japanese": (
        "老|猫|在|厨房|里|喝|温|牛奶|，|然后|睡觉|。|<end>",
        "aabcdefghijk.",
        "年老|いた|猫|は|台所|で|温かい|牛乳|を|飲み|、|それから|眠り|ます|。|<end>",
        "aabcdefghijkllm.",
    ),
    "Arabic–English": (
        "تشرب| القطة| الع|جوز| الحليب| الدافئ| في| المطبخ|،| ثم| تنام|.|<end>",
        "abccdefghijk.",
        "The| old| cat| drinks| warm| milk| in| the| kit|chen|,| then| sleeps|.|<end>",
        "abcdefghiijklm.",
    ),
    "Hebrew–Arabic": (
        "החתולה| הזקנה| שותה| חלב| חם| במטבח| ב|19|92|.|<end>",
        "abcdefghhi.",
        "تشرب| القطة| العجوز| الحليب| الدافئ| في| المطبخ| عام| 1992|.|<end>",
        "abcdefghij.",
    ),
    "emoji": (
        "I| 💜| my| 👨‍👩‍👧‍👦| and| 🇫🇷|🇯🇵|!| 👍🏽| so| 🥖🥐🍷| <b>|bold|</b>|.|<end>",
        "abcdefghijklmno.",
        "J'|aime| 💜| ma| 👨‍👩‍👧‍👦| et| 🇫🇷|🇯🇵| !| 👍🏽| donc| 🥖🥐🍷| <b>|gras|</b>|.|<end>",
        "abcdefghijklmnop.",
    ),
}


def runs(marks: str) -> list[list[int]]:
    """Ranges of equal letters."""
    found: list[list[int]] = []
    for place, mark in enumerate(marks):
        if mark == ".":
            continue
        if found and marks[place - 1] == mark:
            found[-1][1] = place + 1
        else:
            found.append([place, place + 1])
    return found


def text(pieces: list[str]) -> str:
    return "".join(piece for piece in pieces if piece != "<end>")


def translated(
    name: str, *, heads: int = 2, run: str = "transformer-nano", hypotheses: int = 2
) -> Made:
    """A translation in those scripts, with a beam and every head."""
    blobs, kept = Blobs(), {}
    given, given_words, made, made_words = TEXTS[name]
    source, target = given.split("|"), made.split("|")
    assert (len(source), len(target)) == (len(given_words), len(made_words)), name
    stretch = (len(source) - 1) / (len(target) - 1)
    aligned = tuple(round(t * stretch) for t in range(len(target)))
    weights = {
        "encoder.0.self": self_weights(len(source), heads, causal=False, seed=1),
        "decoder.0.self": self_weights(len(target), heads, causal=True, seed=2),
        "decoder.0.cross": cross_weights(aligned, len(source), heads, seed=3),
    }
    sites: list[dict[str, Any]] = []
    for place, values in weights.items():
        rows = "source" if "encoder" in place else "target"
        columns = "target" if place == "decoder.0.self" else "source"
        arrays = {"weights": blobs.add(values, "f16")}
        causal = rows == columns == "target"
        sites.append(site(place, rows, columns, heads=heads, arrays=arrays, causal=causal))
        kept[0, place] = values.astype(np.float64)
    axes = {
        "source": axis(source, words=runs(given_words)),
        "target": axis(target, words=runs(made_words), log_p=[-0.1] * len(target)),
    }
    look = {
        **{"run": run, "label": "best", "text": text(target), "score": -0.3},
        **{"log_probability": -4.0, "finished": True, "axes": axes, "sites": sites},
        "beam": beam_of(target, hypotheses + 2),
    }
    others = [
        {**look, "label": f"{place}.", "score": -0.4 * place, "beam": None}
        for place in range(2, hypotheses + 1)
    ]
    title = f"{run} · {text(source)}"
    document = document_of("translation", title, [look, *others], blobs)
    return Made({**document, "subject": text(source)}, kept)


def read(name: str, *, causal: bool = True, layers: int = 2) -> Made:
    """The source of those scripts, as a language model or an encoder sees it."""
    blobs, kept, sites = Blobs(), {}, []
    given, marks, *_ = TEXTS[name]
    pieces = given.split("|")
    for layer in range(layers):
        values = self_weights(len(pieces), 2, causal=causal, seed=layer)
        arrays = {"weights": blobs.add(values, "f16")}
        place = f"layers.{layer}.self"
        sites.append(site(place, "text", "text", heads=2, causal=causal, arrays=arrays))
        kept[0, place] = values.astype(np.float64)
    look = {
        **{"run": "gpt-nano", "label": "best", "text": text(pieces), "score": None},
        **{"log_probability": None, "finished": None, "beam": None, "sites": sites},
        "axes": {"text": axis(pieces, words=runs(marks), prompt=len(pieces))},
    }
    return Made(document_of("language", f"gpt-nano · {text(pieces)}", [look], blobs), kept)

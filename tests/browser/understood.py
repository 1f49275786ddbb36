"""Look documents of texts that were understood, made up with numpy."""

from typing import Any

import numpy as np

from tests.browser.documents import (
    Array,
    Blobs,
    Made,
    axis,
    document_of,
    self_weights,
    site,
    softmax,
)

FIRST = " A| man| is| play|ing| the| cello|."
SECOND = " Some|one| plays| an| instru|ment|."
TAGGED = " She| was| sign|ing| the| old| letter|."
TAGS = ("pronoun", "auxiliary", "verb", "determiner", "adjective", "noun", "punctuation")
NAMES = ("entails", "neutral", "contradicts")


def _axis(texts: tuple[str, ...]) -> dict[str, Any]:
    pieces, parts = ["<start>"], list[list[int]]()
    for text in texts:
        parts.append([len(pieces), len(pieces) + len(text.split("|"))])
        pieces += [*text.split("|"), "<end>"]
    made = axis(pieces, texts=parts, prompt=len(pieces))
    return {**made, "words": _words(pieces)}


def _words(pieces: list[str]) -> list[list[int]]:
    """A piece with a blank before it begins a word; a mark is one; special tokens are none."""
    ranges: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if piece.startswith("<"):
            continue
        goes_on = ranges and ranges[-1][1] == place and not piece.startswith(" ") and piece != "."
        if goes_on:
            ranges[-1][1] = place + 1
        else:
            ranges.append([place, place + 1])
    return ranges


def _whole(rows: int, columns: int, *, seed: int) -> Array:
    scores = np.random.default_rng(seed).normal(0, 1.2, (1, rows, columns))
    return softmax(scores).astype(np.float16)


def _look(
    made: Made, blobs: Blobs, number: int, run: str, read: dict[str, Any], decision: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    length, rows = len(read["tokens"]), len(decision["tokens"])
    sites: list[dict[str, Any]] = []
    for place, name in enumerate(("relevance", "rollout", "encoder.0.self", "encoder.1.self")):
        derived = place < 2
        weights = (
            _whole(rows, length, seed=place + 7 * number)
            if derived
            else self_weights(length, 3, causal=False, seed=place + 7 * number)
        )
        made.weights[number, name] = weights
        one = site(name, "decision" if derived else "text", "text", heads=1 if derived else 3)
        arrays = {"weights": blobs.add(weights, "f16")}
        sites.append({**one, "derived": derived, "arrays": arrays})
    plain = {"label": "best", "log_probability": None, "finished": None}
    axes = {"text": read, "decision": decision}
    return {"run": run, **plain, "axes": axes, "sites": sites, **more}


def pairs(runs: tuple[str, ...] = ("bert-pairs",), *, single: bool = False) -> Made:
    """Three classes of a pair, or of one text; the second run says another."""
    made, blobs = Made({}, {}), Blobs()
    texts = (FIRST,) if single else (FIRST, SECOND)
    looks: list[dict[str, Any]] = []
    for number, run in enumerate(runs):
        names = NAMES[number:] + NAMES[:number]
        guesses = [list(one) for one in zip(names, (0.8, 0.15, 0.05))]
        told = {
            "said": [names[0]], "guesses": guesses, "truth": [], "target": names[0],
            "probability": 0.8,
        }  # fmt: skip
        decision = {**axis([names[0]], places=[0])}
        more = {"text": names[0], "score": 0.8, "classes": told}
        looks.append(_look(made, blobs, number, run, _axis(texts), decision, **more))
    title = f"{' and '.join(runs)} · A man is playing"
    made.document = document_of("understanding", title, looks, blobs)
    return made


def tagged() -> Made:
    made, blobs = Made({}, {}), Blobs()
    text = _axis((TAGGED,))
    places = [start for start, _ in text["words"]]
    words = ["".join(text["tokens"][a:b]).strip() for a, b in text["words"]]
    choices = [[[tag, 0.9], ["noun", 0.06], ["verb", 0.04]] for tag in TAGS]
    decision = axis(words, places=places, choices=choices)
    more = {"text": " ".join(TAGS), "score": None}
    looks = [_look(made, blobs, 0, "bert-tag", text, decision, **more)]
    made.document = document_of("understanding", "bert-tag · She was signing", looks, blobs)
    return made


def number() -> Made:
    made, blobs = Made({}, {}), Blobs()
    decision = axis(["the number"], places=[0])
    more = {"text": "3.81", "score": 3.81}
    looks = [_look(made, blobs, 0, "stsb", _axis((FIRST, SECOND)), decision, **more)]
    made.document = document_of("understanding", "stsb · A man is playing", looks, blobs)
    return made

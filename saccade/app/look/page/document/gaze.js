// One row or one column: what a token looks at, and who looks at it, as [place, weight] pairs with
// the largest first, and the mass that is not among them.

import { EXACT, coarseText, exactTile, extent, headMatrix, zoomPlace } from "./attention.js";

const LEAST_WEIGHT = 0.001;

function pairsOf(weights, keep = 64) {
  const pairs = [];
  for (
    let i = 0; i < weights.length; i++
  ) if (weights[i] > LEAST_WEIGHT) pairs.push([i, weights[i]]);
  return pairs.sort((a, b) => b[1] - a[1]).slice(0, keep);
}

function gazeOf(pairs, exactness, blind = false) {
  const sum = pairs.reduce((total, [, weight]) => total + weight, 0);
  return { pairs, rest: blind ? 0 : Math.max(0, 1 - sum), exactness };
}

async function topRow(arrays, site, head, t) {
  const top = await arrays.get(site.arrays.top_weights);
  const places = await arrays.get(site.arrays.top_places);
  const [, rows, k] = top.shape;
  const pairs = [];
  for (let i = 0; i < k; i++) {
    const at = (head * rows + t) * k + i;
    if (top.data[at] > 0) pairs.push([places.data[at], top.data[at]]);
  }
  const sum = pairs.reduce((total, [, weight]) => total + weight, 0);
  const text = `top ${k}, ${Math.round(100 * sum)} % of the mass`;
  return gazeOf(pairs, { kind: "top", text }, pairs.length === 0);
}

async function topColumn(arrays, site, head, s) {
  const top = await arrays.get(site.arrays.top_weights);
  const places = await arrays.get(site.arrays.top_places);
  const [, rows, k] = top.shape;
  const weights = new Float32Array(rows);
  for (let i = 0; i < rows * k; i++) {
    if (
      places.data[head * rows * k + i] === s
    ) weights[Math.floor(i / k)] = top.data[head * rows * k + i];
  }
  return {
    pairs: pairsOf(weights), rest: null,
    exactness: { kind: "top", text: `from the top ${k} of each row` }
  };
}

async function coarseGaze(arrays, look, site, head, place, along) {
  const matrix = await headMatrix(arrays, look, site, head);
  if (!matrix) return gazeOf([], EXACT, true);
  const [high, wide] = matrix.cell;
  const pairs = [];
  const count = along === "row" ? matrix.columns : matrix.rows;
  const cell = along === "row" ? wide : high;
  for (let i = 0; i < count; i++) {
    const at = along === "row"
      ? Math.floor(place / high) * matrix.columns + i
      : i * matrix.columns + Math.floor(place / wide);
    for (let d = 0; d < cell; d++) pairs.push([i * cell + d, matrix.data[at] / wide]);
  }
  const kept = pairs.filter(([, weight]) => weight > LEAST_WEIGHT).sort((a, b) => b[1] - a[1]);
  return gazeOf(kept.slice(0, 64), { kind: "mean", text: coarseText(site) });
}

async function headGaze(arrays, look, site, head, place, along) {
  const [rows, columns] = extent(look, site);
  if (place >= (along === "row" ? rows : columns)) return gazeOf([], EXACT, true);
  if (site.arrays.weights || zoomPlace(site, head) >= 0) {
    const window = along === "row" ? [place, place + 1, 0, columns] : [0, rows, place, place + 1];
    const weights = await exactTile(arrays, look, site, head, window);
    const kind = site.arrays.weights?.dtype === "u8" ? { kind: "8-bit", text: "8-bit" } : EXACT;
    const gaze = gazeOf(pairsOf(weights), kind, !weights.some((weight) => weight > 0));
    return along === "row" ? gaze : { ...gaze, rest: null };
  }
  if (site.arrays.top_weights) {
    return along === "row" ? topRow(
      arrays, site, head, place
    ) : topColumn(arrays, site, head, place);
  }
  const gaze = await coarseGaze(arrays, look, site, head, place, along);
  return along === "row" ? gaze : { ...gaze, rest: null };
}

// along: "row" for what `place` looks at, "column" for who looks at it.
export async function gazeAt(arrays, look, sites, head, place, along) {
  if (typeof head === "number") return headGaze(arrays, look, sites[0], head, place, along);
  const each = await Promise.all(sites.flatMap((site) =>
    Array.from({ length: site.heads }, (_, n) => headGaze(arrays, look, site, n, place, along))));
  const sums = new Map();
  for (const { pairs } of each) {
    for (const [at, weight] of pairs) {
      const before = sums.get(at) ?? 0;
      sums.set(at, head === "max" ? Math.max(before, weight) : before + weight / each.length);
    }
  }
  const pairs = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 64);
  const gaze = gazeOf(pairs, each[0].exactness);
  return along === "row" && head !== "max" ? gaze : { ...gaze, rest: null };
}

// A row of a matrix already at hand, read the same way.
export function rowGaze(matrix, row) {
  const weights = matrix.data.subarray(row * matrix.columns, (row + 1) * matrix.columns);
  const gaze = gazeOf(pairsOf(weights), matrix.exactness, !weights.some((weight) => weight > 0));
  return matrix.overlaid ? { ...gaze, rest: null } : gaze;
}

export function columnGaze(matrix, column) {
  const weights = Float32Array.from(
    { length: matrix.rows }, (_, t) => matrix.data[t * matrix.columns + column]
  );
  return { pairs: pairsOf(weights), rest: null, exactness: matrix.exactness };
}

// The best that the document holds for a head: every weight, weights worked out from Q, K and LSE,
// the largest few of each row, or a coarse map. Each answer says which of these it is.

import { axisLength } from "./axis.js";
import { sharedTiles } from "./tiles.js";

// Beyond this many cells a matrix is not made whole; the long view asks for tiles.
const MOST_CELLS = 1_200_000;
const ROUNDING = { exact: 0.005, "8-bit": 0.05 };
const NOWHERE = new Set([65535, 4294967295]);

export const EXACT = { kind: "exact", text: "exact" };

export function extent(look, site) {
  const { weights, entropy, top_weights: top, received } = site.arrays;
  const { zoom } = site;
  const rows = (weights ?? entropy ?? top)?.shape[1] ?? zoom?.q.shape[1];
  const columns = weights?.shape[2] ?? received?.shape[1] ?? zoom?.k.shape[1];
  return [rows ?? axisLength(look.axes[site.rows]), columns ?? axisLength(look.axes[site.columns])];
}

export function isSelf(site) {
  return site.rows === site.columns || site.columns === "past"; // what was written so far
}

// Where in the zoom arrays a head lies; −1 if it is not there.
export function zoomPlace(site, head) {
  return site.zoom ? site.zoom.heads.indexOf(head) : -1;
}

export function coarseText(site, kind = "mean") {
  return `${site.cell[0]}×${site.cell[1]} ${kind}`;
}

// `rounding`: what is missing from a row only because its numbers were rounded.
function restOf(data, rows, columns, rounding) {
  const rest = new Float32Array(rows);
  for (let t = 0; t < rows; t++) {
    let sum = 0;
    for (let s = 0; s < columns; s++) sum += data[t * columns + s];
    // A row of zeros looks nowhere: nothing of it is left over.
    rest[t] = sum > 0 && 1 - sum > rounding ? 1 - sum : 0;
  }
  return rest;
}

function wholeMatrix(data, rows, columns, exactness, cell = [1, 1]) {
  return {
    rows, columns, data, rest: restOf(data, rows, columns, ROUNDING[exactness.kind] ?? 0), cell,
    exactness
  };
}

async function fromWeights(arrays, site, head) {
  const { data, shape } = await arrays.get(site.arrays.weights);
  const [, rows, columns] = shape;
  const part = data.subarray(head * rows * columns, (head + 1) * rows * columns);
  const exactness = site.arrays.weights.dtype === "u8" ? { kind: "8-bit", text: "8-bit" } : EXACT;
  return wholeMatrix(part, rows, columns, exactness);
}

async function fromTop(arrays, site, head, rows, columns) {
  const [top, places] = await Promise.all([
    arrays.get(site.arrays.top_weights),
    arrays.get(site.arrays.top_places),
  ]);
  const k = top.shape[2];
  const data = new Float32Array(rows * columns);
  let mass = 0;
  for (let t = 0; t < rows; t++) {
    for (let i = 0; i < k; i++) {
      const at = (head * rows + t) * k + i;
      if (!(top.data[at] > 0) || NOWHERE.has(places.data[at])) continue;
      data[t * columns + places.data[at]] = top.data[at];
      mass += top.data[at];
    }
  }
  const text = `top ${k}, ${Math.round((100 * mass) / rows)} % of the mass`;
  return wholeMatrix(data, rows, columns, { kind: "top", text });
}

async function fromMap(arrays, site, head, kind) {
  const { data, shape } = await arrays.get(site.arrays[`${kind}_map`]);
  const [, rows, columns] = shape;
  const part = data.subarray(head * rows * columns, (head + 1) * rows * columns);
  const fine = site.cell[0] === 1 && site.cell[1] === 1;
  const exactness = fine ? { kind: "8-bit", text: "8-bit" } : {
    kind, text: coarseText(site, kind)
  };
  const matrix = wholeMatrix(part, rows, columns, exactness, site.cell);
  matrix.rest.fill(0); // eight bits and maxima do not sum to one; nothing is left out all the same
  return matrix;
}

// The whole matrix of one head at the best resolution there is.
export async function headMatrix(arrays, look, site, head) {
  const [rows, columns] = extent(look, site);
  const small = rows * columns <= MOST_CELLS;
  if (site.arrays.weights) return fromWeights(arrays, site, head);
  if (small && zoomPlace(site, head) >= 0) {
    const data = await exactTile(arrays, look, site, head, [0, rows, 0, columns]);
    return wholeMatrix(data, rows, columns, EXACT);
  }
  if (small && site.arrays.top_weights) return fromTop(arrays, site, head, rows, columns);
  if (site.arrays.mean_map) return fromMap(arrays, site, head, "mean");
  if (site.arrays.max_map) return fromMap(arrays, site, head, "max");
  return null;
}

export async function coarseMap(arrays, site, head, kind) {
  const name = site.arrays[`${kind}_map`] ? kind : kind === "mean" ? "max" : "mean";
  if (!site.arrays[`${name}_map`]) return null;
  if (head !== "mean" && head !== "max") return fromMap(arrays, site, head, name);
  const heads = Array.from({ length: site.heads }, (_, n) => fromMap(arrays, site, n, name));
  return combined(await Promise.all(heads), head);
}

// Weights of the rows and columns in [r0, r1, c0, c1), or null where the document has none.
export async function exactTile(arrays, look, site, head, [r0, r1, c0, c1]) {
  if (site.arrays.weights) {
    const { data, columns } = await fromWeights(arrays, site, head);
    const out = new Float32Array((r1 - r0) * (c1 - c0));
    for (let t = r0; t < r1; t++) {
      out.set(data.subarray(t * columns + c0, t * columns + c1), (t - r0) * (c1 - c0));
    }
    return out;
  }
  const place = zoomPlace(site, head);
  if (place < 0) return null;
  const { q, k, lse, scale } = site.zoom;
  const [queries, keys, sums] = await Promise.all([q, k, lse].map((ref) => arrays.get(ref)));
  const [, rows, width] = queries.shape;
  const columns = keys.shape[1];
  return sharedTiles().compute({
    q: queries.data.slice((place * rows + r0) * width, (place * rows + r1) * width),
    k: keys.data.slice((place * columns + c0) * width, (place * columns + c1) * width),
    lse: sums.data.slice(place * rows + r0, place * rows + r1),
    width, scale, firstRow: r0, firstColumn: c0, causal: site.causal, reach: site.reach ?? null,
  });
}

// Mean or highest of several matrices of one shape. After "max" rows no longer sum to one.
export function combined(matrices, how) {
  const first = matrices.find(Boolean);
  const alike = matrices.filter((m) => m && m.rows === first.rows && m.columns === first.columns);
  if (!first || alike.length === 1) return first ?? null;
  const data = new Float32Array(first.data.length);
  const rest = new Float32Array(first.rows);
  for (const matrix of alike) {
    if (how === "max") matrix.data.forEach((value, i) => { if (value > data[i]) data[i] = value; });
    else matrix.data.forEach((value, i) => { data[i] += value / alike.length; });
    if (how !== "max") matrix.rest.forEach((value, t) => { rest[t] += value / alike.length; });
  }
  return { ...first, data, rest, exactness: weakest(alike), overlaid: how === "max" };
}

const ORDER = ["exact", "8-bit", "top", "max", "mean"];

function weakest(matrices) {
  const places = matrices.map((matrix) => ORDER.indexOf(matrix.exactness.kind));
  return matrices[places.indexOf(Math.max(...places))].exactness;
}

// head: a number, "mean" or "max", over all the heads of all these sites.
export async function sitesMatrix(arrays, look, sites, head) {
  if (typeof head === "number") return headMatrix(arrays, look, sites[0], head);
  const each = sites.flatMap((site) =>
    Array.from({ length: site.heads }, (_, n) => headMatrix(arrays, look, site, n)));
  return combined(await Promise.all(each), head);
}

// Without column 0, each row made to sum to one again.
export function withoutSink(matrix) {
  const data = Float32Array.from(matrix.data);
  const rest = Float32Array.from(matrix.rest);
  for (let t = 0; t < matrix.rows; t++) {
    const left = 1 - data[t * matrix.columns];
    data[t * matrix.columns] = 0;
    const factor = left > 1e-3 ? 1 / left : 0;
    for (let s = 1; s < matrix.columns; s++) data[t * matrix.columns + s] *= factor;
    rest[t] *= factor;
  }
  return { ...matrix, data, rest };
}

// Rows of pieces to rows of words: summed over the columns of a word, averaged over its rows.
export function merged(matrix, rowGroups, columnGroups) {
  const columns = columnGroups.length;
  const data = new Float32Array(rowGroups.length * columns);
  const rest = new Float32Array(rowGroups.length);
  rowGroups.forEach((row, i) => {
    const share = 1 / (row.to - row.from);
    for (let t = row.from; t < row.to; t++) {
      rest[i] += share * matrix.rest[t];
      columnGroups.forEach((column, j) => {
        for (let s = column.from; s < column.to; s++) {
          data[i * columns + j] += share * matrix.data[t * matrix.columns + s];
        }
      });
    }
  });
  return { ...matrix, rows: rowGroups.length, columns, data, rest };
}

// Only the first rows and columns.
export function cornerOf(matrix, rows, columns) {
  const data = new Float32Array(rows * columns);
  for (let t = 0; t < rows; t++) {
    const from = t * matrix.columns;
    data.set(matrix.data.subarray(from, from + columns), t * columns);
  }
  return { ...matrix, rows, columns, data, rest: new Float32Array(rows) };
}

export function columnSums(matrix) {
  const sums = new Float32Array(matrix.columns);
  for (let i = 0; i < matrix.data.length; i++) sums[i % matrix.columns] += matrix.data[i];
  return sums;
}

export function rowEntropies(matrix) {
  return Float32Array.from({ length: matrix.rows }, (_, t) => {
    let sum = 0;
    for (let s = 0; s < matrix.columns; s++) {
      const weight = matrix.data[t * matrix.columns + s];
      if (weight > 0) sum -= weight * Math.log(weight);
    }
    return sum;
  });
}

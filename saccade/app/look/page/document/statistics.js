// What kind of head this is: numbers per head, averaged over its rows, and a word for those that
// are known to recur.

import { extent, isSelf } from "./attention.js";

const NEAR = 4; // columns this close to the diagonal count as local
const KEPT_NEAR = 8; // and where the document has counted them

async function rowMeans(arrays, site, name) {
  if (!site.arrays[name]) return null;
  const { data, shape } = await arrays.get(site.arrays[name]);
  const [heads, rows] = shape;
  return Array.from({ length: heads }, (_, n) => {
    let sum = 0;
    let count = 0;
    for (let t = 0; t < rows; t++) {
      const value = data[n * rows + t];
      if (Number.isFinite(value)) { sum += value; count += 1; }
    }
    return count ? sum / count : null;
  });
}

function fromMatrix(data, rows, columns, self) {
  const sums = { entropy: 0, highest: 0, sink: 0, local: 0, previous: 0 };
  const where = new Int32Array(rows).fill(-1);
  for (let t = 0; t < rows; t++) {
    let most = 0;
    for (let s = 0; s < columns; s++) {
      const weight = data[t * columns + s];
      if (!(weight > 0)) continue;
      sums.entropy -= weight * Math.log(weight);
      if (weight > most) { most = weight; where[t] = s; }
      if (self && Math.abs(t - s) <= NEAR) sums.local += weight;
    }
    sums.highest += most;
    sums.sink += data[t * columns];
    if (self && t > 0) sums.previous += data[t * columns + t - 1];
  }
  const found = {
    entropy: sums.entropy / rows, highest: sums.highest / rows, monotone: monotoneShare(where)
  };
  if (!self) return found;
  const previous = rows > 1 ? sums.previous / (rows - 1) : 0;
  return { ...found, sink: sums.sink / rows, local: sums.local / rows, previous };
}

// The share of steps on which the place most looked at does not go back.
function monotoneShare(where) {
  let kept = 0;
  for (let t = 1; t < where.length; t++) if (where[t] >= where[t - 1]) kept += 1;
  return where.length > 1 ? kept / (where.length - 1) : 1;
}

async function previousFromTop(arrays, site) {
  if (!site.arrays.top_weights || !isSelf(site)) return null;
  const top = await arrays.get(site.arrays.top_weights);
  const places = await arrays.get(site.arrays.top_places);
  const [heads, rows, k] = top.shape;
  return Array.from({ length: heads }, (_, n) => {
    let sum = 0;
    for (let t = 1; t < rows; t++) {
      for (let i = 0; i < k; i++) {
        const at = (n * rows + t) * k + i;
        if (places.data[at] === t - 1) sum += top.data[at];
      }
    }
    return sum / Math.max(rows - 1, 1);
  });
}

async function monotoneFromWhere(arrays, site) {
  if (!site.arrays.where) return null;
  const { data, shape } = await arrays.get(site.arrays.where);
  const [heads, rows] = shape;
  return Array.from(
    { length: heads }, (_, n) => monotoneShare(data.subarray(n * rows, (n + 1) * rows))
  );
}

async function measured(arrays, look, site) {
  const [rows, columns] = extent(look, site);
  const names = isSelf(site) ? ["entropy", "highest", "sink", "local"] : ["entropy", "highest"];
  const kept = await Promise.all(names.map((name) => rowMeans(arrays, site, name)));
  const even = evenShares(site, rows, columns);
  const whole = site.arrays.weights ? await arrays.get(site.arrays.weights) : null;
  const previous = whole ? null : await previousFromTop(arrays, site);
  const monotone = whole ? null : await monotoneFromWhere(arrays, site);
  return Array.from({ length: site.heads }, (_, n) => {
    const size = rows * columns;
    const found = whole ? fromMatrix(
      whole.data.subarray(n * size, (n + 1) * size), rows, columns, isSelf(site)
    ) : {};
    names.forEach((name, i) => { if (kept[i]) found[name] = kept[i][n]; });
    if (previous) found.previous = previous[n];
    if (monotone) found.monotone = monotone[n];
    if (found.local !== undefined) found.local = beyond(found.local, even.local);
    return { ...found, label: headLabel(found, site, even) };
  });
}

// What a head would show of each trait that spread its attention evenly: much, on short texts.
function evenShares(site, rows, columns) {
  const near = site.arrays.local ? KEPT_NEAR : NEAR;
  const sums = { entropy: 0, highest: 0, sink: 0, local: 0, previous: 0 };
  for (let t = 0; t < rows; t++) {
    const last = Math.min(site.causal ? t : columns - 1, t + (site.reach ?? columns), columns - 1);
    const first = Math.max(0, t - (site.reach ?? t));
    const each = 1 / Math.max(last - first + 1, 1);
    sums.entropy -= Math.log(each);
    sums.highest += each;
    sums.sink += first === 0 ? each : 0;
    sums.local += each * (Math.min(last, t + near) - Math.max(first, t - near) + 1);
    if (t > first) sums.previous += each * (rows / (rows - 1));
  }
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum / rows]));
}

// Of what even attention leaves open, the share that a head fills: 0 if it is even, 1 at most.
function beyond(value, even) {
  return even < 0.999 ? Math.max(0, (value - even) / (1 - even)) : 0;
}

// {text, value}: the trait that stands out most beyond even attention, if one does.
function headLabel(found, site, even) {
  const stands = (name, least) => beyond(found[name], even[name]) >= least;
  if (isSelf(site)) {
    if (stands("previous", 0.45)) return { text: "previous", value: found.previous };
    if (stands("sink", 0.45)) return { text: "sink", value: found.sink };
    if (found.local >= 0.6) return { text: "local", value: found.local };
  } else if (found.monotone >= 0.8 && stands("highest", 0.5)) {
    return { text: "aligned", value: found.highest };
  }
  return even.entropy > 0 && found.entropy > 0.75 * even.entropy
    ? { text: "spread out", value: null } : null;
}

const measuredSites = new WeakMap();

// One record per head: entropy, highest, sink, local, previous, monotone where they can be had.
export function headStatistics(arrays, look, site) {
  if (!measuredSites.has(site)) measuredSites.set(site, measured(arrays, look, site));
  return measuredSites.get(site);
}

// The head that most looks like an alignment: sharp, and moving forward.
export async function bestAligned(arrays, look, sites) {
  const all = await Promise.all(sites.map((site) => headStatistics(arrays, look, site)));
  let best = null;
  sites.forEach((site, i) => {
    const [, columns] = extent(look, site);
    all[i].forEach(({ entropy = 0, monotone = 0 }, head) => {
      const cost = entropy / Math.log(Math.max(columns, 2)) + 1 - monotone;
      if (!best || cost < best.cost) best = { site, head, cost };
    });
  });
  return best;
}

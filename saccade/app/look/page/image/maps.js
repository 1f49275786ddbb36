// Attention over the cells of an image: where its peak lies, how wide it spreads, what it falls
// on, and the same map made smooth.

const BLUR = 0.6; // cells
const FINE = 96; // samples along the longer side of a smooth map

export function cellsOf(grid) {
  return grid.height * grid.width;
}

// The middle of a cell, [x, y] in shares of the image: around it lies what the cell sees.
export function middleOf(cell, grid) {
  return [grid.across[cell % grid.width], grid.down[Math.floor(cell / grid.width)]];
}

// Halfway between middles, and the edges of the image.
export function bordersOf(middles) {
  return [0, ...middles.slice(1).map((middle, i) => (middles[i] + middle) / 2), 1];
}

// [left, top, right, bottom] of all that lies nearer to a cell than to another.
export function boxOf(cell, grid) {
  const [x, y] = [cell % grid.width, Math.floor(cell / grid.width)];
  const [across, down] = [bordersOf(grid.across), bordersOf(grid.down)];
  return [across[x], down[y], across[x + 1], down[y + 1]];
}

// The cell nearest to a place in the image.
export function cellUnder([x, y], grid) {
  const before = (middles, share) =>
    bordersOf(middles).slice(1, -1).filter((border) => border <= share).length;
  return before(grid.down, y) * grid.width + before(grid.across, x);
}

// The map of one row of a matrix; what falls on class tokens is `aside`.
export function mapAt(matrix, row, grid) {
  const from = row * matrix.columns;
  const special = grid.special ?? 0;
  let aside = 0;
  for (let s = 0; s < special; s++) aside += matrix.data[from + s];
  return {
    data: matrix.data.subarray(from + special, from + special + cellsOf(grid)), grid, aside,
    rest: matrix.rest[row],
  };
}

export function peakOf({ data }) {
  let best = 0;
  for (let i = 1; i < data.length; i++) if (data[i] > data[best]) best = i;
  return { cell: best, weight: data[best] };
}

// How many cells of equal weight would be as uncertain: exp of the entropy.
export function spreadOf({ data }) {
  const total = data.reduce((sum, weight) => sum + weight, 0);
  let entropy = 0;
  for (const weight of data) {
    if (weight > 0) entropy -= (weight / total) * Math.log(weight / total);
  }
  return total > 0 ? Math.exp(entropy) : 0;
}

const THIRDS = [["top left", "top", "top right"], ["left", "centre", "right"],
  ["bottom left", "bottom", "bottom right"]];

// Which ninth of the image a cell lies in, by its middle.
export function placeName(cell, grid) {
  const [x, y] = middleOf(cell, grid).map((share) => Math.min(Math.floor(3 * share), 2));
  return THIRDS[y][x];
}

// [[name, mass]], most first.
export function placesOf({ data, grid }) {
  const sums = new Map();
  data.forEach((weight, cell) => {
    const name = placeName(cell, grid);
    sums.set(name, (sums.get(name) ?? 0) + weight);
  });
  return [...sums].sort((a, b) => b[1] - a[1]);
}

// The share of a cell that lies in a box, both in shares of the image.
function overlap(cell, grid, [left, top, right, bottom]) {
  const [west, north, east, south] = boxOf(cell, grid);
  const wide = (Math.min(right, east) - Math.max(left, west)) / (east - west);
  const high = (Math.min(bottom, south) - Math.max(top, north)) / (south - north);
  return Math.max(0, wide) * Math.max(0, high);
}

export function massIn({ data, grid }, box) {
  return data.reduce((sum, weight, cell) => sum + weight * overlap(cell, grid, box), 0);
}

// Whether the middle of a cell lies in a box: what the pointing game asks of the peak.
export function holds([left, top, right, bottom], cell, grid) {
  const [x, y] = middleOf(cell, grid);
  return x >= left && x <= right && y >= top && y <= bottom;
}

const kernels = new Map();

// kernel[i, a] = exp(−(xᵢ − a)² / 2σ²), its rows made to sum to one so that even maps stay even.
function kernel(middles, samples) {
  const key = `${middles}/${samples}`;
  if (kernels.has(key)) return kernels.get(key);
  const count = middles.length;
  const apart = count > 1 ? middles[1] - middles[0] : 1;
  const table = new Float32Array(samples * count);
  for (let i = 0; i < samples; i++) {
    const x = (i + 0.5) / samples;
    let sum = 0;
    for (let a = 0; a < count; a++) {
      table[i * count + a] = Math.exp(-(((x - middles[a]) / apart) ** 2) / (2 * BLUR ** 2));
      sum += table[i * count + a];
    }
    for (let a = 0; a < count; a++) table[i * count + a] /= sum;
  }
  kernels.set(key, table);
  return table;
}

// The same map at many more places: {data, width, height}.
export function smoothed({ data, grid }) {
  const longest = Math.max(grid.width, grid.height);
  const width = Math.round((FINE * grid.width) / longest);
  const height = Math.round((FINE * grid.height) / longest);
  const across = kernel(grid.across, width);
  const down = kernel(grid.down, height);
  const half = new Float32Array(grid.height * width);
  for (let y = 0; y < grid.height; y++) {
    for (let i = 0; i < width; i++) {
      let sum = 0;
      for (let x = 0; x < grid.width; x++) sum += across[i * grid.width + x] * data[y * grid.width + x];
      half[y * width + i] = sum;
    }
  }
  const fine = new Float32Array(height * width);
  for (let j = 0; j < height; j++) {
    for (let y = 0; y < grid.height; y++) {
      const share = down[j * grid.height + y];
      for (let i = 0; i < width; i++) fine[j * width + i] += share * half[y * width + i];
    }
  }
  return { data: fine, width, height };
}

// Rows of a site's head as one map: the mean over the pieces of a word.
export function meanMap(matrix, from, to, grid) {
  const rows = Array.from({ length: to - from }, (_, i) => mapAt(matrix, from + i, grid));
  if (rows.length === 1) return rows[0];
  const data = new Float32Array(cellsOf(grid));
  const mean = { data, grid, aside: 0, rest: 0 };
  for (const row of rows) {
    row.data.forEach((weight, i) => { data[i] += weight / rows.length; });
    mean.aside += row.aside / rows.length;
    mean.rest += row.rest / rows.length;
  }
  return mean;
}

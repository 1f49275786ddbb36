// Where the parts of a labelled matrix go, in pixels: shared by the canvas, the SVG and the mouse.

import { clip } from "../controls/format.js";

const SLANT = (52 * Math.PI) / 180;
const LONGEST_LABEL = 22;
const TALLEST_CELL = 32; // wider than high: room for numbers without a map as tall as the page
export const MAP_FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';

let ruler = null;

export function textWidth(text, size, weight = 400) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${weight} ${size}px ${MAP_FONT}`;
  return ruler.measureText(text).width;
}

function cellSize(room, columns, largest) {
  const smallest = columns <= 26 ? 17 : columns <= 64 ? 11 : 4;
  return Math.max(smallest, Math.min(largest, Math.floor(room / columns)));
}

function overhang(widths, cell) {
  return Math.max(
    0, ...widths.map((width, j) => width * Math.cos(SLANT) - (widths.length - j - 0.6) * cell)
  );
}

// model: {matrix, rowLabels, columnLabels, other} and the margins left, top and bottom.
export function planMap(model, width) {
  const { rows, columns } = model.matrix;
  const rowLabels = model.rowLabels.map((label) => clip(label, LONGEST_LABEL));
  const columnLabels = model.columnLabels.map((label) => clip(label, LONGEST_LABEL));
  const longestRow = Math.max(0, ...rowLabels.map((label) => textWidth(label, 13)));
  const widths = columnLabels.map((label) => textWidth(label, 13));
  const leftMargin = model.left ? 58 : 0;
  const extra = model.other ? 2 : 0;
  const largest = model.largest ?? 54;
  let left = Math.ceil(longestRow) + 16 + leftMargin;
  let cell = cellSize(width - left - 12, columns + extra, largest);
  cell = cellSize(width - left - Math.max(12, overhang(widths, cell)), columns + extra, largest);
  const labelled = cell >= 11;
  if (!labelled) left = 34 + leftMargin;
  const slanted = labelled ? Math.max(0, ...widths) * Math.sin(SLANT) : 8;
  const top = Math.ceil(slanted) + 18 + (model.top ? 48 : 0);
  const rise = Math.min(cell, TALLEST_CELL);
  const gridRight = left + columns * cell;
  const right = labelled ? Math.max(12, overhang(widths, cell)) : 12;
  const otherAt = model.other ? gridRight + Math.round(cell / 2) : null;
  const foot = model.bottom ? 74 : 10;
  return {
    cell, rise, left, top, rows, columns, rowLabels, columnLabels, labelled, otherAt, leftMargin,
    slant: SLANT,
    font: rise >= 15 ? 13 : 11,
    gap: cell >= 9 ? 1 : 0,
    gridRight,
    gridBottom: top + rows * rise,
    width: Math.ceil(Math.max(gridRight + right, otherAt ? otherAt + cell + 30 : 0)),
    height: top + rows * rise + foot,
  };
}

// The cell under a point; null in row or column where only a label is there.
export function placeAt(plan, x, y) {
  const column = Math.floor((x - plan.left) / plan.cell);
  const row = Math.floor((y - plan.top) / plan.rise);
  const inRows = row >= 0 && row < plan.rows;
  if (inRows && x < plan.left) return { row, column: null };
  if (inRows && column >= 0 && column < plan.columns) return { row, column };
  if (inRows && plan.otherAt !== null && x >= plan.otherAt) return { row, column: null };
  if (row >= plan.rows && column >= 0 && column < plan.columns) return { row: null, column };
  if (row < 0) {
    // A slanted label leans to the right: follow it back down to its column.
    const lean = plan.labelled ? (plan.top - y) / Math.tan(plan.slant) : 0;
    const under = Math.floor((x - lean - plan.left) / plan.cell);
    if (under >= 0 && under < plan.columns) return { row: null, column: under };
  }
  return null;
}

// Which indexes are worth a tick when there is no room for words.
export function tickStep(count, room) {
  const most = Math.max(2, room / 44);
  return [
    1, 2, 5, 10, 20, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000
  ].find((step) => count / step <= most) ?? 20000;
}

// Where the parts of a labelled matrix go, in pixels: shared by the canvas, the SVG and the mouse.

import { shape, within } from "../controls/dom.js";
import { directionOf, runsLeft } from "../controls/format.js";

const SLANT = (52 * Math.PI) / 180;
const WIDEST_LABEL = 150; // pixels
const TALLEST_CELL = 32; // wider than high: room for numbers without a map as tall as the page
export const MAP_FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';

let ruler = null;

export function textWidth(text, size, weight = 400) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${weight} ${size}px ${MAP_FONT}`;
  return ruler.measureText(text).width;
}

let cutter = null;

// As much of a text as there is room for, in whole characters as people see them.
export function fitted(text, room, size, weight = 400) {
  if (textWidth(text, size, weight) <= room) return text;
  cutter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const letters = [...cutter.segment(text)].map(({ segment }) => segment);
  const cut = (count) => `${letters.slice(0, count).join("")}…`;
  let [low, high] = [1, Math.max(letters.length - 1, 1)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(cut(middle), size, weight) <= room) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

const TURNED = { start: "end", end: "start", middle: "middle" };

// A word in a drawing, in its own direction; the anchor is the end that meets (x, y) as if it ran
// from left to right.
export function svgWord(text, { "text-anchor": anchor = "start", ...more }) {
  const direction = directionOf(text);
  return shape("text", {
    ...more, text, direction, "text-anchor": direction === "rtl" ? TURNED[anchor] : anchor
  });
}

function cellSize(room, columns, largest) {
  const smallest = columns <= 26 ? 17 : columns <= 64 ? 11 : 4;
  return Math.max(smallest, Math.min(largest, Math.floor(room / columns)));
}

// How far slanted labels reach past the end of the columns that they lean towards.
function overhang(widths, cell) {
  return Math.max(
    0, ...widths.map((width, j) => width * Math.cos(SLANT) - (widths.length - j - 0.6) * cell)
  );
}

// model: {matrix, rowLabels, columnLabels, other}, the margins left, top and bottom, and `high`, how
// high the map should become if its cells allow. Columns of a text that runs from right to left do so.
export function planMap(model, width) {
  const { rows, columns } = model.matrix;
  const mirrored = runsLeft(model.columnLabels);
  const rowLabels = model.rowLabels.map((label) => fitted(label, WIDEST_LABEL, 13));
  const columnLabels = model.columnLabels.map((label) => fitted(label, WIDEST_LABEL, 13));
  const longestRow = Math.max(0, ...rowLabels.map((label) => textWidth(label, 13)));
  const widths = columnLabels.map((label) => textWidth(label, 13));
  const leftMargin = model.left ? 58 : 0;
  const extra = model.other ? 2 : 0;
  const largest = model.largest ?? 54;
  const before = (cell) => Math.ceil(
    Math.max(longestRow + 16 + leftMargin, mirrored ? overhang(widths, cell) : 0)
  );
  const after = (cell) => Math.max(12, mirrored ? 0 : overhang(widths, cell));
  const sized = (cell) => cellSize(width - before(cell) - after(cell), columns + extra, largest);
  const cell = sized(sized(largest));
  const labelled = cell >= 11;
  const left = labelled ? before(cell) : 34 + leftMargin;
  const slanted = labelled ? Math.max(0, ...widths) * Math.sin(SLANT) : 8;
  const top = Math.ceil(slanted) + 18 + (model.top ? 48 : 0);
  const foot = model.bottom ? 74 : 10;
  const wanted = Math.floor(((model.high ?? 0) - top - foot) / rows);
  const rise = within(wanted, Math.min(cell, TALLEST_CELL), cell);
  const gridRight = left + columns * cell;
  const right = labelled ? after(cell) : 12;
  const otherAt = model.other ? gridRight + Math.round(cell / 2) : null;
  return {
    cell, rise, left, top, rows, columns, rowLabels, columnLabels, labelled, otherAt, leftMargin,
    mirrored,
    lean: mirrored ? -1 : 1,
    slant: SLANT,
    font: rise >= 15 ? 13 : 11,
    gap: cell >= 9 ? 1 : 0,
    gridRight,
    gridBottom: top + rows * rise,
    width: Math.ceil(Math.max(gridRight + right, otherAt ? otherAt + cell + 30 : 0)),
    height: top + rows * rise + foot,
  };
}

// How wide a map is that has all the room it wants.
export function naturalWidth(model) {
  return planMap(model, Infinity).width;
}

// The left edge of a column.
export function columnAt(plan, column) {
  return plan.left + (plan.mirrored ? plan.columns - 1 - column : column) * plan.cell;
}

// The cell under a point; null in row or column where only a label is there.
export function placeAt(plan, x, y) {
  const across = (at) => {
    const place = Math.floor((at - plan.left) / plan.cell);
    return plan.mirrored ? plan.columns - 1 - place : place;
  };
  const column = across(x);
  const row = Math.floor((y - plan.top) / plan.rise);
  const inRows = row >= 0 && row < plan.rows;
  if (inRows && x < plan.left) return { row, column: null };
  if (inRows && column >= 0 && column < plan.columns) return { row, column };
  if (inRows && plan.otherAt !== null && x >= plan.otherAt) return { row, column: null };
  if (row >= plan.rows && column >= 0 && column < plan.columns) return { row: null, column };
  if (row < 0) {
    // A slanted label leans away: follow it back down to its column.
    const lean = plan.labelled ? (plan.lean * (plan.top - y)) / Math.tan(plan.slant) : 0;
    const under = across(x - lean);
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

// A matrix with words on both sides, on a canvas.

import { inkOn, pageColour, shade } from "../controls/colour.js";
import { el, perFrame, style, within } from "../controls/dom.js";
import { directionOf, weightText } from "../controls/format.js";
import { MAP_FONT, columnAt, placeAt, planMap, tickStep } from "./plan.js";

const SMALLEST_NUMBER_CELL = 25;

// What a cell may be: hidden cells of a causal matrix are left blank, not drawn as zero.
export function isOpen(model, row, column) {
  return !model.open || model.open(row, column);
}

function drawCells(pen, plan, model) {
  const { matrix, scale = "linear", dimFrom = Infinity } = model;
  const wide = plan.cell - plan.gap;
  const high = plan.rise - plan.gap;
  const numbered = plan.cell >= SMALLEST_NUMBER_CELL && !model.plain;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `11px ${MAP_FONT}`;
  for (let i = 0; i < plan.rows; i++) {
    pen.globalAlpha = i >= dimFrom ? 0.22 : 1;
    const y = plan.top + i * plan.rise;
    for (let j = 0; j < plan.columns; j++) {
      if (!isOpen(model, i, j)) continue;
      const value = matrix.data[i * plan.columns + j];
      const x = columnAt(plan, j);
      pen.fillStyle = shade(value, scale);
      box(pen, x, y, wide, high);
      if (!numbered || Math.abs(value) < 0.095) continue;
      pen.fillStyle = inkOn(value, scale);
      pen.fillText(weightText(value), x + wide / 2, y + high / 2 + 0.5);
    }
    if (plan.otherAt !== null) drawOther(pen, plan, y, matrix.rest[i], numbered);
  }
  pen.globalAlpha = 1;
}

function box(pen, x, y, wide, high) {
  if (high < 14) return pen.fillRect(x, y, wide, high);
  pen.beginPath();
  pen.roundRect(x, y, wide, high, 2.5);
  return pen.fill();
}

// The mass that is not in the matrix: a hatched cell, filled from the left.
function drawOther(pen, plan, y, rest, numbered) {
  const wide = plan.cell - plan.gap;
  const high = plan.rise - plan.gap;
  pen.strokeStyle = pageColour("hatch");
  pen.lineWidth = 1;
  pen.strokeRect(plan.otherAt + 0.5, y + 0.5, wide - 1, high - 1);
  pen.fillStyle = pageColour("hatch");
  pen.fillRect(plan.otherAt, y, wide * within(rest, 0, 1), high);
  if (!numbered || rest < 0.095) return;
  pen.fillStyle = pageColour("ink");
  pen.fillText(weightText(rest), plan.otherAt + wide / 2, y + high / 2 + 0.5);
}

function drawLabels(pen, plan, model) {
  const { focus, dimFrom = Infinity } = model;
  if (!plan.labelled) return drawTicks(pen, plan);
  pen.textBaseline = "middle";
  for (let i = 0; i < plan.rows; i++) {
    const lit = focus?.row === i;
    pen.globalAlpha = i >= dimFrom ? 0.35 : 1;
    pen.font = `${lit ? 650 : 400} ${plan.font}px ${MAP_FONT}`;
    pen.fillStyle = pageColour(lit ? "accent" : "ink");
    pen.textAlign = "right";
    drawWord(pen, plan.rowLabels[i], plan.left - 9, plan.top + (i + 0.5) * plan.rise);
  }
  pen.globalAlpha = 1;
  pen.textAlign = plan.mirrored ? "right" : "left";
  for (let j = 0; j < plan.columns; j++) {
    slantedLabel(
      pen, plan, plan.columnLabels[j], columnAt(plan, j) + plan.cell / 2, focus?.column === j
    );
  }
  if (plan.otherAt !== null) slantedLabel(
    pen, plan, "other", plan.otherAt + plan.cell / 2, false, "soft"
  );
  return undefined;
}

// In its own direction, whatever that of the page.
export function drawWord(pen, text, x, y) {
  pen.direction = directionOf(text);
  pen.fillText(text, x, y);
  pen.direction = "ltr";
}

function slantedLabel(pen, plan, text, x, lit, colour = "ink") {
  pen.save();
  pen.translate(x, plan.top - 9);
  pen.rotate(-plan.lean * plan.slant);
  pen.font = `${lit ? 650 : 400} ${plan.font}px ${MAP_FONT}`;
  pen.fillStyle = pageColour(lit ? "accent" : colour);
  drawWord(pen, text, 0, 0);
  pen.restore();
}

function drawTicks(pen, plan) {
  pen.font = `10.5px ${MAP_FONT}`;
  pen.fillStyle = pageColour("soft");
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const down = tickStep(plan.rows, plan.rows * plan.rise);
  for (let i = 0; i < plan.rows; i += down) pen.fillText(
    String(i), plan.left - 7, plan.top + (i + 0.5) * plan.rise
  );
  pen.textAlign = "center";
  const across = tickStep(plan.columns, plan.columns * plan.cell);
  for (let j = 0; j < plan.columns; j += across) {
    pen.fillText(String(j), columnAt(plan, j) + plan.cell / 2, plan.top - 11);
  }
}

// Bars beside the matrix: entropy of each row on the left, mass each column receives above.
function drawMargins(pen, plan, model) {
  pen.fillStyle = pageColour("bar");
  const size = plan.cell - plan.gap;
  if (model.left) {
    const most = Math.max(...model.left, 1e-6);
    model.left.forEach((value, i) => {
      const wide = (46 * value) / most;
      pen.fillRect(
        plan.leftMargin - 10 - wide, plan.top + i * plan.rise, wide, plan.rise - plan.gap
      );
    });
    marginTitle(pen, "entropy", 0, plan.top - 10);
  }
  if (model.top) {
    const most = Math.sqrt(Math.max(...model.top, 1e-6));
    model.top.forEach((value, j) => {
      const high = (38 * Math.sqrt(value)) / most; // by root, or a sink would flatten all others
      pen.fillStyle = pageColour("bar");
      pen.fillRect(columnAt(plan, j), 44 - high, size, high);
    });
    marginTitle(pen, "received √", 0, 42);
  }
  if (model.bottom) drawCoverage(pen, plan, model.bottom);
}

function marginTitle(pen, text, x, y) {
  pen.font = `10.5px ${MAP_FONT}`;
  pen.fillStyle = pageColour("soft");
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillText(text, x, y);
}

export const OVER_COVERED = 1.5;
export const UNDER_COVERED = 0.5;

// How much each source word is looked at in all. One is even; a mark says where it is far from it.
function drawCoverage(pen, plan, received) {
  const base = plan.gridBottom + 12;
  const unit = 36 / Math.max(2, ...received);
  const size = plan.cell - plan.gap;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  received.forEach((value, j) => {
    const x = columnAt(plan, j);
    const odd = value > OVER_COVERED || value < UNDER_COVERED;
    pen.fillStyle = pageColour(odd ? "bar-strong" : "bar");
    pen.fillRect(x, base, size, Math.max(1, value * unit));
    if (plan.cell < 17) return;
    pen.fillStyle = pageColour(odd ? "ink" : "soft");
    pen.font = `${odd ? 600 : 400} 10px ${MAP_FONT}`;
    const mark = value > OVER_COVERED ? "▲" : value < UNDER_COVERED ? "▽" : "";
    const number = plan.cell >= SMALLEST_NUMBER_CELL ? value.toFixed(1) : "";
    pen.fillText(plan.cell >= 36 ? `${mark}${number}` : number || mark, x + size / 2, base + 40);
    if (number && mark && plan.cell < 36) pen.fillText(mark, x + size / 2, base + 51);
  });
  pen.strokeStyle = pageColour("soft");
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(plan.left - 6, Math.round(base + unit) + 0.5);
  pen.lineTo(plan.gridRight + 4, Math.round(base + unit) + 0.5);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = `10.5px ${MAP_FONT}`;
  pen.fillStyle = pageColour("soft");
  pen.textAlign = "right";
  pen.fillText("coverage", plan.left - 9, base);
  pen.fillText("1", plan.left - 9, Math.max(base + 12, base + unit - 5));
}

function drawFocus(pen, plan, { focus }) {
  if (!focus) return;
  pen.strokeStyle = pageColour("accent");
  pen.lineWidth = 1.5;
  const { row, column } = focus;
  const wide = plan.columns * plan.cell;
  const high = plan.rows * plan.rise;
  const half = plan.gap ? 1.5 : 0.5;
  const outline = (x, y, w, h) => pen.strokeRect(
    x - half, y - half, w + half * 2 - plan.gap, h + half * 2 - plan.gap
  );
  pen.globalAlpha = row !== null && column !== null ? 0.45 : 1;
  if (row !== null) outline(plan.left, plan.top + row * plan.rise, wide, plan.rise);
  if (column !== null) outline(columnAt(plan, column), plan.top, plan.cell, high);
  pen.globalAlpha = 1;
  if (row !== null && column !== null) {
    pen.lineWidth = 2;
    outline(columnAt(plan, column), plan.top + row * plan.rise, plan.cell, plan.rise);
  }
}

function paint(canvas, plan, model) {
  const dense = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = plan.width * dense;
  canvas.height = plan.height * dense;
  style(canvas, { width: `${plan.width}px`, height: `${plan.height}px` });
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  drawCells(pen, plan, model);
  drawMargins(pen, plan, model);
  drawLabels(pen, plan, model);
  drawFocus(pen, plan, model);
}

// A canvas that says where the pointer or the cursor is: `point({row, column})`, `choose(...)`.
export function heatmap({ label, point, choose }) {
  const canvas = el("canvas", {
    class: "heatmap", tabindex: 0, role: "img", "aria-label": label, "aria-describedby": "readout",
  });
  const root = el("div", { class: "scroller" }, canvas);
  let plan = null;
  let model = null;
  let tall = 0;
  const repaint = perFrame(() => {
    if (!model) return;
    plan = planMap({ ...model, high: tall }, root.clientWidth || 640);
    paint(canvas, plan, model);
  });
  const at = (event) => {
    const rect = canvas.getBoundingClientRect();
    return plan && placeAt(plan, event.clientX - rect.left, event.clientY - rect.top);
  };
  canvas.addEventListener("pointermove", (event) => point(at(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener(
    "click", (event) => { const place = at(event); if (place) choose?.(place); }
  );
  canvas.addEventListener("keydown", (event) => keyMove(event, model, plan, point, choose));
  new ResizeObserver(repaint).observe(root);
  return {
    root, canvas,
    draw(next) {
      model = next;
      canvas.setAttribute(
        "aria-label", `${label}: ${next.matrix.rows} rows, ${next.matrix.columns} columns`
      );
      repaint();
    },
    focus(place) { if (model) { model = { ...model, focus: place }; repaint(); } },
    // As high as this, if the cells allow.
    reach(high) {
      if (!model || tall === high) return;
      tall = high;
      repaint();
    },
    repaint,
    // How high it would be if this much were to be had.
    height: (high) => planMap({ ...model, high }, root.clientWidth || 640).height,
    model: () => model,
  };
}

function keyMove(event, model, plan, point, choose) {
  const right = plan?.lean ?? 1;
  const steps = {
    ArrowLeft: [0, -right], ArrowRight: [0, right], ArrowUp: [-1, 0], ArrowDown: [1, 0]
  };
  const place = model?.focus ?? { row: null, column: null };
  if (event.key === "Enter") choose?.(place);
  if (!(event.key in steps) || !model) return;
  event.preventDefault();
  event.stopPropagation();
  const [down, across] = steps[event.key];
  point({
    row: within((place.row ?? (down || across ? -down : 0)) + down, 0, model.matrix.rows - 1),
    column: within((place.column ?? -across) + across, 0, model.matrix.columns - 1),
  });
}

// Source above, target below, and between them ribbons as wide as the weights. What falls under the
// threshold does not vanish: it is a hatched stub on its target word.

import { el, shape, within } from "../controls/dom.js";
import { runsLeft, weightText } from "../controls/format.js";
import { fitted, svgWord, textWidth } from "./plan.js";

const FONT_SIZE = 16;
const GAPS = [15, 40]; // between words: the least, and the most when there is room
const UNIT = 26; // pixels of ribbon for a weight of one
const DEPTH = 190; // between the lines
const STUB = 26;
const LINE = 30; // height of a word when the lines stand upright
const WIDEST_WORD = 180;

// Words on a line: each gets {at, size} along it, from the right where the text runs from there.
function spread(labels, upright, gap = GAPS[0]) {
  let end = 0;
  const slots = labels.map((label) => {
    const size = upright ? LINE : Math.max(textWidth(label, FONT_SIZE, 650), UNIT);
    const at = end;
    end += size + (upright ? 0 : gap);
    return { at, size };
  });
  const long = lengthOf(slots);
  const turned = !upright && runsLeft(labels);
  return slots.map(({ at, size }) => ({ at: turned ? long - at - size : at, size }));
}

function lengthOf(slots) {
  return Math.max(0, ...slots.map(({ at, size }) => at + size));
}

function shifted(slots, by) {
  return slots.map(({ at, size }) => ({ at: at + by, size, middle: at + by + size / 2 }));
}

// Where everything lies. Lines that do not fit across the page stand upright, side by side.
function arrange(rowLabels, columnLabels, width) {
  const flat = Math.max(lengthOf(spread(rowLabels, false)), lengthOf(spread(columnLabels, false)));
  const upright = flat > width - 8;
  const most = Math.max(rowLabels.length, columnLabels.length, 2);
  const gap = within(GAPS[0] + (width - 24 - flat) / (most - 1), ...GAPS);
  const rows = spread(rowLabels, upright, gap);
  const columns = spread(columnLabels, upright, gap);
  const long = Math.max(lengthOf(rows), lengthOf(columns));
  const side = upright ? 0 : (width - long) / 2;
  const wide = Math.max(...columnLabels.map((label) => textWidth(label, FONT_SIZE, 650)), 0);
  return {
    upright,
    leads: { source: runsLeft(columnLabels) ? -1 : 1, target: runsLeft(rowLabels) ? -1 : 1 },
    rows: shifted(rows, (long - lengthOf(rows)) / 2 + side),
    columns: shifted(columns, (long - lengthOf(columns)) / 2 + side),
    from: upright ? wide + 10 : 40,
    to: upright ? Math.max(
      wide + 90,
      width - Math.max(...rowLabels.map((label) => textWidth(label, FONT_SIZE, 650))) - 16
    ) : 40 + DEPTH,
    long, width,
  };
}

// Each ribbon: {row, column, weight, source: [a, b], target: [a, b]} along the two lines.
function stack(matrix, plan, threshold) {
  const ribbons = [];
  const received = new Float32Array(matrix.columns);
  const stubs = [];
  plan.rows.forEach((slot, row) => {
    const kept = [];
    let sum = 0;
    for (let column = 0; column < matrix.columns; column++) {
      const weight = matrix.data[row * matrix.columns + column];
      sum += weight;
      if (weight >= threshold) { kept.push({ row, column, weight }); received[column] += weight; }
    }
    const shown = kept.reduce((total, { weight }) => total + weight, 0);
    const other = matrix.overlaid ? 0 : Math.max(0, sum + matrix.rest[row] - shown);
    const factor = UNIT / Math.max(1, shown + other);
    let at = slot.middle - (factor * (shown + other)) / 2;
    // In the order of the words they come from, so that they do not cross.
    kept.sort((a, b) => plan.columns[a.column].middle - plan.columns[b.column].middle);
    for (const ribbon of kept) {
      ribbon.target = [at, at + ribbon.weight * factor];
      at = ribbon.target[1];
      ribbons.push(ribbon);
    }
    stubs.push({ row, other, target: [at, at + other * factor] });
  });
  placeSources(ribbons, received, plan);
  return { ribbons, stubs };
}

function placeSources(ribbons, received, plan) {
  const ends = plan.columns.map((slot, column) => {
    const full = Math.min(received[column] * UNIT, slot.size);
    return { at: slot.middle - full / 2, factor: received[column] ? full / received[column] : 0 };
  });
  const inOrder = [...ribbons].sort((a, b) => plan.rows[a.row].middle - plan.rows[b.row].middle);
  for (const ribbon of inOrder) {
    const end = ends[ribbon.column];
    ribbon.source = [end.at, end.at + ribbon.weight * end.factor];
    end.at = ribbon.source[1];
  }
}

function band(plan, { source, target }) {
  const middle = (plan.from + plan.to) / 2;
  const p = (across, along) => (plan.upright ? `${across} ${along}` : `${along} ${across}`);
  const [a, b, c, d] = [...source, ...target].map((value) => value.toFixed(1));
  return `M${p(plan.from, a)} C${p(middle, a)} ${p(middle, c)} ${p(plan.to, c)} L${p(plan.to, d)} `
    + `C${p(middle, d)} ${p(middle, b)} ${p(plan.from, b)} Z`;
}

function stubPath(plan, [a, b]) {
  const end = plan.to - STUB;
  const p = (across, along) => (
    plan.upright ? `${across} ${along.toFixed(1)}` : `${along.toFixed(1)} ${across}`
  );
  const middle = (a + b) / 2;
  return `M${p(plan.to, a)} L${p(end + 8, a)} Q${p(end, a)} ${p(end, middle)} `
    + `Q${p(end, b)} ${p(end + 8, b)} L${p(plan.to, b)} Z`;
}

function wordNode(plan, slot, side, index, label) {
  const across = side === "source" ? plan.from : plan.to;
  const place = plan.upright
    ? {
      x: side === "source" ? across - 8 : across + 8, y: slot.middle + 5.5,
      "text-anchor": side === "source" ? "end" : "start"
    }
    : { x: slot.middle, y: side === "source" ? across - 13 : across + 25, "text-anchor": "middle" };
  const wide = textWidth(label, FONT_SIZE, 650);
  const box = plan.upright
    ? {
      x: side === "source" ? across - 12 - wide : across + 2, y: slot.at + 2, width: wide + 10,
      height: LINE - 4
    }
    : { x: slot.middle - wide / 2 - 6, y: place.y - 19, width: wide + 12, height: 27 };
  return shape("g", {
    class: "word", role: "button", tabindex: -1, "data-side": side, "data-index": index,
    "aria-label": `${side} word ${label}`,
  }, shape("rect", { ...box, rx: 5 }), svgWord(label, place));
}

function hatch() {
  return shape("defs", null, shape("pattern", {
    id: "other-hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  }, shape("rect", { width: 5, height: 5, class: "hatch-ground" }), shape(
    "line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "hatch-line" }
  )));
}

// point({side, index} | null), choose({side, index})
export function ribbons({ point, choose }) {
  const root = el("div", { class: "ribbons scroller" });
  let last = null;
  let plan = null;
  let words = { source: [], target: [] };
  const wordAt = (event) => {
    const node = event.target.closest?.(".word, .ribbon, .stub");
    if (!node) return null;
    return { side: node.dataset.side, index: Number(node.dataset.index) };
  };
  root.addEventListener("pointerover", (event) => point(wordAt(event)));
  root.addEventListener("pointerleave", () => point(null));
  root.addEventListener("focusin", (event) => point(wordAt(event)));
  root.addEventListener(
    "click", (event) => { const word = wordAt(event); if (word) choose(word); }
  );
  root.addEventListener("keydown", (event) => keys(event, words, plan, choose, wordAt));
  const draw = (model) => {
    last = model;
    const width = root.clientWidth || 900;
    const [rowLabels, columnLabels] = [model.rowLabels, model.columnLabels].map(
      (labels) => labels.map((label) => fitted(label, Math.min(WIDEST_WORD, 0.4 * width), FONT_SIZE, 650))
    );
    plan = arrange(rowLabels, columnLabels, width);
    const { drawing, found } = build(plan, { ...model, rowLabels, columnLabels });
    const held = root.contains(document.activeElement) ? wordAt(
      { target: document.activeElement }
    ) : null;
    words = found;
    root.replaceChildren(drawing);
    if (held) words[held.side][held.index]?.focus();
    light(root, model);
  };
  new ResizeObserver(() => { if (last) draw(last); }).observe(root);
  return { root, draw, light: (change) => { last = { ...last, ...change }; light(root, last); } };
}

function build(plan, model) {
  const { ribbons: bands, stubs } = stack(model.matrix, plan, model.threshold);
  const high = plan.upright ? plan.long + 8 : plan.to + 40;
  const source = plan.columns.map(
    (slot, j) => wordNode(plan, slot, "source", j, model.columnLabels[j])
  );
  const target = plan.rows.map(
    (slot, i) => wordNode(plan, slot, "target", i, model.rowLabels[i])
  );
  const first = model.focus?.side === "target" ? model.focus.index : 0;
  if (target[first] ?? target[0]) (target[first] ?? target[0]).setAttribute("tabindex", 0);
  if (source[0]) source[0].setAttribute("tabindex", 0);
  const drawing = shape("svg", {
    width: plan.width, height: high, viewBox: `0 0 ${plan.width} ${high}`, role: "group",
    "aria-label": "Flow from source words to target words",
  }, hatch(),
  shape("g", { class: "bands" }, ...bands.map((ribbon) => shape("path", {
    class: "ribbon", d: band(plan, ribbon), "data-row": ribbon.row, "data-column": ribbon.column,
    "data-side": "target", "data-index": ribbon.row,
  }, shape("title", { text: weightText(ribbon.weight) })))),
  shape("g", { class: "stubs" }, ...stubs.filter(
    ({ other }) => other > 0.005
  ).map((stub) => shape("path", {
    class: "stub", d: stubPath(
      plan, stub.target
    ), "data-row": stub.row, "data-side": "target", "data-index": stub.row,
    fill: "url(#other-hatch)",
  }, shape("title", { text: `other ${weightText(stub.other)}` })))),
  ...source, ...target);
  return { drawing, found: { source, target } };
}

// Marks what belongs to the word in focus, and dims target words not yet written.
function light(root, { focus, dimFrom = Infinity, matrix, threshold }) {
  const drawing = root.firstElementChild;
  if (!drawing) return;
  drawing.classList.toggle("focused", Boolean(focus));
  const touches = (row, column) => focus && (
    focus.side === "target" ? row === focus.index : column === focus.index
  );
  for (const node of drawing.querySelectorAll(".ribbon, .stub")) {
    const row = Number(node.dataset.row);
    const column = node.dataset.column === undefined ? -1 : Number(node.dataset.column);
    node.classList.toggle("lit", Boolean(touches(row, column)));
    node.classList.toggle("later", row >= dimFrom);
  }
  for (const node of drawing.querySelectorAll(".word")) {
    const { side, index } = node.dataset;
    const at = Number(index);
    const chosen = focus?.side === side && focus.index === at;
    const linked = focus && focus.side !== side && (side === "source"
      ? matrix.data[focus.index * matrix.columns + at] >= threshold
      : matrix.data[at * matrix.columns + focus.index] >= threshold);
    node.classList.toggle("chosen", Boolean(chosen));
    node.classList.toggle("linked", Boolean(linked));
    node.classList.toggle("later", side === "target" && at >= dimFrom);
  }
}

function keys(event, words, plan, choose, wordAt) {
  const word = wordAt(event);
  if (!word) return;
  if (event.key === "Enter") return choose(word);
  const line = words[word.side];
  const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  let next = null;
  if (across) next = line[word.index + across * (plan.upright ? 1 : plan.leads[word.side])];
  else if (event.key === "ArrowUp") next = words.source[
    Math.min(word.index, words.source.length - 1)
  ];
  else if (event.key === "ArrowDown") next = words.target[
    Math.min(word.index, words.target.length - 1)
  ];
  else return undefined;
  event.preventDefault();
  event.stopPropagation();
  next?.focus();
  return undefined;
}

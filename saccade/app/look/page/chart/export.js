// The matrix on the screen as SVG (text stays text, for papers), as PNG, as CSV and as a table.

import { inkOn, pixels, shade } from "../controls/colour.js";
import { el, shape } from "../controls/dom.js";
import { isOpen } from "./heatmap.js";
import { runsLeft, weightText } from "../controls/format.js";
import { MAP_FONT, columnAt, planMap, svgWord } from "./plan.js";

const PAPER_INK = "#14181f";
const MOST_TABLE_CELLS = 12_000;

function svgText(text, attributes) {
  return svgWord(text, { "font-size": 13, fill: PAPER_INK, ...attributes });
}

// Too many cells for a shape each: one picture, a pixel a cell.
function svgImage(plan, { matrix, scale }) {
  const canvas = el("canvas", { width: plan.columns, height: plan.rows });
  canvas.getContext("2d").putImageData(
    pixels(matrix.data, plan.rows, plan.columns, scale, "light"), 0, 0
  );
  const [width, height] = [plan.columns * plan.cell, plan.rows * plan.rise];
  const turned = plan.mirrored ? `translate(${2 * plan.left + width} 0) scale(-1 1)` : null;
  return [shape("image", {
    x: plan.left, y: plan.top, width, height, transform: turned, href: canvas.toDataURL(), preserveAspectRatio: "none",
    "image-rendering": "pixelated",
  })];
}

function svgCells(plan, model) {
  if (plan.rows * plan.columns > MOST_TABLE_CELLS) return svgImage(plan, model);
  const parts = [];
  for (let i = 0; i < plan.rows; i++) {
    for (let j = 0; j < plan.columns; j++) {
      if (!isOpen(model, i, j)) continue;
      const value = model.matrix.data[i * plan.columns + j];
      const x = columnAt(plan, j);
      const y = plan.top + i * plan.rise;
      const wide = plan.cell - plan.gap;
      const high = plan.rise - plan.gap;
      const fill = shade(value, model.scale, "light");
      parts.push(shape("rect", { x, y, width: wide, height: high, fill },
        shape(
          "title",
          { text: `${plan.rowLabels[i]} → ${plan.columnLabels[j]}: ${weightText(value, 3)}` }
        )));
      if (plan.cell >= 25 && Math.abs(value) >= 0.095) {
        parts.push(svgText(weightText(value), {
          x: x + wide / 2, y: y + high / 2 + 4, "text-anchor": "middle", "font-size": 10.5,
          fill: inkOn(value, model.scale, "light"),
        }));
      }
    }
  }
  return parts;
}

function svgLabels(plan) {
  const rows = plan.rowLabels.map((label, i) => svgText(label, {
    x: plan.left - 9, y: plan.top + (i + 0.5) * plan.rise + 4, "text-anchor": "end",
    "font-size": plan.font,
  }));
  const slanted = (label, x) => svgText(label, {
    transform: `translate(${x} ${plan.top - 8}) rotate(${(-plan.lean * plan.slant * 180) / Math.PI})`,
    "font-size": plan.font, "text-anchor": plan.mirrored ? "end" : "start",
  });
  const columns = plan.columnLabels.map(
    (label, j) => slanted(label, columnAt(plan, j) + plan.cell / 2 + 3 * plan.lean)
  );
  if (plan.otherAt !== null) columns.push(slanted("other", plan.otherAt + plan.cell / 2 + 3 * plan.lean));
  return plan.labelled ? [...rows, ...columns] : [];
}

function svgOther(plan, matrix) {
  if (plan.otherAt === null) return [];
  const size = plan.cell - plan.gap;
  return [...matrix.rest].flatMap((rest, i) => {
    const place = { x: plan.otherAt, y: plan.top + i * plan.rise, height: plan.rise - plan.gap };
    return [
      shape("rect", { ...place, width: size, fill: "none", stroke: "#c9ccd2" }),
      shape("rect", { ...place, width: size * Math.min(rest, 1), fill: "#c9ccd2" }),
    ];
  });
}

export function mapSvg(model, title) {
  const plan = planMap({ ...model, left: null, top: null, bottom: null }, 900);
  const root = shape("svg", {
    xmlns: "http://www.w3.org/2000/svg", width: plan.width, height: plan.height + 24,
    viewBox: `0 -24 ${plan.width} ${plan.height + 24}`,
    "font-family": MAP_FONT.replaceAll('"', "'"), role: "img",
  },
  shape("title", { text: title }),
  shape("rect", { y: -24, width: plan.width, height: plan.height + 24, fill: "#ffffff" }),
  svgText(title, { x: 8, y: -7, "font-size": 12, fill: "#5b6472" }),
  ...svgCells(plan, model), ...svgOther(plan, model.matrix), ...svgLabels(plan));
  return new XMLSerializer().serializeToString(root);
}

function csvField(text) {
  // A leading =, + or @ would be run as a formula by spreadsheets.
  const safe = /^[=+@\t]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function mapCsv({ matrix, rowLabels, columnLabels, other }) {
  const lines = [["", ...columnLabels, ...(other ? ["other"] : [])].map(csvField).join(",")];
  rowLabels.forEach((label, i) => {
    const values = [...matrix.data.subarray(i * matrix.columns, (i + 1) * matrix.columns)];
    if (other) values.push(matrix.rest[i]);
    lines.push([csvField(label), ...values.map((value) => value.toFixed(5))].join(","));
  });
  return `${lines.join("\n")}\n`;
}

export function mapTable({ matrix, rowLabels, columnLabels, other }, caption) {
  if (matrix.rows * matrix.columns > MOST_TABLE_CELLS) {
    return el(
      "p",
      { class: "note", text: "Too many cells for a table here: zoom in first, or copy the CSV." }
    );
  }
  const head = el("tr", null, el("td"),
    ...columnLabels.map(
      (text) => el("th", { scope: "col", text })
    ), other ? el("th", { scope: "col", text: "other" }) : null);
  const body = rowLabels.map((label, i) => el("tr", null, el("th", { scope: "row", text: label }),
    ...columnLabels.map(
      (_, j) => el("td", { text: weightText(matrix.data[i * matrix.columns + j], 3) })
    ),
    other ? el("td", { text: weightText(matrix.rest[i], 3) }) : null));
  return el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": caption },
    el(
      "table", { class: "numbers", dir: runsLeft(columnLabels) ? "rtl" : null }, el("caption", { text: caption }), el("thead", null, head),
      el("tbody", null, ...body)
    ));
}

export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "off-screen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

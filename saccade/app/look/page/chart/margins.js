// What stands around a long map: entropy of the rows, mass the columns receive, and labels.

import { tokenAt } from "../document/axis.js";
import { pageColour } from "../controls/colour.js";
import { tokenText } from "../controls/format.js";
import { drawWord } from "./heatmap.js";
import { MAP_FONT, fitted, tickStep } from "./plan.js";

export const LEFT = 118;
export const TOP = 96;
const ROOM = 74; // pixels for a word

export async function marginOf(arrays, site, name, head) {
  if (!site.arrays[name]) return null;
  const { data, shape: [heads, length] } = await arrays.get(site.arrays[name]);
  if (typeof head === "number") return data.subarray(head * length, (head + 1) * length);
  const mean = new Float32Array(length);
  for (let i = 0; i < data.length; i++) mean[i % length] += data[i] / heads;
  return mean;
}

// One number for each pixel: the highest of those that fall on it.
function binned(values, from, to, room) {
  const bars = new Float32Array(Math.max(1, Math.min(Math.floor(room), to - from)));
  for (let i = from; i < to; i++) {
    const at = Math.floor(((i - from) * bars.length) / (to - from));
    if (values[i] > bars[at]) bars[at] = values[i];
  }
  return bars;
}

export function drawLongMargins(pen, map, [r0, r1, c0, c1]) {
  pen.fillStyle = pageColour("bar");
  pen.font = `10.5px ${MAP_FONT}`;
  if (map.entropy) {
    const bars = binned(map.entropy, r0, r1, map.size);
    const most = Math.max(...bars, 1e-6);
    const high = map.size / bars.length;
    bars.forEach(
      (value, i) => pen.fillRect(
        0, TOP + i * high, (30 * value) / most, Math.max(high - (high > 3 ? 1 : 0), 0.7)
      )
    );
    pen.fillStyle = pageColour("soft");
    pen.fillText("entropy", 0, TOP - 8);
  }
  if (map.received) {
    pen.fillStyle = pageColour("bar");
    const bars = binned(map.received, c0, c1, map.size);
    const most = Math.sqrt(Math.max(...bars, 1e-6));
    const wide = map.size / bars.length;
    bars.forEach((value, i) => {
      const high = (26 * Math.sqrt(value)) / most;
      const at = map.mirrored ? map.size - (i + 1) * wide : i * wide;
      pen.fillRect(LEFT + at, 30 - high, Math.max(wide - (wide > 3 ? 1 : 0), 0.7), high);
    });
    pen.fillStyle = pageColour("soft");
    pen.fillText("received √", 0, 28);
  }
}

export function drawLongLabels(pen, map, [r0, r1, c0, c1]) {
  const rowCell = map.size / (r1 - r0);
  const columnCell = map.size / (c1 - c0);
  pen.fillStyle = pageColour(rowCell >= 11 ? "ink" : "soft");
  pen.font = `${rowCell >= 11 ? 11.5 : 10.5}px ${MAP_FONT}`;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const named = (axis, i) => fitted(tokenText(tokenAt(axis, i)), ROOM, 11.5);
  const down = rowCell >= 11 ? 1 : tickStep(r1 - r0, map.size);
  for (let t = Math.ceil(r0 / down) * down; t < r1; t += down) {
    const text = rowCell >= 11 ? named(map.look.axes[map.site.rows], t) : String(t);
    drawWord(pen, text, LEFT - 7, TOP + (t - r0 + 0.5) * rowCell);
  }
  const across = columnCell >= 11 ? 1 : tickStep(c1 - c0, map.size);
  pen.fillStyle = pageColour(columnCell >= 11 ? "ink" : "soft");
  for (let s = Math.ceil(c0 / across) * across; s < c1; s += across) {
    const text = columnCell >= 11 ? named(map.look.axes[map.site.columns], s) : String(s);
    const lean = map.mirrored ? -1 : 1;
    const along = (s - c0 + 0.5) * columnCell;
    pen.save();
    pen.translate(LEFT + (map.mirrored ? map.size - along : along), TOP - 7);
    if (columnCell >= 11) pen.rotate((-lean * Math.PI) / 3.2);
    pen.textAlign = columnCell >= 11 ? (map.mirrored ? "right" : "left") : "center";
    drawWord(pen, text, 0, columnCell >= 11 ? 0 : -3);
    pen.restore();
  }
}

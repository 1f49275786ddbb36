// Objects on an image: their boxes, and what each looked at in its own colour.

import { SHADE, stretchOver, twice } from "../image/paint.js";
import { smoothed } from "../image/maps.js";
import { colourParts, inkOnColour } from "./colours.js";
import { el } from "../controls/dom.js";
import { MAP_FONT, textWidth } from "../chart/plan.js";

const LABELLED = 240; // pixels across, from which on boxes have labels
const THROUGH = 0.88; // of the opacity that is set: the image is to be seen through colours

// colour = Σ l² c / Σ l², brightness = max l; l is how much light of each map falls there.
export function drawLights(pen, maps, colours, { cells, opacity }, wide, high) {
  if (maps.length === 0) return;
  const { grid } = maps[0];
  const fine = maps.map((map) => (cells
    ? { data: map.data, width: grid.width, height: grid.height } : smoothed(map)));
  const most = fine.map(({ data }) => Math.max(...data, 1e-9));
  const inks = colours.map(colourParts);
  const { width, height } = fine[0];
  const pixels = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    let [sum, bright] = [1e-9, 0];
    const mixed = [0, 0, 0];
    fine.forEach(({ data }, n) => {
      const light = Math.min(Math.max(data[i] / most[n], 0), 1);
      sum += light ** 2;
      bright = Math.max(bright, light);
      inks[n].forEach((part, c) => { mixed[c] += light ** 2 * part; });
    });
    pixels.data.set(SHADE.map((dark, c) => dark + bright * (mixed[c] / sum - dark)), 4 * i);
    pixels.data[4 * i + 3] = Math.round(255 * THROUGH * opacity);
  }
  const canvas = el("canvas", { width, height });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  stretchOver(pen, canvas, grid, cells, wide, high);
}

function meets(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

// Above the box, else within it or below: the first place that no other label has.
function tagPlace([left, top, , bottom], room, wide, high, taken) {
  const x = Math.max(0, Math.min(left, wide - room));
  const places = [top - 19, top, bottom - 19, bottom].filter((y) => y >= 0 && y <= high - 18)
    .map((y) => [x, y, x + room, y + 18]);
  return places.find((place) => !taken.some((other) => meets(place, other)))
    ?? places[0] ?? [x, 0, x + room, 18];
}

// boxes: [{box, label, colour, strong, dashed, quiet}]
export function drawObjectBoxes(pen, boxes, wide, high) {
  const scaled = boxes.map((one) => {
    const [left, top, right, bottom] = one.box;
    return { ...one, at: [left * wide, top * high, right * wide, bottom * high] };
  });
  for (const { at, colour, strong, dashed, quiet } of [...scaled].reverse()) {
    const [left, top, right, bottom] = at;
    pen.save();
    pen.globalAlpha = quiet ? 0.45 : 1;
    if (dashed) pen.setLineDash([6, 4]);
    const line = (wide < LABELLED ? 1.4 : 2) + (strong ? 1.5 : 0);
    twice(pen, () => pen.strokeRect(left, top, right - left, bottom - top), colour, line);
    pen.restore();
  }
  if (wide < LABELLED) return;
  const taken = [];
  pen.font = `12px ${MAP_FONT}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const { at, label, colour, quiet } of scaled) {
    if (!label || quiet) continue;
    const place = tagPlace(at, textWidth(label, 12) + 10, wide, high, taken);
    taken.push(place);
    pen.fillStyle = colour;
    pen.fillRect(place[0], place[1], place[2] - place[0], 18);
    pen.fillStyle = inkOnColour(colour);
    pen.fillText(label, place[0] + 5, place[1] + 9.5);
  }
}

// A cross where a point was chosen.
export function drawPoint(pen, [x, y], wide, high) {
  const [across, down] = [x * wide, y * high];
  twice(pen, () => {
    pen.beginPath();
    pen.moveTo(across - 8, down);
    pen.lineTo(across + 8, down);
    pen.moveTo(across, down - 8);
    pen.lineTo(across, down + 8);
    pen.stroke();
  }, "#ffffff", 2.5);
}

// An image with attention laid over it, on a canvas: what was not looked at lies in the shade, or
// what was glows.

import { bordersOf, boxOf, holds, middleOf, peakOf, smoothed } from "./maps.js";
import { pageColour } from "../controls/colour.js";
import { el } from "../controls/dom.js";
import { MAP_FONT, textWidth } from "../chart/plan.js";

// Even steps of lightness, readable by the colour-blind.
const GLOW = [[59, 15, 112], [140, 41, 129], [222, 73, 104], [254, 159, 109], [252, 253, 191]];
export const SHADE = [9, 11, 16];
const TALLEST = 2; // times its width; what is taller is drawn narrower

export async function loadImage(source) {
  const image = new Image();
  image.src = source.startsWith("data:image/") ? source : "data:,";
  await image.decode();
  return image;
}

function glow(place) {
  const at = place * (GLOW.length - 1);
  const low = Math.min(Math.floor(at), GLOW.length - 2);
  return GLOW[low].map((part, c) => part + (at - low) * (GLOW[low + 1][c] - part));
}

// The overlay, a pixel for each place of a map: the heaviest is 1.
function veil(fine, { how, opacity }) {
  const most = Math.max(...fine.data, 1e-9);
  const pixels = new ImageData(fine.width, fine.height);
  fine.data.forEach((weight, i) => {
    const share = Math.min(Math.max(weight / most, 0), 1);
    const colour = how === "glow" ? glow(share) : SHADE;
    pixels.data.set(colour, 4 * i);
    const cover = how === "glow" ? Math.min(1, 0.12 + 1.1 * share) : 1 - share;
    pixels.data[4 * i + 3] = Math.round(255 * opacity * cover);
  });
  const canvas = el("canvas", { width: fine.width, height: fine.height });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function drawVeil(pen, map, look, wide, high) {
  const { data, grid } = map;
  const fine = look.cells ? { data, width: grid.width, height: grid.height } : smoothed(map);
  stretchOver(pen, veil(fine, look), grid, look.cells, wide, high);
}

// Over the whole image, smooth; or cell by cell, each as far as it is the nearest.
export function stretchOver(pen, pixels, grid, cells, wide, high) {
  pen.imageSmoothingEnabled = !cells;
  if (!cells) {
    pen.drawImage(pixels, 0, 0, wide, high);
    return;
  }
  const [across, down] = [bordersOf(grid.across), bordersOf(grid.down)].map(
    (borders, way) => borders.map((share) => Math.round(share * (way ? high : wide)))
  );
  for (let y = 0; y < grid.height; y++) {
    for (let x = 0; x < grid.width; x++) {
      const size = [across[x + 1] - across[x], down[y + 1] - down[y]];
      pen.drawImage(pixels, x, y, 1, 1, across[x], down[y], ...size);
    }
  }
}

// Light on dark, so that it can be seen on any image.
export function twice(pen, draw, colour, width) {
  pen.strokeStyle = "rgb(0 0 0 / 0.65)";
  pen.lineWidth = width + 2;
  draw();
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  draw();
}

function drawGridLines(pen, grid, wide, high) {
  pen.strokeStyle = "rgb(255 255 255 / 0.14)";
  pen.lineWidth = 1;
  pen.beginPath();
  for (const share of bordersOf(grid.across).slice(1, -1)) {
    const at = Math.round(share * wide) + 0.5;
    pen.moveTo(at, 0);
    pen.lineTo(at, high);
  }
  for (const share of bordersOf(grid.down).slice(1, -1)) {
    const at = Math.round(share * high) + 0.5;
    pen.moveTo(0, at);
    pen.lineTo(wide, at);
  }
  pen.stroke();
}

export function drawCell(pen, cell, grid, wide, high, colour, width = 2) {
  const [left, top, right, bottom] = boxOf(cell, grid);
  const size = [(right - left) * wide - 2, (bottom - top) * high - 2];
  twice(pen, () => pen.strokeRect(left * wide + 1, top * high + 1, ...size), colour, width);
}

function drawPeak(pen, cell, grid, wide, high) {
  const [x, y] = middleOf(cell, grid);
  const radius = Math.max(3, Math.min(wide / grid.width, high / grid.height, 44) * 0.2);
  const ring = () => {
    pen.beginPath();
    pen.arc(x * wide, y * high, radius, 0, 2 * Math.PI);
    pen.stroke();
  };
  twice(pen, ring, "#ffffff", radius > 5 ? 2 : 1.4);
}

function drawBoxes(pen, boxes, peak, grid, wide, high) {
  for (const { label, box } of boxes) {
    const [left, top, right, bottom] = box;
    const [x, y] = [left * wide, top * high];
    const hit = peak !== null && holds(box, peak, grid);
    const colour = hit ? pageColour("hit") : "rgb(255 255 255 / 0.85)";
    twice(
      pen, () => pen.strokeRect(x, y, (right - left) * wide, (bottom - top) * high), colour,
      hit ? 1.8 : 1
    );
    if (wide < 240 || !label) continue;
    const room = textWidth(label, 12) + 10;
    const [cx, cy] = [Math.min(Math.max(x, 0), wide - room), Math.max(0, y - 19)];
    pen.fillStyle = hit ? pageColour("hit") : "rgb(12 14 20 / 0.72)";
    pen.fillRect(cx, cy, room, 18);
    pen.font = `12px ${MAP_FONT}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = hit ? "#10131a" : "#ffffff";
    pen.fillText(label, cx + 5, cy + 9.5);
  }
}

// Where attention went from word to word.
function drawPath(pen, path, grid, wide, high) {
  const points = path.map((cell) => {
    const [x, y] = middleOf(cell, grid);
    return [x * wide, y * high];
  });
  const line = () => {
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  };
  pen.lineJoin = "round";
  twice(pen, line, "rgb(255 255 255 / 0.9)", 1.5);
  for (const [x, y] of points) {
    pen.beginPath();
    pen.arc(x, y, 3.2, 0, 2 * Math.PI);
    pen.fillStyle = "#ffffff";
    pen.fill();
  }
}

// look: {how, cells, opacity, boxes, path, hard, marked}; `map` may be null.
export function paintImage(canvas, image, map, look, side) {
  const dense = Math.min(window.devicePixelRatio || 1, 2);
  const tall = image.naturalHeight / image.naturalWidth;
  const wide = Math.max(1, Math.round(Math.min(side, (TALLEST * side) / tall)));
  const high = Math.max(1, Math.round(wide * tall));
  canvas.style.width = wide < side ? `${wide}px` : "";
  canvas.width = Math.round(wide * dense);
  canvas.height = Math.round(high * dense);
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, wide, high);
  const peak = map ? peakOf(map) : null;
  const sees = peak !== null && peak.weight > 0;
  if (sees) {
    drawVeil(pen, map, look, wide, high);
    if (look.cells && wide >= 160) drawGridLines(pen, map.grid, wide, high);
  }
  if (look.boxes?.length) drawBoxes(pen, look.boxes, sees ? peak.cell : null, map?.grid, wide, high);
  if (look.path?.length > 1) drawPath(pen, look.path, map.grid, wide, high);
  if (sees && look.hard) drawCell(pen, peak.cell, map.grid, wide, high, "#ffffff");
  else if (sees && look.peak !== false) drawPeak(pen, peak.cell, map.grid, wide, high);
  if (look.marked !== null && look.marked !== undefined && map) {
    drawCell(pen, look.marked, map.grid, wide, high, pageColour("mark"), 2.5);
  }
  return { pen, wide, high };
}

// Where the pointer is, [x, y] in shares of the image; null outside.
export function pointerPlace(event, canvas) {
  const rect = canvas.getBoundingClientRect();
  const x = (event.clientX - rect.left) / rect.width;
  const y = (event.clientY - rect.top) / rect.height;
  return x >= 0 && y >= 0 && x < 1 && y < 1 ? [x, y] : null;
}

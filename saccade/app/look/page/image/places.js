// What a map on an image falls on: which ninths of it, and which boxes.

import { holds, massIn, peakOf, placesOf } from "./maps.js";
import { el } from "../controls/dom.js";
import { weightText } from "../controls/format.js";

// [[name, share, hit, other]], each with a bar.
export function bars(entries, label) {
  return el("ol", { class: "places", "aria-label": label },
    ...entries.map(([name, mass, hit, other]) => el("li", { class: hit ? "hit" : null },
      el("span", { class: "place-name", text: name }),
      el("span", { class: "meter" }, el("span", {
        class: other ? "fill hatched" : "fill", css: { width: `${Math.min(100, 100 * mass)}%` },
      })),
      el("span", { class: "number", text: weightText(mass) }))));
}

// Shares of a map by ninths of the image; what is left is always said.
export function placeBars(map, label = "Where it looks") {
  const places = placesOf(map);
  const kept = places.slice(0, 4).filter(([, mass], i) => i === 0 || mass >= 0.02);
  const other = 1 - kept.reduce((sum, [, mass]) => sum + mass, 0);
  const rest = other > 0.005 ? [["elsewhere", other, false, true]] : [];
  return bars([...kept, ...rest], label);
}

export function boxBars(map, boxes) {
  const { cell } = peakOf(map);
  const entries = boxes.map(({ label, box }) => [
    label || "box", massIn(map, box), holds(box, cell, map.grid),
  ]);
  return bars(entries.sort((a, b) => b[1] - a[1]), "How much falls into each box");
}

export function cellName(cell, grid) {
  return `row ${Math.floor(cell / grid.width) + 1}, column ${(cell % grid.width) + 1}`;
}

// The same in one line, for the foot of the page and for readers.
export function placeLine(map, boxes) {
  const { cell } = peakOf(map);
  const places = placesOf(map).slice(0, 3).filter(([, mass], i) => i === 0 || mass >= 0.05);
  const other = 1 - places.reduce((sum, [, mass]) => sum + mass, 0);
  const parts = places.map(([name, mass]) => `${name} ${weightText(mass)}`);
  if (other >= 0.005) parts.push(`other ${weightText(other)}`);
  const hit = boxes.filter(({ box }) => holds(box, cell, map.grid)).map(({ label: name }) => name);
  return parts.join(", ") + (hit.length ? `; its peak is on ${hit.join(" and ")}` : "");
}

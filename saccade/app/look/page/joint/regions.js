// The regions of an image that a text is about: as a map of weights over the image, which of them
// lies under the pointer, and as a list.

import { objectColour } from "../detection/colours.js";
import { cellUnder } from "../image/maps.js";
import { rove } from "../controls/controls.js";
import { el, style } from "../controls/dom.js";
import { percentText, weightText } from "../controls/format.js";

const FINE_SIDE = 64; // cells to a side of the map that boxes are drawn on
const MOST_CELLS_LISTED = 8;

const fineGrid = (() => {
  const middles = Array.from({ length: FINE_SIDE }, (_, i) => (i + 0.5) / FINE_SIDE);
  return { height: FINE_SIDE, width: FINE_SIDE, down: middles, across: middles, special: 0 };
})();

export function gridOf(look) {
  return look.axes.regions.grid ?? null;
}

export function regionColour(look, number) {
  return number === 0 || gridOf(look) ? "#ffffff" : objectColour(number - 1);
}

export function regionName(look, number) {
  const name = look.axes.regions.tokens[number].trim();
  if (!gridOf(look) || number === 0) return name;
  const [row, column] = name.split(",").map(Number);
  return `row ${row + 1}, column ${column + 1}`;
}

// Weights of all regions as a map: boxes that lie over one another show the heaviest. What falls on
// the whole image lies nowhere in particular, and is left out.
export function regionMap(look, weights) {
  const grid = gridOf(look);
  if (grid) return { data: Float32Array.from(weights).subarray(grid.special), grid };
  const data = new Float32Array(FINE_SIDE * FINE_SIDE);
  look.regions.boxes.forEach(([left, top, right, bottom], n) => {
    if (n === 0) return;
    for (let y = 0; y < FINE_SIDE; y++) {
      if (fineGrid.down[y] < top || fineGrid.down[y] > bottom) continue;
      for (let x = 0; x < FINE_SIDE; x++) {
        if (fineGrid.across[x] < left || fineGrid.across[x] > right) continue;
        const at = y * FINE_SIDE + x;
        data[at] = Math.max(data[at], weights[n]);
      }
    }
  });
  return { data, grid: fineGrid };
}

// The smallest box around a place, or its cell; null outside of all.
export function regionUnder(look, place) {
  const grid = gridOf(look);
  if (grid) return grid.special + cellUnder(place, grid);
  const [x, y] = place;
  const size = ([left, top, right, bottom]) => (right - left) * (bottom - top);
  const around = look.regions.boxes.map((box, number) => ({ box, number })).slice(1).filter(
    ({ box: [left, top, right, bottom] }) => x >= left && x <= right && y >= top && y <= bottom
  );
  return around.sort((a, b) => size(a.box) - size(b.box))[0]?.number ?? null;
}

// How much less likely what was said would be without each region; below 0 more likely.
export function lossesOf({ regions: { without, with_all: all } }) {
  return without.map((p) => all - p);
}

// Boxes in their order; of cells the whole image and those that count most.
function listedRegions(look) {
  const { boxes } = look.regions;
  const numbers = boxes.map((_, number) => number);
  if (!gridOf(look)) return numbers;
  const losses = lossesOf(look);
  if (losses.length === 0) return [0];
  const most = numbers.slice(1).sort((a, b) => losses[b] - losses[a]).slice(0, MOST_CELLS_LISTED);
  return [0, ...most];
}

function signedText(difference) {
  const points = Math.round(1000 * difference) / 10;
  return `${points > 0 ? "+" : points < 0 ? "−" : "±"}${Math.abs(points).toFixed(1)}`;
}

export class RegionList {
  // choose(number or null), hover(number or null)
  constructor({ look, state, choose, hover }) {
    Object.assign(this, { look, state, choose, hover });
    this.numbers = listedRegions(look);
    this.buttons = this.numbers.map((number) => this.#item(number));
    this.list = el("ol", { class: "region-list", "aria-label": "Regions" },
      ...this.buttons.map((one) => el("li", null, one)));
    this.list.addEventListener("keydown", (event) => this.keys?.(event));
    const { without, chances } = look.regions;
    const head = el("div", { class: "region-head", "aria-hidden": "true" },
      el("span"), el("span", { text: "region" }), el("span", { text: "looked at" }), el("span"),
      chances.length ? el("span", { text: "meant" }) : null,
      without.length ? el("span", { text: "without it" }) : null);
    this.root = el("div", {
      class: `region-part${chances.length ? " chances" : ""}${without.length ? " without" : ""}`,
    }, head, this.list);
    this.mark();
  }

  #item(number) {
    const { look } = this;
    const { without, chances, with_all: all } = look.regions;
    const name = regionName(look, number);
    return el("button", {
      type: "button", class: "region-item", "data-number": number,
      on: {
        click: () => this.choose(this.state.get("found") === number ? null : number),
        pointerenter: () => this.hover(number), pointerleave: () => this.hover(null),
        focus: () => this.hover(number), blur: () => this.hover(null),
      },
    }, this.#swatch(number),
    el("span", { class: "region-name", dir: "auto", text: name, title: name }),
    el("span", { class: "meter" }, el("span", { class: "fill" })),
    el("span", { class: "number looked" }),
    chances.length ? el("span", { class: "number", text: percentText(chances[number]) }) : null,
    without.length ? el("span", { class: "number lost" }, percentText(without[number]),
      el("span", { class: "note", text: ` ${signedText(without[number] - all)}` })) : null);
  }

  // Cells have no colours of their own.
  #swatch(number) {
    if (number === 0 || gridOf(this.look)) return el("span", { class: "swatch hollow" });
    return el("span", { class: "swatch", css: { background: regionColour(this.look, number) } });
  }

  // `weights`: how much is looked at each region; null where words are what is looked at.
  tell(weights) {
    this.buttons.forEach((node, i) => {
      const weight = weights?.[this.numbers[i]] ?? 0;
      style(node.querySelector(".fill"), { width: `${Math.min(100, 100 * weight)}%` });
      node.querySelector(".looked").textContent = weights ? weightText(weight) : "";
    });
  }

  mark() {
    const at = this.numbers.indexOf(this.state.get("found"));
    this.buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === at)));
    this.keys = rove(() => this.buttons, { chosen: Math.max(0, at) });
  }
}

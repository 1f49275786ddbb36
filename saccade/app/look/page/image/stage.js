// The image in large: says which cell the pointer or the cursor is on.

import { cellUnder, middleOf } from "./maps.js";
import { paintImage, pointerPlace } from "./paint.js";
import { el, perFrame, within } from "../controls/dom.js";

const LARGEST = 620;

export class ImageStage {
  // point(cell or null, place), choose(cell, place): the place is [x, y] in shares of the image.
  constructor({ label, point, choose }) {
    Object.assign(this, { label, choose });
    this.point = (cell, place = null) => { this.under = cell; point(cell, place); };
    this.under = null;
    this.canvas = el("canvas", {
      class: "stage-canvas", tabindex: 0, role: "img", "aria-label": label,
      "aria-describedby": "readout",
    });
    this.root = el("div", { class: "stage" }, this.canvas);
    this.repaint = perFrame(() => this.#paint());
    this.canvas.addEventListener("pointermove", (event) => this.#move(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => {
      const [cell, place] = this.#at(event);
      if (cell !== null) choose(cell, place);
    });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(this.repaint).observe(this.root);
  }

  // model: {image, map, look, grid, words}, and where more is drawn, over({pen, wide, high}).
  draw(model) {
    this.model = model;
    this.canvas.setAttribute("aria-label", `${this.label}: ${model.words}`);
    this.repaint();
  }

  #paint() {
    if (!this.model) return;
    const { image, map, look, over } = this.model;
    const side = Math.round(Math.min(this.root.clientWidth || LARGEST, LARGEST));
    const drawn = paintImage(this.canvas, image, map, look, side);
    over?.(drawn);
  }

  #at(event) {
    const place = this.model?.grid ? pointerPlace(event, this.canvas) : null;
    return [place && cellUnder(place, this.model.grid), place];
  }

  #move(event) {
    const [cell, place] = this.#at(event);
    if (cell !== this.under || this.model?.over) this.point(cell, place);
  }

  #key(event) {
    const grid = this.model?.grid;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!grid) return;
    if (event.key === "Enter" && this.under !== null) {
      this.choose(this.under, middleOf(this.under, grid));
    }
    else if (event.key in steps) {
      const [dx, dy] = steps[event.key];
      const from = this.under ?? Math.floor(grid.height / 2) * grid.width + (grid.width >> 1);
      const x = within((from % grid.width) + dx, 0, grid.width - 1);
      const y = within(Math.floor(from / grid.width) + dy, 0, grid.height - 1);
      const cell = y * grid.width + x;
      this.point(cell, middleOf(cell, grid));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// What each layer may look at of an image as the code of a cell is chosen, drawn small.

import { pageColour } from "../controls/colour.js";
import { el, perFrame } from "../controls/dom.js";

const MASK_SIDE = 88;

export class LayerMasks {
  // choose(site): a layer was chosen.
  constructor({ arrays, look, grid, choose }) {
    Object.assign(this, { arrays, look, grid });
    this.row = null;
    this.parts = look.sites.map((site) => {
      const canvas = el("canvas", { class: "mask-canvas", "aria-hidden": "true" });
      const kind = look.drawn.sees[site.name];
      const node = el("button", {
        type: "button", class: "tile mask", "data-site": site.name, on: { click: () => choose(site) },
        "aria-label": `${site.name} sees its ${kind}`,
      }, canvas, el("span", { class: "tile-name", text: site.name.replace(/\.self$/, "") }),
        el("span", { class: "trait", text: kind }));
      return { site, kind, canvas, node };
    });
    this.root = el("div", { class: "masks" }, ...this.parts.map(({ node }) => node));
    this.repaint = perFrame(() => this.#paint());
  }

  async load() {
    const { masks } = this.look.drawn;
    const opened = Object.entries(masks).map(async ([kind, ref]) => [kind, await this.arrays.get(ref)]);
    this.masks = Object.fromEntries(await Promise.all(opened));
  }

  // Of the cell `row`; null shows none.
  show(row, site) {
    this.row = row;
    for (const { node, site: own } of this.parts) {
      node.setAttribute("aria-pressed", String(own.name === site));
    }
    this.repaint();
  }

  #paint() {
    if (!this.masks) return;
    const { width, height } = this.grid;
    const cells = width * height;
    const colours = { free: pageColour("hush"), seen: pageColour("soft"), own: pageColour("mark") };
    for (const { kind, canvas } of this.parts) {
      const { data } = this.masks[kind];
      canvas.width = canvas.height = MASK_SIDE * 2;
      const pen = canvas.getContext("2d");
      const [w, h] = [canvas.width / width, canvas.height / height];
      for (let cell = 0; cell < cells; cell++) {
        const seen = this.row !== null && data[this.row * cells + cell] > 0.5;
        pen.fillStyle = cell === this.row ? colours.own : seen ? colours.seen : colours.free;
        const [x, y] = [(cell % width) * w, Math.floor(cell / width) * h];
        pen.fillRect(x + 0.5, y + 0.5, w - 1, h - 1);
      }
    }
  }
}

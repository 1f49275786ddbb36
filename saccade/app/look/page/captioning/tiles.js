// A small picture for each layer and head, all for the same word or the same patch.

import { headMatrix, sitesMatrix } from "../document/attention.js";
import { meanMap, peakOf, placeName } from "./maps.js";
import { paintImage } from "./paint.js";
import { el, perFrame } from "../controls/dom.js";
import { weightText } from "../controls/format.js";

const TILE = 84;

// Matrices of single heads and of means over them, each made once.
export class MapSource {
  constructor(arrays, look) {
    Object.assign(this, { arrays, look });
    this.known = new Map();
  }

  matrix(sites, head) {
    const key = `${sites.map(({ name }) => name).join(" ")}/${head}`;
    if (!this.known.has(key)) {
      const { arrays, look } = this;
      this.known.set(key, typeof head === "number" ? headMatrix(arrays, look, sites[0], head)
        : sitesMatrix(arrays, look, sites, head));
    }
    return this.known.get(key);
  }
}

export class ImageTiles {
  // choose(site, head); title(site, head) names a tile for readers.
  constructor({ source, sites, choose }) {
    Object.assign(this, { source, sites, choose });
    this.tiles = sites.flatMap((site) =>
      Array.from({ length: site.heads }, (_, head) => this.#tile(site, head)));
    const rows = sites.map((site) => el("div", { class: "layer" },
      el("h3", { text: site.name.replace(/^eye\.(encoder\.)*/, "eye ") }),
      el(
        "div", { class: "layer-heads" },
        ...this.tiles.filter((tile) => tile.site === site).map(({ node }) => node)
      )));
    const most = Math.max(...sites.map(({ heads }) => heads));
    this.root = el("div", { class: "heads picture-heads", css: { "--heads": most } }, ...rows);
    this.repaint = perFrame(() => this.#paint());
  }

  #tile(site, head) {
    const canvas = el("canvas", { class: "picture-thumb", "aria-hidden": "true" });
    const trait = el("span", { class: "trait" });
    const name = site.derived ? "all layers" : `head ${head}`;
    const node = el("button", {
      type: "button", class: "tile", on: { click: () => this.choose(site, head) },
      "data-site": site.name, "data-head": head,
    }, canvas, el("span", { class: "tile-name", text: name }), trait);
    return { site, head, canvas, trait, node, name };
  }

  // Pieces from … to of the rows' side; `grid` is that of the columns' side.
  async show({ image, from, to, grid, look }) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const matrices = await Promise.all(
      this.tiles.map(({ site, head }) => this.source.matrix([site], head))
    );
    if (turn !== this.turn) return;
    this.tiles.forEach((tile, i) => {
      tile.map = matrices[i] && meanMap(matrices[i], from, to, grid);
    });
    this.model = { image, look: { ...look, boxes: null, path: null, peak: false } };
    this.repaint();
  }

  mark(site, head) {
    for (const tile of this.tiles) {
      const on = tile.site.name === site && tile.head === head;
      tile.node.setAttribute("aria-pressed", String(on));
    }
  }

  #paint() {
    if (!this.model) return;
    for (const { site, canvas, trait, map, node, name } of this.tiles) {
      if (!map) continue;
      paintImage(canvas, this.model.image, map, this.model.look, TILE);
      const { cell, weight } = peakOf(map);
      trait.textContent = `${weightText(weight)} ${placeName(cell, map.grid)}`;
      node.setAttribute("aria-label", `${site.name} ${name}: ${trait.textContent}`);
    }
  }
}

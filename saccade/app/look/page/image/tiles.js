// A small image for each layer and head, all for the same word, patch or class.

import { headMatrix, sitesMatrix } from "../document/attention.js";
import { meanMap, peakOf, placeName } from "./maps.js";
import { paintImage } from "./paint.js";
import { el, perFrame } from "../controls/dom.js";
import { weightText } from "../controls/format.js";

const TILE = 84;

function shortName({ name }) {
  return name.replace(/^image_encoder\.(encoder\.)*/, "encoder ");
}

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
  // choose(site, head). `rows` are what stands in a line, [[title, sites]]; else a site in each.
  constructor({ source, sites, choose, rows }) {
    Object.assign(this, { source, choose });
    const lines = rows ?? sites.map((site) => [shortName(site), [site]]);
    this.tiles = [];
    const nodes = lines.map(([title, some]) => {
      const tiles = some.flatMap((site) => Array.from(
        { length: site.heads }, (_, head) => this.#tile(site, head, some.length > 1)
      ));
      this.tiles.push(...tiles);
      return el("div", { class: "layer" }, el("h3", { text: title }),
        el("div", { class: "layer-heads" }, ...tiles.map(({ node }) => node)));
    });
    const most = Math.max(...nodes.map((node) => node.lastChild.childElementCount));
    this.root = el("div", { class: "heads image-heads", css: { "--heads": most } }, ...nodes);
    this.repaint = perFrame(() => this.#paint());
  }

  #tile(site, head, named) {
    const canvas = el("canvas", { class: "image-thumb", "aria-hidden": "true" });
    const trait = el("span", { class: "trait" });
    const name = named ? site.name : site.derived ? "all layers" : `head ${head}`;
    const node = el("button", {
      type: "button", class: "tile", on: { click: () => this.choose(site, head) },
      "data-site": site.name, "data-head": head,
    }, canvas, el("span", { class: "tile-name", text: name }), trait);
    return { site, head, canvas, trait, node, name };
  }

  // Pieces from … to of the rows' side.
  async show({ image, from, to, look }) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const matrices = await Promise.all(
      this.tiles.map(({ site, head }) => this.source.matrix([site], head))
    );
    if (turn !== this.turn) return;
    this.tiles.forEach((tile, i) => {
      const { grid } = this.source.look.axes[tile.site.columns];
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
      trait.textContent = `${weightText(weight, weight < 0.01 ? 3 : 2)} ${placeName(cell, map.grid)}`;
      node.setAttribute("aria-label", `${site.name} ${name}: ${trait.textContent}`);
    }
  }
}

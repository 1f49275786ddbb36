// How the image encoder itself looks: a Vision Transformer's patches at one another, head by head, and
// through all layers at once.

import { ImageStage } from "../image/stage.js";
import { meanMap, peakOf, placeName, placesOf } from "../image/maps.js";
import { cellName } from "../image/places.js";
import { ImageTiles } from "../image/tiles.js";
import { veilOf } from "../image/veil.js";
import { badge, button, card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { weightText } from "../controls/format.js";

// Sites whose rows and columns are cells of the image, what sums them up first.
export function encoderSites(look) {
  const sites = look.sites.filter(
    (site) => site.rows === site.columns && look.axes[site.rows]?.kind === "grid"
  );
  return sites.sort((a, b) => Number(b.derived) - Number(a.derived));
}

export class EncoderPanel {
  constructor({ look, source, state, foot }) {
    Object.assign(this, { look, source, state, foot });
    this.sites = encoderSites(look);
    this.axis = look.axes[this.sites[0].rows];
    this.grid = this.axis.grid;
    this.stage = new ImageStage({
      label: "Where a patch looks", point: (cell) => this.#point(cell),
      choose: (cell) => state.set({ patch: cell }),
    });
    this.tiles = new ImageTiles({
      source, sites: this.sites,
      choose: (site, head) => state.set({ encoder: `${site.name}/${head}` }),
    });
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.whole = button("Class token", () => state.set({ patch: -1 }), {
      class: "button", "aria-pressed": "false",
    });
    this.whole.hidden = !this.grid.special;
    this.root = card("How the image encoder looks", {
      id: "encoder", tools: [this.whole],
      note: "Choose a patch of the image to see what it reads. “Rollout” follows attention "
        + "through all layers.",
    }, el("div", { class: "encoder-body" },
      el("div", { class: "encoder-stage" }, this.stage.root,
        el("div", { class: "caption" }, this.title, this.badge)), this.tiles.root));
  }

  #picked() {
    const [name, head] = String(this.state.get("encoder") ?? "").split("/");
    const site = this.sites.find((one) => one.name === name)
      ?? this.sites.find(({ derived }) => derived) ?? this.sites.at(-1);
    return { site, head: Number(head) < site.heads ? Number(head) : 0 };
  }

  // −1 is the class token; without one, the patch in the middle stands in.
  #patch() {
    const chosen = this.state.get("patch");
    if (chosen >= 0 && chosen < this.grid.height * this.grid.width) return chosen;
    if (this.grid.special) return -1;
    return Math.floor(this.grid.height / 2) * this.grid.width + Math.floor(this.grid.width / 2);
  }

  async draw(image) {
    this.image = image ?? this.image;
    const { site, head } = this.#picked();
    const patch = this.#patch();
    const row = patch < 0 ? 0 : patch + this.grid.special;
    const matrix = await this.source.matrix([site], head);
    if (!matrix || !this.image) return;
    this.map = meanMap(matrix, row, row + 1, this.grid);
    const look = veilOf(this.state, { marked: patch < 0 ? null : patch });
    const words = this.#words(patch);
    this.stage.draw({ image: this.image, map: this.map, look, grid: this.grid, words });
    this.title.textContent = `${site.derived ? "rollout" : `${site.name} head ${head}`}: ${words}`;
    this.badge.show(matrix.exactness);
    this.whole.setAttribute("aria-pressed", String(patch < 0));
    this.tiles.mark(site.name, head);
    const shown = { image: this.image, from: row, to: row + 1 };
    await this.tiles.show({ ...shown, look: { ...look, marked: patch < 0 ? null : patch } });
  }

  #words(patch) {
    const name = patch < 0 ? "the class token" : `the patch at ${cellName(patch, this.grid)}`;
    const { cell, weight } = peakOf(this.map);
    const places = placesOf(this.map).slice(0, 2);
    const parts = places.map(([place, mass]) => `${place} ${weightText(mass)}`);
    if (this.map.aside > 0.005) parts.push(`class token ${weightText(this.map.aside)}`);
    const peak = `peak ${weightText(weight)} at ${placeName(cell, this.grid)}`;
    return `${name} looks at ${parts.join(", ")}; ${peak}`;
  }

  #point(cell) {
    if (cell === null || !this.map) return;
    this.foot.say(`${cellName(cell, this.grid)}: ${weightText(this.map.data[cell], 3)}; choose it to see what `
      + "that patch looks at.");
  }

  repaint() {
    this.stage.repaint();
    this.tiles.repaint();
  }
}

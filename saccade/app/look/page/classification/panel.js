// One run on one image: the image with a map over it, the guesses, and every other map in small.

import { chosenMap, hasAttention, isOfClass, ruleText } from "./choices.js";
import { guessList, verdictHead } from "./guesses.js";
import { cellUnder, mapAt, peakOf, placeName } from "../image/maps.js";
import { boxBars, cellName, placeBars, placeLine } from "../image/places.js";
import { ImageStage } from "../image/stage.js";
import { ImageTiles, MapSource } from "../image/tiles.js";
import { filmTools } from "../image/tools.js";
import { veilOf } from "../image/veil.js";
import { badge, card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { quoted, weightText } from "../controls/format.js";

export class ClassPanel {
  // point(panel, cell): the pointer is on a cell. `alone`: there is no other run beside it, and
  // what is chosen for both, `picks` and `under` the image, belongs to it.
  constructor({
    look, entry, state, arrays, point, alone, number, askClass = null, picks = null, under = null,
  }) {
    Object.assign(this, { look, entry, state });
    this.source = new MapSource(arrays, look);
    const label = alone ? "The image" : `The image, ${look.run}`;
    this.stage = new ImageStage({ label, point: (cell) => point(this, cell), choose: () => {} });
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.rule = el("p", { class: "note" });
    this.falls = el("div", { class: "word-host" });
    this.tools = filmTools({
      model: () => this.#table(), sheet: () => this.stage.canvas,
      title: () => `${look.run} · ${entry.name} · ${this.title.textContent}`,
    });
    const said = el("div", { class: "word-host" }, verdictHead(look), ...guessList(look, askClass));
    const about = el("div", { class: "word-part" }, said,
      el("div", { class: "caption map-name" }, this.title, this.badge), this.rule, this.falls);
    const body = el("div", { class: "stage-body" },
      el("div", { class: "stage-part" }, this.stage.root, under), about);
    this.root = card(alone ? entry.name : look.run, {
      id: `class-${number}`, tools: [picks, this.tools.bar],
    }, body, this.tools.table, this.#tilesPart());
  }

  #tilesPart() {
    if (!hasAttention(this.look) && this.look.sites.length < 2) return null;
    const whole = this.look.sites.filter(({ derived }) => derived);
    const layers = this.look.sites.filter(({ derived }) => !derived);
    const single = layers.every(({ heads }) => heads === 1);
    this.tiles = new ImageTiles({
      source: this.source, sites: this.look.sites,
      rows: [["The whole model", whole], ...(single && layers.length
        ? [["Each layer", layers]] : layers.map((site) => [site.name, [site]]))],
      choose: (site, head) => this.state.set({
        site: site.name, head: site.heads > 1 ? head : "mean",
      }),
    });
    return el("div", { class: "every-map" }, el("h3", { text: "Every map" }), this.tiles.root);
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const pick = chosenMap(this.look, this.state);
    const matrix = await this.source.matrix(pick.sites, pick.head);
    if (turn !== this.turn) return;
    const { grid } = this.look.axes[pick.sites[0].columns];
    Object.assign(this, { pick, grid, map: mapAt(matrix, 0, grid) });
    const about = isOfClass(pick) ? `What ${quoted(this.look.classes.target)} came from`
      : "Where the model looks";
    this.title.textContent = `${about}: ${pick.title}`;
    this.rule.textContent = ruleText(this.look, pick);
    this.badge.show(matrix.exactness);
    this.#fallsOn();
    this.tools.refresh();
    this.tiles?.mark(pick.sites.length === 1 ? pick.sites[0].name : "", pick.head);
  }

  #fallsOn() {
    const { boxes } = this.entry;
    const { cell, weight } = peakOf(this.map);
    const empty = "The map is empty: by this rule nothing in the image speaks for the class.";
    this.falls.replaceChildren(...(weight > 0 ? [
      el("p", { class: "note", text: `Peak ${weightText(weight, 3)} at ${placeName(cell, this.grid)} `
        + `(${cellName(cell, this.grid)} of ${this.grid.height} × ${this.grid.width}).` }),
      placeBars(this.map, "Where the map lies"),
      ...(boxes.length ? [el("h3", { text: "Falls into" }), boxBars(this.map, boxes)] : []),
    ] : [el("p", { class: "note", text: empty })]));
  }

  // `place`: where the pointer is, [x, y] in shares of the image. The line says what is there.
  draw(image, place = null, tiles = false) {
    const { entry: { boxes }, map, state } = this;
    const cell = place === null ? null : cellUnder(place, this.grid);
    const look = veilOf(state);
    const words = this.#line(cell);
    this.stage.draw({
      image, map, words, grid: this.grid,
      look: { ...look, boxes: state.get("boxes") ? boxes : null, marked: cell },
    });
    if (tiles) this.tiles?.show({ image, from: 0, to: 1, look });
    return words;
  }

  #line(cell) {
    const of = isOfClass(this.pick) ? ` of ${quoted(this.look.classes.target)}` : "";
    const name = this.pick.title + of;
    if (cell !== null) {
      return `${name}: ${weightText(this.map.data[cell], 3)} at ${cellName(cell, this.grid)}`;
    }
    const empty = !(peakOf(this.map).weight > 0);
    return `${name}: ${empty ? "nothing" : placeLine(this.map, this.entry.boxes)}`;
  }

  // The map as a table of its cells.
  #table() {
    if (!this.map) return null;
    const { height: rows, width: columns } = this.grid;
    const names = (count, word) => Array.from({ length: count }, (_, i) => `${word} ${i + 1}`);
    const rest = new Float32Array(rows);
    return {
      matrix: { rows, columns, data: this.map.data, rest }, other: false,
      rowLabels: names(rows, "row"), columnLabels: names(columns, "column"),
    };
  }

  repaint() {
    this.stage.repaint();
    this.tiles?.repaint();
  }
}

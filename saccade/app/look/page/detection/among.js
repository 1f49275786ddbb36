// How much the queries of the objects look at one another, as a small table in shades.

import { chosenLayer, layerPicker } from "./choices.js";
import { objectColour } from "./colours.js";
import { toldOf } from "./judged.js";
import { inkOn, shade } from "../controls/colour.js";
import { card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { weightText } from "../controls/format.js";

const AMONG_KEYS = ["bsite", "bhead"];

export class AmongCard {
  constructor({ look, sites, source, state, number }) {
    Object.assign(this, { look, sites, source, state });
    this.picks = layerPicker(sites, state, AMONG_KEYS, "Objects: ");
    this.host = el("div", { class: "scroller" });
    this.root = card("How the objects look at one another", {
      id: `among-${number}`, tools: [this.picks],
      note: "A row is an object that looks; what it gives to queries that found nothing is “other”.",
    }, this.host);
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.picks.refresh();
    const { site, head, title } = chosenLayer(this.sites, this.state, AMONG_KEYS);
    const matrix = await this.source.matrix([site], head);
    if (turn !== this.turn) return;
    Object.assign(this, { matrix, title });
    this.draw();
  }

  // Every query once: one may stand for several objects.
  draw() {
    if (!this.matrix) return;
    const told = toldOf(this.look, this.state);
    const rows = [...new Map(told.map((one) => [one.row, one]).reverse()).values()].sort(
      (a, b) => a.row - b.row
    );
    this.host.replaceChildren(rows.length ? this.#table(rows)
      : el("p", { class: "note", text: "No object has so high a score." }));
  }

  #table(rows) {
    const { matrix } = this;
    const name = ({ label, number }) => [
      el("span", { class: "swatch", css: { background: objectColour(number) } }), label,
    ];
    const cell = (weight) => el("td", {
      text: weightText(weight), css: { background: shade(weight, "sqrt"), color: inkOn(weight, "sqrt") },
    });
    const lines = rows.map((one) => {
      const weights = rows.map(({ row }) => matrix.data[one.row * matrix.columns + row]);
      const rest = Math.max(0, 1 - weights.reduce((sum, weight) => sum + weight, 0));
      return el("tr", null, el("th", { scope: "row" }, ...name(one)), ...weights.map(cell),
        el("td", { class: "rest", text: weightText(rest) }));
    });
    return el("table", { class: "among" }, el("caption", { text: this.title }),
      el("thead", null, el("tr", null, el("td"),
        ...rows.map((one) => el("th", { scope: "col" }, ...name(one))),
        el("th", { scope: "col", text: "other" }))),
      el("tbody", null, ...lines));
  }
}

// Two runs on one text: side by side with one cursor, and their difference where words agree.

import { cornerOf, isSelf } from "../document/attention.js";
import { sharedStart } from "../document/axis.js";
import { badge, card, segmented } from "../controls/controls.js";
import { unitMatrix } from "../chart/detail.js";
import { el } from "../controls/dom.js";
import { isolated, quoted, scoreText, weightText } from "../controls/format.js";
import { rowGaze } from "../document/gaze.js";
import { heatmap } from "../chart/heatmap.js";
import { headPicker, pickedMatrix, resolved } from "../controls/picks.js";
import { rowWords } from "../controls/readout.js";
import { mapTools } from "../chart/tools.js";

// How far two sides have the same words, from the first row and column on: {rows, columns, why},
// where `why` tells in plain words why nothing, or not all, can be subtracted.
export function sharedPart(a, b) {
  const rows = sharedStart(a.rows, b.rows);
  const columns = sharedStart(a.columns, b.columns);
  if (Boolean(a.matrix.overlaid) !== Boolean(b.matrix.overlaid)) {
    const why = "No difference is drawn: one side shows the highest of its heads, the other does not.";
    return { rows: 0, columns: 0, why };
  }
  const short = (count, side) => count < Math.max(a[side].length, b[side].length);
  const differ = ["rows", "columns"].filter((side) => short({ rows, columns }[side], side));
  if (differ.length === 0) return { rows, columns, why: "" };
  const sides = differ.join(" and the ");
  if (!rows || !columns) {
    const why = `No difference is drawn: the runs have different words along the ${sides}.`;
    return { rows: 0, columns: 0, why };
  }
  const why = ` Only the first ${rows} rows and ${columns} columns: `
    + `from there on the runs have different words along the ${sides}.`;
  return { rows, columns, why };
}

class CompareSide {
  constructor(view, look, prefix) {
    Object.assign(this, { view, look, prefix });
    const cross = look.sites.filter((site) => !isSelf(site));
    this.sites = cross.length ? cross : look.sites;
    this.picks = headPicker(this.sites, view.state, { prefix, best: cross.length > 0 });
    this.badge = badge();
    this.map = heatmap({
      label: `Attention of ${look.run}`, point: (place) => view.point(this, place),
    });
    const tables = el("div");
    this.tools = mapTools(this.map, tables, () => `${look.run} · ${this.pick?.title ?? ""}`);
    const score = look.score === null || look.score === undefined ? null : el(
      "span", { class: "note", text: `score ${scoreText(look.score)}` }
    );
    this.root = card(look.run, { id: `${prefix}run`, tools: [this.picks] },
      el("p", { class: "sentence", dir: "auto", text: look.text }),
      el(
        "div", { class: "caption" }, this.title = el("span", { class: "note" }), score, this.badge,
        this.tools.bar
      ), this.map.root, tables);
  }

  async load() {
    this.pick = await resolved(
      this.view.arrays, this.look, this.sites, this.view.state, this.prefix
    );
    const raw = await pickedMatrix(this.view.arrays, this.look, this.pick);
    if (!raw) return;
    const unit = raw.cell[0] === 1 && raw.cell[1] === 1 ? this.view.state.get("unit") : "pieces";
    Object.assign(this, unitMatrix(this.look, this.pick.sites[0], raw, unit));
    this.title.textContent = this.pick.title;
    this.badge.show(raw.exactness);
    this.draw(null);
    this.tools.refresh();
  }

  draw(focus) {
    this.map.draw({
      matrix: this.matrix, rowLabels: this.rows.map(
        ({ label }) => label
      ), columnLabels: this.columns.map(({ label }) => label),
      focus, other: this.matrix.rest.some((rest) => rest > 0.005),
    });
  }

  // The same place over there, or a place with the same words.
  matching(other, place) {
    const find = (mine, theirs, at) => {
      if (at === null) return null;
      if (theirs[at]?.label === mine[at].label) return at;
      const found = theirs.findIndex(({ label }) => label === mine[at].label);
      return found < 0 ? null : found;
    };
    const there = {
      row: find(this.rows, other.rows, place.row),
      column: find(this.columns, other.columns, place.column)
    };
    return there.row === null && there.column === null ? null : there;
  }
}

export class CompareView {
  constructor({ arrays, looks, state, foot }) {
    Object.assign(this, { arrays, state, foot });
    const runs = [...new Set(looks.map(({ run }) => run))];
    const firsts = runs.slice(0, 2).map((run) => looks.find((look) => look.run === run));
    this.sides = firsts.map((look, i) => new CompareSide(this, look, i ? "b" : "a"));
    this.unit = segmented(
      "Units", [["words", "words"], ["pieces", "pieces"]], state.get("unit"),
      (unit) => state.set({ unit })
    );
    this.difference = heatmap({ label: "Difference", point: (place) => this.point(null, place) });
    this.why = el("p", { class: "note" });
    const tables = el("div");
    this.tools = mapTools(this.difference, tables, () => `${firsts[1].run} minus ${firsts[0].run}`);
    this.legend = el(
      "div", { class: "diverging" }, el("span", { text: `more in ${firsts[0].run}` }),
      el("span", { class: "diverging-bar" }), el("span", { text: `more in ${firsts[1].run}` })
    );
    this.root = el("div", { class: "view compare" },
      el("div", { class: "row-tools" }, this.unit),
      el("div", { class: "halves" }, ...this.sides.map(({ root }) => root)),
      card(
        "Difference", { id: "difference", tools: [this.tools.bar] }, this.why, this.legend,
        this.difference.root, tables
      ));
    foot.carry();
    foot.say("Point at a cell: the same words light up on both sides.");
    this.ready = this.#load();
  }

  async #load() {
    await Promise.all(this.sides.map((side) => side.load()));
    const [a, b] = this.sides;
    if (!a.matrix || !b.matrix) return;
    const { rows, columns, why } = sharedPart(a, b);
    this.difference.root.hidden = this.legend.hidden = this.tools.bar.hidden = !rows;
    this.why.textContent = !rows ? why : `${b.look.run} minus ${a.look.run}: `
      + `blue where the second looks more, orange where the first does.${why}`;
    this.delta = null;
    if (!rows) return;
    const [mine, theirs] = [a, b].map(({ matrix }) => cornerOf(matrix, rows, columns));
    this.delta = { ...theirs, data: theirs.data.map((value, i) => value - mine.data[i]) };
    this.#drawDifference(null);
    this.tools.refresh();
  }

  #drawDifference(focus) {
    const [a] = this.sides;
    const named = (groups, count) => groups.slice(0, count).map(({ label }) => label);
    this.difference.draw({
      matrix: this.delta, rowLabels: named(a.rows, this.delta.rows),
      columnLabels: named(a.columns, this.delta.columns), focus, scale: "linear",
    });
  }

  point(from, place) {
    const [a, b] = this.sides;
    const origin = from ?? a;
    if (!a.matrix || !b.matrix) return;
    for (const side of this.sides) side.map.focus(
      place && (side === origin ? place : origin.matching(side, place))
    );
    if (this.delta) this.difference.focus(this.#within(origin, place));
    if (!place) return;
    this.foot.say(this.#words(origin, place));
  }

  // The place in the difference, which holds only what both sides share.
  #within(origin, place) {
    const { rows, columns } = this.delta;
    const there = place && origin !== this.sides[0] ? origin.matching(this.sides[0], place) : place;
    return there && there.row < rows && there.column < columns ? there : null;
  }

  #words(origin, place) {
    return this.sides.map((side) => {
      const there = side === origin ? place : origin.matching(side, place);
      if (!there || there.row === null) return `${side.look.run}: –`;
      if (there.column !== null) {
        const value = side.matrix.data[there.row * side.matrix.columns + there.column];
        const names = `${quoted(side.rows[there.row].label)} → `
          + isolated(side.columns[there.column].label);
        return `${side.look.run}: ${names} ${weightText(value)}`;
      }
      const gaze = rowGaze(side.matrix, there.row);
      const words = rowWords(side.rows[there.row].label, gaze, (at) => side.columns[at].label);
      return `${side.look.run}: ${words}`;
    }).join("  |  ");
  }

  refresh(changed) {
    if (["asite", "ahead", "bsite", "bhead", "unit"].some((key) => changed.has(key))) {
      this.sides.forEach(({ picks }) => picks.refresh());
      this.unit.show(this.state.get("unit"));
      this.#load();
    }
  }

  key(event) {
    if (event.key !== "w") return false;
    this.state.set({ unit: this.state.get("unit") === "words" ? "pieces" : "words" });
    return true;
  }

  repaint() {
    this.sides.forEach(({ map }) => map.repaint());
    this.difference.repaint();
  }

  stop() {}
}

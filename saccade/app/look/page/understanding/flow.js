// Of a pair: ribbons between the words of its texts, as wide as the weights.

import { badge, card, segmented, slider } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { weightText } from "../controls/format.js";
import { columnWords, rowWords } from "../controls/readout.js";
import { groupsOf } from "../document/axis.js";
import { merged, sitesMatrix } from "../document/attention.js";
import { columnGaze, rowGaze } from "../document/gaze.js";
import { ribbons } from "../chart/ribbons.js";

const MOST_FLOWING = 90; // words of a text
const WAYS = [["out", "second looks at first"], ["in", "first looks at second"]];

// Of a matrix over all words those rows and columns; what falls elsewhere is the rest of a row.
function block(matrix, rows, columns) {
  const data = new Float32Array(rows.length * columns.length);
  const rest = new Float32Array(rows.length);
  rows.forEach((row, i) => {
    let sum = 0;
    columns.forEach((column, j) => {
      const weight = matrix.data[row * matrix.columns + column];
      data[i * columns.length + j] = weight;
      sum += weight;
    });
    rest[i] = matrix.overlaid ? 0 : Math.max(0, 1 - sum);
  });
  return { ...matrix, rows: rows.length, columns: columns.length, data, rest };
}

export class PairFlow {
  // say(text)
  constructor({ arrays, look, state, say }) {
    Object.assign(this, { arrays, look, state, say, focus: null, pin: null });
    this.way = segmented("Direction", WAYS, state.get("mode"), (mode) => state.set({ mode }));
    this.threshold = slider("Threshold", {
      min: 0, max: 0.3, step: 0.01, value: state.get("least"), show: (value) => weightText(value),
    }, (threshold) => state.set({ least: threshold }));
    this.flow = ribbons({ point: (word) => this.#light(word), choose: (word) => this.#pin(word) });
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.root = card("Between the texts", { id: "flow", tools: [this.way, this.threshold] },
      el("div", { class: "caption" }, this.title, this.badge), this.flow.root);
  }

  // `pick`: the layers and the head whose weights are shown.
  async load(pick) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const raw = await sitesMatrix(this.arrays, this.look, pick.sites, pick.head);
    if (turn !== this.turn || !raw) return;
    const { text } = this.look.axes;
    const fine = raw.cell[0] === 1 && raw.cell[1] === 1;
    const groups = groupsOf(text, "words");
    const sides = text.texts.map(([from, to]) => groups.map((_, i) => i).filter(
      (i) => groups[i].from >= from && groups[i].to <= to
    ));
    this.root.hidden = !fine || sides.some(({ length }) => length > MOST_FLOWING);
    if (this.root.hidden) return;
    const labels = sides.map((side) => side.map((i) => groups[i].label));
    Object.assign(this, { whole: merged(raw, groups, groups), sides, labels, about: pick.title });
    this.badge.show(raw.exactness);
    this.draw();
  }

  draw() {
    if (!this.whole) return;
    const [rows, columns] = this.state.get("mode") === "in" ? [0, 1] : [1, 0];
    this.matrix = block(this.whole, this.sides[rows], this.sides[columns]);
    Object.assign(this, { rowLabels: this.labels[rows], columnLabels: this.labels[columns] });
    const names = ["first", "second"];
    this.title.textContent = `The ${names[rows]} text, below, looks at the ${names[columns]}, above: ${this.about}`;
    this.flow.draw({
      matrix: this.matrix, rowLabels: this.rowLabels, columnLabels: this.columnLabels,
      threshold: this.state.get("least"), focus: this.pin,
    });
  }

  #light(word) {
    if (!this.matrix) return;
    const focus = word ?? this.pin;
    this.flow.light({ focus });
    if (!focus) return;
    const least = Math.max(this.state.get("least"), 0.005);
    if (focus.side === "target") {
      const gaze = rowGaze(this.matrix, focus.index);
      this.say(rowWords(this.rowLabels[focus.index], gaze, (at) => this.columnLabels[at], least));
    } else {
      const gaze = columnGaze(this.matrix, focus.index);
      this.say(columnWords(this.columnLabels[focus.index], gaze, (at) => this.rowLabels[at], null, least));
    }
  }

  #pin(word) {
    this.pin = JSON.stringify(word) === JSON.stringify(this.pin) ? null : word;
    this.#light(this.pin);
  }

  refresh(changed) {
    if (changed.has("mode")) { this.pin = null; this.way.show(this.state.get("mode")); }
    if (changed.has("least")) this.threshold.show(this.state.get("least"));
    if (changed.has("mode") || changed.has("least")) this.draw();
  }
}

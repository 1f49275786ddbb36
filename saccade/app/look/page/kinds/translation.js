// A translation: which source words each target word looked at while it was written.

import { columnSums, isSelf } from "../document/attention.js";
import { groupHolding, hasWords } from "../document/axis.js";
import { beamPanel } from "../chart/beam.js";
import { badge, card, segmented, slider } from "../controls/controls.js";
import { HeadDetail, unitMatrix } from "../chart/detail.js";
import { el } from "../controls/dom.js";
import { quoted, tokenText, weightText } from "../controls/format.js";
import { columnGaze, rowGaze } from "../document/gaze.js";
import { headGrid, headTitle } from "../chart/grid.js";
import { heatmap } from "../chart/heatmap.js";
import { hypotheses } from "../chart/nbest.js";
import { headPicker, neighbour, pickedMatrix, resolved } from "../controls/picks.js";
import { columnWords, rowWords } from "../controls/readout.js";
import { ribbons } from "../chart/ribbons.js";
import { Scrubber } from "../controls/scrubber.js";
import { mapTools } from "../chart/tools.js";

const MOST_RIBBON_WORDS = 90;

export class TranslationView {
  constructor({ arrays, looks, state, foot, askExact }) {
    Object.assign(this, { arrays, looks, state, foot, askExact });
    this.look = looks[Math.min(Math.max(state.get("look"), 0), looks.length - 1)];
    this.cross = this.look.sites.filter((site) => !isSelf(site));
    if (this.cross.length === 0) this.cross = this.look.sites;
    this.axes = this.look.axes;
    this.hover = null;
    this.pin = null;
    this.root = el("div", { class: "view translation" });
    this.#build();
    this.ready = this.#load();
  }

  #build() {
    const { state } = this;
    this.picks = headPicker(this.cross, state, { best: true });
    this.unit = segmented(
      "Units", [["words", "words"], ["pieces", "pieces"]], state.get("unit"),
      (unit) => state.set({ unit })
    );
    this.unit.hidden = !Object.values(this.axes).some(hasWords);
    this.threshold = slider("Threshold", {
      min: 0, max: 0.5, step: 0.01, value: state.get("threshold"),
      show: (value) => weightText(value)
    },
      (threshold) => state.set({ threshold }));
    const events = { point: (word) => this.#point(word), choose: (word) => this.#pinWord(word) };
    this.flow = ribbons(events);
    this.badges = [badge(), badge()];
    this.flowCard = card("Flow", { id: "flow", tools: [this.picks, this.unit, this.threshold] },
      el(
        "div", { class: "caption" }, this.flowTitle = el("span", { class: "note" }), this.badges[0]
      ), this.flow.root);
    const parts = [
      this.#sentences(), this.flowCard,
      el("div", { class: "columns" }, this.#mapCard(), this.#side()), this.#headsCard()
    ];
    this.root.append(...parts.filter(Boolean));
    this.#transport();
  }

  #sentences() {
    const source = this.axes.source.tokens.join("").replace(/\s*<[^<>\s]+>\s*/g, " ").trim();
    return el("div", { class: "sentences" },
      el(
        "p", { class: "sentence" }, el("span", { class: "eyebrow", text: "source" }),
        el("span", { text: source })
      ),
      el(
        "p", { class: "sentence target" }, el("span", { class: "eyebrow", text: "target" }),
        el("span", { text: this.look.text })
      ));
  }

  #mapCard() {
    this.map = heatmap({
      label: "Alignment, target words by source words",
      point: (place) => this.#pointCell(place),
      choose: ({ row, column }) => this.#pinWord(
        row !== null ? { side: "target", index: row } : { side: "source", index: column }
      ),
    });
    const tables = el("div");
    this.tools = mapTools(this.map, tables, () => `${this.look.run} · ${this.pick?.title ?? ""}`);
    return card("Alignment", { id: "alignment", tools: [this.tools.bar] },
      el(
        "div", { class: "caption" }, this.mapTitle = el("span", { class: "note" }), this.badges[1]
      ),
      this.map.root, tables);
  }

  #side() {
    const parts = [];
    if (this.looks.length > 1) {
      parts.push(card("Hypotheses", { id: "nbest" },
        hypotheses(
          this.looks, this.looks.indexOf(this.look), (look) => this.state.set({ look, step: null })
        )));
    }
    if (this.look.beam?.length) {
      this.beam = beamPanel();
      parts.push(card("Beam", { id: "beam" }, this.beam));
    }
    return parts.length ? el("div", { class: "side" }, ...parts) : null;
  }

  #headsCard() {
    const { look, arrays, state } = this;
    const heads = look.sites.reduce((sum, site) => sum + site.heads, 0);
    if (heads < 2) return null;
    this.grid = headGrid(
      { arrays, look, sites: look.sites, state, choose: (site, head) => this.#open(site, head) }
    );
    this.detail = new HeadDetail({
      arrays, look, state, say: (text) => this.foot.say(text), askExact: this.askExact,
      title: () => this.detailTitle.textContent,
    });
    this.detailTitle = el("h3");
    this.detailHost = el("div", { class: "detail-host", hidden: true },
      el(
        "div", { class: "caption" }, this.detailTitle, this.detail.badge, this.detail.tools.bar
      ), this.detail.root);
    return card(
      "Every head", { id: "heads", tools: this.grid.tools }, this.grid.body, this.detailHost
    );
  }

  #open(name, head) {
    const isCross = this.cross.some((site) => site.name === name);
    this.state.set({ detail: `${name}/${head}`, ...(isCross ? { site: name, head } : {}) });
  }

  #transport() {
    const { tokens } = this.axes.target;
    this.scrub = new Scrubber({
      steps: tokens.length, value: this.state.get("step") ?? tokens.length - 1,
      name: (step) => tokenText(tokens[step]),
      change: (step) => { this.pin = null; this.hover = null; this.state.set({ step }); },
    });
    this.foot.carry(this.scrub.root);
    this.foot.say("Point at a word, or step through with ← and →.");
  }

  async #load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const { arrays, look, state } = this;
    const pick = await resolved(arrays, look, this.cross, state);
    const raw = await pickedMatrix(arrays, look, pick);
    if (turn !== this.turn || !raw) return;
    const unit = raw.cell[0] === 1 && raw.cell[1] === 1 ? state.get("unit") : "pieces";
    Object.assign(this, { pick }, unitMatrix(look, pick.sites[0], raw, unit));
    this.received = columnSums(this.matrix);
    const over = this.matrix.overlaid ? " · highest of each cell, so rows need not sum to one" : "";
    this.flowTitle.textContent = pick.title + over;
    this.mapTitle.textContent = `${pick.title}: rows look at columns`;
    this.badges.forEach((node) => node.show(this.matrix.exactness));
    this.#draw();
    this.#showDetail();
  }

  #draw() {
    const focus = this.#focus();
    const rowLabels = this.rows.map(({ label }) => label);
    const columnLabels = this.columns.map(({ label }) => label);
    const shared = { matrix: this.matrix, rowLabels, columnLabels, dimFrom: this.#dimFrom() };
    const fits = Math.max(this.rows.length, this.columns.length) <= MOST_RIBBON_WORDS;
    this.flowCard.hidden = !fits;
    if (fits) this.flow.draw({ ...shared, threshold: this.state.get("threshold"), focus });
    this.map.draw({
      ...shared, focus: cellOf(focus), other: this.matrix.rest.some(
        (rest) => rest > 0.005
      ), bottom: this.matrix.overlaid ? null : this.received,
    });
    this.beam?.show(this.look.beam, this.state.get("step") ?? this.look.beam.length - 1);
    this.tools.refresh();
    this.#read();
  }

  #dimFrom() {
    const step = this.state.get("step");
    return step === null ? Infinity : groupHolding(this.rows, step) + 1;
  }

  // What the pointer is on, else what was clicked, else the word being written.
  #focus() {
    if (this.hover) return this.hover;
    if (this.pin) return this.pin;
    const step = this.state.get("step");
    return step === null || !this.rows ? null : {
      side: "target", index: groupHolding(this.rows, step)
    };
  }

  #point(word) {
    if (JSON.stringify(word) === JSON.stringify(this.hover)) return;
    this.hover = word;
    this.#light();
  }

  #pointCell(place) {
    const side = place && (
      place.row !== null ? { side: "target", index: place.row }
      : { side: "source", index: place.column }
    );
    this.hover = side;
    if (!this.matrix) return;
    this.#light();
    if (place?.row !== null && place?.column !== null && place) {
      this.map.focus(place);
      const value = this.matrix.data[place.row * this.matrix.columns + place.column];
      const words = rowWords(
        this.rows[place.row].label, rowGaze(this.matrix, place.row), (at) => this.columns[at].label,
        this.#least()
      );
      this.foot.say(
        `${words} · here ${quoted(this.columns[place.column].label)} ${weightText(value, 3)}`
      );
    }
  }

  #pinWord(word) {
    const again = JSON.stringify(word) === JSON.stringify(this.pin);
    this.pin = again ? null : word;
    this.#light();
  }

  #light() {
    if (!this.matrix) return;
    const focus = this.#focus();
    this.flow.light({ focus, dimFrom: this.#dimFrom() });
    this.map.focus(cellOf(focus));
    this.#read();
  }

  #least() {
    return Math.max(this.state.get("threshold"), 0.005);
  }

  #read() {
    const focus = this.#focus();
    if (!focus || focus.index < 0) return;
    if (focus.side === "target") {
      const gaze = rowGaze(this.matrix, focus.index);
      this.foot.say(
        rowWords(this.rows[focus.index].label, gaze, (at) => this.columns[at].label, this.#least())
      );
    } else {
      const gaze = columnGaze(this.matrix, focus.index);
      const total = this.matrix.overlaid ? null : this.received[focus.index];
      this.foot.say(
        columnWords(
          this.columns[focus.index].label, gaze, (at) => this.rows[at].label, total, this.#least()
        )
      );
    }
  }

  async #showDetail() {
    if (!this.grid) return;
    const [name, number] = String(this.state.get("detail") ?? "").split("/");
    const site = this.look.sites.find((one) => one.name === name);
    this.detailHost.hidden = !site;
    this.grid.mark(name, Number(number));
    if (!site) return;
    this.detailTitle.textContent = headTitle(this.look, site, Number(number));
    await this.detail.show([site], Number(number));
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("site", "head")) this.picks.refresh();
    if (has("unit")) this.unit.show(this.state.get("unit"));
    if (has("site", "head", "unit")) this.#load();
    else if (has("step", "threshold") && this.matrix) {
      if (has("step") && this.state.get("step") !== null) this.scrub.show(this.state.get("step"));
      if (has("threshold")) this.threshold.show(this.state.get("threshold"));
      this.#draw();
    }
    if (has("detail")) this.#showDetail();
    else if (has("zoom", "map", "scale", "sink", "unit")) this.detail?.refresh(changed);
  }

  key(event) {
    const acts = {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true),
      " ": () => this.scrub.toggle(), w: () => this.state.set(
        { unit: this.state.get("unit") === "words" ? "pieces" : "words" }
      ),
      "[": () => this.state.set(
        neighbour(this.cross, this.state, -1)
      ), "]": () => this.state.set(neighbour(this.cross, this.state, 1)),
      t: () => this.tools.bar.querySelector("button").click(),
      Escape: () => {
        this.pin = null;
        this.hover = null;
        this.state.set({ step: null });
        this.#light();
      },
    };
    if (!(event.key in acts)) return false;
    acts[event.key]();
    return true;
  }

  repaint() {
    this.map.repaint();
    this.grid?.repaint();
    if (!this.detailHost?.hidden) this.detail?.repaint();
  }

  stop() {
    this.scrub.stop();
    this.grid?.stop();
  }
}

function cellOf(focus) {
  if (!focus) return null;
  return focus.side === "target" ? {
    row: focus.index, column: null
  } : { row: null, column: focus.index };
}

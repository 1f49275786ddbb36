// A translation: which source words each target word looked at while it was written.

import { columnSums, isSelf } from "../document/attention.js";
import { groupHolding, groupsOf, hasWords } from "../document/axis.js";
import { beamPanel } from "../chart/beam.js";
import { badge, card, segmented, slider } from "../controls/controls.js";
import { HeadDetail, unitMatrix } from "../chart/detail.js";
import { el, style, within } from "../controls/dom.js";
import { directionOf, quoted, weightText } from "../controls/format.js";
import { columnGaze, rowGaze } from "../document/gaze.js";
import { headGrid, headTitle } from "../chart/grid.js";
import { heatmap } from "../chart/heatmap.js";
import { hypotheses } from "../chart/nbest.js";
import { headPicker, neighbour, pickedMatrix, resolved } from "../controls/picks.js";
import { naturalWidth } from "../chart/plan.js";
import { columnWords, rowWords } from "../controls/readout.js";
import { ribbons } from "../chart/ribbons.js";
import { Scrubber } from "../controls/scrubber.js";
import { mapTools } from "../chart/tools.js";

const MOST_RIBBON_WORDS = 90;
const NARROWEST_SIDE = 350; // pixels of a card beside the map, and what is between them
const GAP = 20; // between cards
const CANDIDATES = [170, 300]; // how high the list of the beam's candidates may be

export class TranslationView {
  constructor({ arrays, looks, state, foot, askExact, subject }) {
    Object.assign(this, { arrays, looks, state, foot, askExact, subject });
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
    [this.mapCard, this.side] = [this.#mapCard(), this.#side()];
    this.left = el("div", { class: "side" }, this.mapCard);
    this.middle = el("div", { class: "columns" }, this.left, this.side);
    const parts = [this.#sentences(), this.flowCard, this.middle, this.#headsCard()];
    this.root.append(...parts.filter(Boolean));
    if (this.side) new ResizeObserver(() => this.#balance()).observe(this.side);
    this.#transport();
  }

  // Leaves no void: a narrow map has all the others beside it, a wide one has them below one another,
  // or the shorter of them below itself; and its rows grow as high as what stands beside it. Done
  // anew for another width or map, not while one steps.
  #balance() {
    const model = this.map.model();
    const wide = this.middle.clientWidth;
    const key = String([wide, model?.matrix.rows, model?.matrix.columns, this.state.get("unit")]);
    if (!this.side || !model || !wide || key === this.balanced) return;
    this.balanced = key;
    const frame = this.mapCard.offsetWidth - this.map.root.clientWidth;
    const wanted = naturalWidth(model) + frame;
    const across = this.cards.length > 1 && wanted + this.cards.length * NARROWEST_SIDE <= wide;
    this.side.append(...this.cards);
    this.middle.classList.toggle("across", across);
    style(this.middle, { "--map": `${wanted}px`, "--candidates": `${CANDIDATES[1]}px` });
    const beside = this.side.offsetTop === this.left.offsetTop;
    const around = this.mapCard.offsetHeight - this.map.canvas.offsetHeight;
    if (beside && !across && this.cards.length > 1) {
      const [short, tall] = [0, Infinity].map((high) => around + this.map.height(high));
      const [one, other] = this.cards.map(({ offsetHeight }) => offsetHeight + GAP);
      const missing = (from, to, high) => Math.max(0, from - high, high - to);
      const below = missing(short + one, tall + one, other - GAP);
      if (below < missing(short, tall, one + other - GAP)) this.left.append(this.cards[0]);
    }
    const under = this.left.offsetHeight - this.mapCard.offsetHeight;
    this.map.reach(beside ? this.side.offsetHeight - around - under : 0);
    if (!beside || across) return; // else what is still too long is scrolled through
    const over = this.side.offsetHeight - around - under - this.map.height(Infinity);
    const room = within(CANDIDATES[1] - over, ...CANDIDATES);
    style(this.middle, { "--candidates": `${room}px` });
    this.beam?.show(this.state.get("step"));
  }

  #sentences() {
    const line = (name, words) => el(
      "p", { class: `sentence ${name}`, dir: directionOf(words) },
      el("span", { class: "eyebrow", text: name }), el("span", { text: words })
    );
    return el("div", { class: "sentences" },
      line("source", this.subject ?? this.axes.source.tokens.join("").trim()), line("target", this.look.text));
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
      this.beam = beamPanel(this.look);
      parts.push(card("Beam", { id: "beam" }, this.beam));
    }
    this.cards = parts;
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

  // What one steps by: words where words are shown, or pieces.
  #parts() {
    const parts = groupsOf(this.axes.target, this.#unit());
    const step = this.state.get("step");
    const value = step === null ? parts.length - 1 : groupHolding(parts, step);
    return { parts, steps: parts.length, value, name: (at) => parts[at].label };
  }

  #unit() {
    return this.unit.hidden ? "pieces" : this.state.get("unit");
  }

  #transport() {
    this.scrub = new Scrubber({
      ...this.#parts(),
      change: (at) => {
        this.pin = null;
        this.hover = null;
        this.state.set({ step: this.#parts().parts[at].to - 1 });
      },
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
    this.beam?.show(this.state.get("step"));
    this.tools.refresh();
    this.#balance();
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
    if (has("unit")) { this.unit.show(this.state.get("unit")); this.scrub.divide(this.#parts()); }
    if (has("site", "head", "unit")) this.#load();
    else if (has("step", "threshold") && this.matrix) {
      if (has("step") && this.state.get("step") !== null) this.scrub.show(this.#parts().value);
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

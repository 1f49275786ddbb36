// A caption: where on the image the model looked for each word it said.

import { isSelf } from "../document/attention.js";
import { hasWords, groupsOf } from "../document/axis.js";
import { beamPanel } from "../chart/beam.js";
import { EncoderPanel, encoderSites } from "../captioning/encoder.js";
import { Gallery } from "../captioning/gallery.js";
import { mapAt, peakOf } from "../image/maps.js";
import { loadImage } from "../image/paint.js";
import { wordCard, wordLine } from "../captioning/side.js";
import { cellName } from "../image/places.js";
import { ImageStage } from "../image/stage.js";
import { CaptionWords, Filmstrip, firstWord } from "../captioning/strip.js";
import { MapSource, ImageTiles } from "../image/tiles.js";
import { filmTools } from "../image/tools.js";
import { VEIL_KEYS, VeilTools, veilOf } from "../image/veil.js";
import { badge, card, segmented } from "../controls/controls.js";
import { unitMatrix } from "../chart/detail.js";
import { el, within } from "../controls/dom.js";
import { isolated, tokenText, weightText } from "../controls/format.js";
import { hypotheses } from "../chart/nbest.js";
import { headPicker, neighbour, resolved } from "../controls/picks.js";
import { Scrubber } from "../controls/scrubber.js";

export function crossSites(look) {
  return look.sites.filter((site) => !isSelf(site) && site.columns === "source");
}

export class CaptionView {
  constructor({ arrays, looks, state, foot, images }) {
    Object.assign(this, { arrays, state, foot, images, every: looks });
    this.item = within(Number(state.get("item")) || 0, 0, images.length - 1);
    this.looks = looks.filter(({ image }) => image === this.item);
    this.look = this.looks[within(state.get("look"), 0, this.looks.length - 1)];
    this.entry = images[this.item];
    this.cross = crossSites(this.look);
    this.grid = this.look.axes.source.grid;
    this.source = new MapSource(arrays, this.look);
    this.hover = null;
    this.under = null;
    const many = images.length > 1 ? " many" : "";
    this.root = el("div", { class: `view caption-view${many}` });
    this.#build();
    this.ready = this.#load();
  }

  #build() {
    const events = {
      point: (row) => this.#point(row), choose: (row) => this.state.set({ step: row }),
    };
    this.words = new CaptionWords(events);
    this.film = new Filmstrip(events);
    this.stage = new ImageStage({
      label: "The image", point: (cell) => this.#pointCell(cell),
      choose: (cell) => this.state.set({ cell: this.state.get("cell") === cell ? null : cell }),
    });
    this.root.append(...[
      this.#galleryPart(), this.#sentence(), this.#stageCard(), this.#filmCard(),
      this.#headsCard(), this.#encoderCard(),
    ].filter(Boolean));
  }

  #galleryPart() {
    if (this.images.length < 2) return null;
    const said = this.images.map(
      (_, i) => this.every.find(({ image }) => image === i)?.text ?? ""
    );
    return new Gallery(this.images, said, this.item, (item) => this.#show(item)).root;
  }

  #show(item) {
    if (item < 0 || item >= this.images.length) return;
    this.state.set({ item, look: 0, step: null, cell: null, patch: -1 });
  }

  #sentence() {
    const told = this.entry.references;
    const people = told.length ? el("details", { class: "references" },
      el("summary", { text: told.length > 1 ? "What people say" : "What is said of it" }),
      el("ul", null, ...told.map((text) => el("li", { dir: "auto", text })))) : null;
    return el("div", { class: "caption-head" }, this.words.root, people);
  }

  #stageCard() {
    this.veil = new VeilTools(this.state, { boxes: this.entry.boxes.length > 0 });
    this.veil.root.hidden = this.cross.length === 0;
    this.picks = this.cross.length ? headPicker(this.cross, this.state) : null;
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.wordHost = el("div", { class: "word-host" });
    const left = el("div", { class: "stage-part" }, this.stage.root, this.veil.root);
    const right = el("div", { class: "word-part" },
      el("div", { class: "caption" }, this.title, this.badge), this.wordHost);
    const body = el("div", { class: "stage-body" }, left, right);
    return card("Where it looked", { id: "where", tools: [this.picks, this.#unit()] }, body);
  }

  #unit() {
    const { state } = this;
    this.unit = segmented(
      "Units", [["words", "words"], ["pieces", "pieces"]], state.get("unit"),
      (unit) => state.set({ unit, step: null })
    );
    this.unit.hidden = !hasWords(this.look.axes.target);
    return this.unit;
  }

  #filmCard() {
    this.tools = filmTools({
      model: () => this.#table(), title: () => `${this.look.run} · ${this.look.text}`,
      sheet: () => this.film.sheet(),
    });
    this.tools.bar.hidden = this.cross.length === 0;
    const film = card(
      "Word by word", { id: "film", tools: [this.tools.bar] }, this.film.root, this.tools.table
    );
    const side = [];
    if (this.looks.length > 1) side.push(card("Hypotheses", { id: "nbest" }, hypotheses(
      this.looks, this.looks.indexOf(this.look), (look) => this.state.set({ look, step: null })
    )));
    if (this.look.beam?.length) {
      this.beam = beamPanel(this.look);
      side.push(card("Beam", { id: "beam" }, this.beam));
    }
    return el("div", { class: "caption-rows" }, film,
      side.length ? el("div", { class: "halves" }, ...side) : null);
  }

  #headsCard() {
    const heads = this.cross.reduce((sum, site) => sum + site.heads, 0);
    if (heads < 2) return null;
    this.heads = new ImageTiles({
      source: this.source, sites: this.cross,
      choose: (site, head) => this.state.set(
        this.state.get("site") === site.name && this.state.get("head") === head
        ? { site: "all", head: "mean" } : { site: site.name, head }
      ),
    });
    this.headsTitle = el("p", { class: "note" });
    return card("Every head", { id: "heads" }, this.headsTitle, this.heads.root);
  }

  #encoderCard() {
    if (encoderSites(this.look).length === 0) return null;
    const { look, source, state, foot } = this;
    this.encoder = new EncoderPanel({ look, source, state, foot });
    return this.encoder.root;
  }

  async #load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const image = await loadImage(this.entry.source);
    await this.#read();
    if (turn !== this.turn) return;
    this.image = image;
    this.words.show(this.rows);
    this.film.show(this.rows);
    this.#transport();
    this.#draw(true);
    this.encoder?.draw(image);
  }

  // The maps of all words for the layer and head that are chosen.
  async #read() {
    const unit = this.state.get("unit");
    if (this.cross.length === 0) {
      const { target } = this.look.axes;
      Object.assign(this, { rows: groupsOf(target, unit), maps: null, matrix: null });
      this.title.textContent = "This model saw the image once, as a whole: "
        + "there is no attention to show.";
      return;
    }
    const pick = await resolved(this.arrays, this.look, this.cross, this.state);
    const raw = await this.source.matrix(pick.sites, pick.head);
    Object.assign(this, { pick }, unitMatrix(this.look, pick.sites[0], raw, unit));
    this.maps = this.rows.map((_, row) => mapAt(this.matrix, row, this.grid));
    this.title.textContent = this.look.hard ? `${pick.title}, one cell at a time` : pick.title;
    this.badge.show(raw.exactness);
  }

  #transport() {
    this.scrub?.stop();
    this.scrub = new Scrubber({
      steps: this.rows.length, value: this.#chosen(), name: (row) => this.rows[row].label,
      change: (step) => { this.hover = null; this.state.set({ step, cell: null }); },
    });
    this.foot.carry(this.scrub.root);
  }

  #chosen() {
    const step = this.state.get("step");
    if (step !== null) return within(step, 0, this.rows.length - 1);
    return this.maps ? firstWord(this.rows, this.maps) : 0;
  }

  #draw(all = false) {
    const row = this.hover ?? this.#chosen();
    const map = this.maps?.[row] ?? null;
    const boxes = this.entry.boxes;
    const cell = this.under ?? this.state.get("cell");
    const path = this.state.get("path") && this.maps
      ? this.maps.slice(0, row + 1).map((one) => peakOf(one).cell) : null;
    const look = veilOf(this.state, { hard: this.look.hard });
    const line = wordLine(this.rows[row].label, map, boxes);
    this.stage.draw({
      image: this.image, map, words: line, grid: this.maps ? this.grid : null,
      look: { ...look, boxes: this.state.get("boxes") ? boxes : null, path, marked: cell },
    });
    if (all) this.film.draw(this.image, this.maps, look);
    if (all) this.tools.refresh();
    const shares = cell === null || !this.maps ? null : this.maps.map(({ data }) => data[cell]);
    this.words.light(row, shares);
    this.film.light(row, this.hover === null);
    this.#word(row, map, boxes);
    this.#showHeads(row);
    this.beam?.show(this.rows[row].to - 1);
    this.foot.say(shares ? this.#cellLine(cell, shares) : line);
  }

  #word(row, map, boxes) {
    const { from, label } = this.rows[row];
    const { log_p: logP, choices, tokens } = this.look.axes.target;
    this.wordHost.replaceChildren(...wordCard({
      label, map, boxes, hard: this.look.hard, count: `${row + 1} / ${this.rows.length}`,
      logP: logP?.[from], choices: choices?.[from], token: tokens[from],
    }));
  }

  #showHeads(row) {
    if (!this.heads) return;
    const { from, to, label } = this.rows[row];
    this.headsTitle.textContent = `Where each head looks for “${label}”. Choose one, or choose it `
      + "again for the mean of all.";
    const { site, head } = { site: this.state.get("site"), head: this.state.get("head") };
    this.heads.mark(site === "all" && this.cross.length === 1 ? this.cross[0].name : site, head);
    this.heads.show({ image: this.image, from, to, look: veilOf(this.state) });
  }

  #cellLine(cell, shares) {
    const order = shares.map((share, row) => [share, row]).sort((a, b) => b[0] - a[0]).slice(0, 4);
    const parts = order.map(([share, row]) => `${isolated(this.rows[row].label)} ${weightText(share)}`);
    return `The cell at ${cellName(cell, this.grid)} is looked at by: ${parts.join(", ")}`;
  }

  #point(row) {
    if (!this.rows || row === this.hover) return;
    this.hover = row;
    this.#draw();
  }

  #pointCell(cell) {
    this.under = cell;
    if (this.rows) this.#draw();
  }

  #table() {
    if (!this.maps) return null;
    const name = (_, i) => `${Math.floor(i / this.grid.width) + 1},${(i % this.grid.width) + 1}`;
    return {
      matrix: this.matrix, rowLabels: this.rows.map(({ label }) => tokenText(label)),
      columnLabels: Array.from({ length: this.matrix.columns }, name),
      other: this.matrix.rest.some((rest) => rest > 0.005),
    };
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("site", "head")) this.picks?.refresh();
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (!this.image) return;
    if (has("site", "head", "unit")) this.ready = this.#load();
    else if (has("step", "cell", ...VEIL_KEYS)) {
      if (has("step")) this.scrub.show(this.#chosen());
      this.#draw(has("veil", "cells", "opacity"));
    }
    if (has("patch", "encoder", ...VEIL_KEYS)) this.encoder?.draw();
  }

  key(event) {
    if (!this.scrub) return false;
    const flip = (key) => this.state.set({ [key]: !this.state.get(key) });
    const acts = {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      ArrowUp: () => this.#show(this.item - 1), ArrowDown: () => this.#show(this.item + 1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true),
      " ": () => this.scrub.toggle(), c: () => flip("cells"), b: () => flip("boxes"),
      p: () => flip("path"), t: () => this.tools.bar.querySelector("button").click(),
      "[": () => this.#turn(-1), "]": () => this.#turn(1),
      Escape: () => {
        this.hover = this.under = null;
        this.state.set({ cell: null, site: "all", head: "mean" });
      },
    };
    const moves = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (!(event.key in acts) || (moves && this.images.length < 2)) return false;
    acts[event.key]();
    return true;
  }

  #turn(by) {
    if (this.heads) this.state.set(neighbour(this.cross, this.state, by));
  }

  repaint() {
    this.stage.repaint();
    this.film.repaint();
    this.heads?.repaint();
    this.encoder?.repaint();
  }

  stop() {
    this.scrub?.stop();
  }
}

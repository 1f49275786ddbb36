// Two runs on one image: side by side, at the same word.

import { Gallery } from "../captioning/gallery.js";
import { crossSites } from "./caption.js";
import { cellUnder, mapAt, middleOf } from "../image/maps.js";
import { loadImage } from "../image/paint.js";
import { wordLine } from "../captioning/side.js";
import { ImageStage } from "../image/stage.js";
import { CaptionWords, Filmstrip, firstWord } from "../captioning/strip.js";
import { VEIL_KEYS, VeilTools, veilOf } from "../image/veil.js";
import { badge, card } from "../controls/controls.js";
import { unitMatrix } from "../chart/detail.js";
import { groupsOf } from "../document/axis.js";
import { el, within } from "../controls/dom.js";
import { scoreText, weightText } from "../controls/format.js";
import { headPicker, pickedMatrix, resolved } from "../controls/picks.js";
import { Scrubber } from "../controls/scrubber.js";

class CaptionSide {
  constructor(view, look, prefix) {
    Object.assign(this, { view, look, prefix });
    this.cross = crossSites(look);
    this.grid = look.axes.source.grid;
    const { state } = view;
    const events = {
      point: (row) => view.point(row), choose: (row) => state.set({ step: row }),
    };
    this.words = new CaptionWords({ ...events, label: `Caption of ${look.run}` });
    this.film = new Filmstrip(events);
    this.stage = new ImageStage({
      label: `The image, ${look.run}`, point: (cell) => view.pointCell(this, cell),
      choose: () => {},
    });
    this.picks = this.cross.length ? headPicker(this.cross, state, { prefix }) : null;
    this.badge = badge();
    this.title = el("span", { class: "note" });
    const score = el("span", { class: "note", text: `score ${scoreText(look.score)}` });
    this.root = card(look.run, { id: `${prefix}run`, tools: [this.picks] }, this.words.root,
      el("div", { class: "caption" }, this.title, score, this.badge), this.stage.root,
      this.film.root);
  }

  async load() {
    const { arrays, state } = this.view;
    const unit = state.get("unit");
    if (this.cross.length === 0) {
      this.rows = groupsOf(this.look.axes.target, unit);
      this.title.textContent = "saw the image once, as a whole";
    } else {
      const pick = await resolved(arrays, this.look, this.cross, state, this.prefix);
      const raw = await pickedMatrix(arrays, this.look, pick);
      Object.assign(this, unitMatrix(this.look, pick.sites[0], raw, unit));
      this.maps = this.rows.map((_, row) => mapAt(this.matrix, row, this.grid));
      this.title.textContent = pick.title;
      this.badge.show(raw.exactness);
    }
    this.words.show(this.rows);
    this.film.show(this.rows);
  }

  draw(row, all) {
    const { image, state, entry } = this.view;
    const at = Math.min(row, this.rows.length - 1);
    const map = this.maps?.[at] ?? null;
    const look = veilOf(state, { hard: this.look.hard });
    const line = wordLine(this.rows[at].label, map, entry.boxes);
    this.stage.draw({
      image, map, words: line, grid: map ? this.grid : null,
      look: { ...look, boxes: state.get("boxes") ? entry.boxes : null, marked: this.under },
    });
    if (all) this.film.draw(image, this.maps ?? null, look);
    this.words.light(at);
    this.film.light(at, true);
    return `${this.look.run}: ${line}`;
  }
}

export class CaptionCompareView {
  constructor({ arrays, looks, state, foot, images }) {
    Object.assign(this, { arrays, state, foot, images });
    this.item = within(Number(state.get("item")) || 0, 0, images.length - 1);
    this.entry = images[this.item];
    const runs = [...new Set(looks.map(({ run }) => run))].slice(0, 2);
    const first = (run, item) => looks.find((one) => one.run === run && one.image === item);
    this.sides = runs.map((run, i) => new CaptionSide(this, first(run, this.item), i ? "b" : "a"));
    this.veil = new VeilTools(state, { boxes: this.entry.boxes.length > 0, path: false });
    const said = images.map((_, i) => first(runs[0], i)?.text ?? "");
    const gallery = images.length > 1
      ? new Gallery(images, said, this.item, (item) => this.#show(item)).root : null;
    this.root = el("div", { class: "view caption-view compare" },
      ...[gallery, el("div", { class: "row-tools" }, this.veil.root),
        el("div", { class: "halves" }, ...this.sides.map(({ root }) => root))].filter(Boolean));
    this.ready = this.#load();
  }

  #show(item) {
    if (item >= 0 && item < this.images.length) this.state.set({ item, step: null });
  }

  async #load() {
    this.image = await loadImage(this.entry.source);
    await Promise.all(this.sides.map((side) => side.load()));
    const longest = this.sides.reduce((a, b) => (b.rows.length > a.rows.length ? b : a));
    this.scrub?.stop();
    this.scrub = new Scrubber({
      steps: longest.rows.length, value: this.#chosen(),
      name: (row) => this.sides.map(
        ({ rows }) => rows[row]?.label ?? "–"
      ).filter((label, i, all) => all.indexOf(label) === i).join(" / "),
      change: (step) => { this.hover = null; this.state.set({ step }); },
    });
    this.foot.carry(this.scrub.root);
    this.#draw(true);
  }

  #chosen() {
    const step = this.state.get("step");
    if (step !== null) return step;
    const [side] = this.sides.filter(({ maps }) => maps);
    return side ? firstWord(side.rows, side.maps) : 0;
  }

  #draw(all = false) {
    const row = this.hover ?? this.#chosen();
    this.foot.say(this.sides.map((side) => side.draw(row, all)).join("  |  "));
  }

  point(row) {
    if (!this.image || row === this.hover) return;
    this.hover = row;
    this.#draw();
  }

  // The same place in both images, whatever their grids.
  pointCell(from, cell) {
    const place = cell === null ? null : middleOf(cell, from.grid);
    const row = this.hover ?? this.#chosen();
    const said = this.sides.map((side) => {
      side.under = place === null ? null : cellUnder(place, side.grid);
      const line = side.draw(row, false);
      const map = side.maps?.[Math.min(row, side.rows.length - 1)];
      return side.under === null || !map ? line
        : `${side.look.run}: here ${weightText(map.data[side.under], 3)}`;
    });
    this.foot.say(said.join("  |  "));
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("asite", "ahead", "bsite", "bhead")) this.sides.forEach(({ picks }) => picks?.refresh());
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (has("asite", "ahead", "bsite", "bhead", "unit")) this.ready = this.#load();
    else if (this.image && has("step", ...VEIL_KEYS)) {
      if (has("step")) this.scrub.show(this.#chosen());
      this.#draw(has("veil", "cells", "opacity"));
    }
  }

  key(event) {
    if (!this.scrub) return false;
    const acts = {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      ArrowUp: () => this.#show(this.item - 1), ArrowDown: () => this.#show(this.item + 1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true),
      " ": () => this.scrub.toggle(),
      c: () => this.state.set({ cells: !this.state.get("cells") }),
      b: () => this.state.set({ boxes: !this.state.get("boxes") }),
    };
    const moves = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (!(event.key in acts) || (moves && this.images.length < 2)) return false;
    acts[event.key]();
    return true;
  }

  repaint() {
    for (const { stage, film } of this.sides) {
      stage.repaint();
      film.repaint();
    }
  }

  stop() {
    this.scrub?.stop();
  }
}

// Objects: what was found in each image, where it was looked for, and what is there; of one run or
// of two.

import { ACROSS_KEYS, INNER_KEYS, ObjectsPanel } from "../detection/panel.js";
import { nextLayer } from "../detection/choices.js";
import { OBJECT_LIST_KEYS, ObjectsGallery } from "../detection/gallery.js";
import { sureOf } from "../detection/judged.js";
import { loadImage } from "../image/paint.js";
import { VEIL_KEYS, VeilTools } from "../image/veil.js";
import { segmented, slider, toggle } from "../controls/controls.js";
import { el } from "../controls/dom.js";

const LOWEST = 0.05;
const FRESH = { found: null, patch: -1 }; // another image has other objects

export class DetectionView {
  constructor({ arrays, looks, state, foot, images }) {
    Object.assign(this, { arrays, state, foot });
    this.keeps = new Set(["item"]); // another image needs no other view
    this.runs = [...new Set(looks.map(({ run }) => run))].slice(0, 2);
    this.subjects = images.map((entry, item) => ({
      item, entry, looks: this.runs.map((run) => looks.find(
        (look) => look.image === item && look.run === run
      )).filter(Boolean),
    })).filter(({ looks: own }) => own.length > 0);
    const many = this.subjects.length > 1;
    this.gallery = many ? new ObjectsGallery({
      subjects: this.subjects, runs: this.runs, state, choose: (item) => this.#open(item),
    }) : null;
    this.host = el("div", { class: "class-host" });
    this.root = el("div", { class: `view caption-view class-view object-view${many ? " many" : ""}` },
      this.#tools(looks), this.gallery?.root, this.host);
    this.panels = [];
    this.ready = this.#show();
  }

  #tools(looks) {
    const { state } = this;
    const [look] = looks;
    this.sure = slider("Score from", {
      min: LOWEST, max: 0.95, step: 0.01, value: sureOf(look, state),
      show: (value) => value.toFixed(2),
    }, (sure) => state.set({ sure }));
    this.truths = toggle("Missed", state.get("truths"), (truths) => state.set({ truths }));
    this.truths.hidden = !looks.some(({ objects }) => objects.truth);
    this.way = segmented("Look from", [["false", "objects look"], ["true", "a point looks"]],
      String(state.get("points")), (key) => state.set({ points: key === "true" }));
    this.veil = new VeilTools(state, { boxes: true, path: false });
    this.pointed = looks.some(({ axes }) => axes.points);
    this.onImage = [this.veil.root, ...(this.pointed ? [this.way] : [])];
    return el("div", { class: "row-tools object-tools" }, this.sure, this.truths,
      this.pointed ? this.way : null, this.veil.root);
  }

  get #opened() {
    return !this.gallery || this.state.get("opened");
  }

  #open(item) {
    if (item !== null) this.state.set({ item, opened: true, ...FRESH });
  }

  // Builds what belongs to one image; nothing while all of them are shown.
  async #show() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.root.classList.toggle("opened", this.#opened);
    for (const one of this.onImage) one.hidden = !this.#opened;
    this.panels = [];
    if (!this.#opened) {
      this.host.replaceChildren();
      this.foot.carry();
      this.foot.say(`${this.gallery.count.textContent}. Choose an image to see where its objects `
        + "were looked for.");
      return;
    }
    const wanted = this.state.get("item");
    const { looks, entry } = this.subjects.find(({ item }) => item === wanted) ?? this.subjects[0];
    const image = await loadImage(entry.source);
    if (turn !== this.turn) return;
    const { state, arrays } = this;
    this.image = image;
    this.panels = looks.map((look, number) => new ObjectsPanel({
      look, entry, state, arrays, number, alone: looks.length === 1,
      say: (line) => this.foot.say(line),
    }));
    const roots = this.panels.map(({ root }) => root);
    this.host.replaceChildren(
      ...(roots.length === 1 ? roots : [el("div", { class: "halves" }, ...roots)])
    );
    this.foot.carry(this.gallery?.pager());
    await this.#load();
  }

  async #load() {
    const { panels } = this;
    await Promise.all(panels.map((panel) => panel.load()));
    if (panels === this.panels) this.#draw(true);
  }

  #draw(tiles = false) {
    const several = this.panels.length > 1;
    const lines = this.panels.map((panel) => {
      const line = panel.draw(this.image, tiles);
      return several ? `${panel.look.run}: ${line}` : line;
    });
    this.foot.say(lines.join("  |  "));
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    const { state } = this;
    this.way.show(String(state.get("points")));
    this.truths.show(state.get("truths"));
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (has("sure", "truths", ...OBJECT_LIST_KEYS)) {
      this.gallery?.refresh(has("sure", ...OBJECT_LIST_KEYS));
      this.gallery?.tell();
    } else if (has("item", "opened")) this.gallery?.mark();
    if (has("item", "opened") || (!this.#opened && has("sure", ...OBJECT_LIST_KEYS))) {
      this.ready = this.#show();
      return;
    }
    if (!this.panels.length) return;
    if (has("sure")) {
      this.sure.show(sureOf(this.panels[0].look, state));
      this.panels.forEach((panel) => panel.refill());
    }
    if (has("points", "bsite", "bhead", ...ACROSS_KEYS, ...INNER_KEYS)) this.ready = this.#load();
    else this.#draw(has("found", "sure", "veil", "cells", "opacity"));
  }

  // The next object that is told; after the last comes none, which is all.
  #step(by) {
    const told = this.panels[0]?.told ?? [];
    const numbers = [null, ...told.map(({ number }) => number)];
    const at = Math.max(0, numbers.indexOf(this.state.get("found")));
    this.state.set({ found: numbers[(at + by + numbers.length) % numbers.length], points: false });
  }

  key(event) {
    const { state, panels: [panel] } = this;
    const flip = (key) => () => state.set({ [key]: !state.get(key) });
    const turn = (by) => () => state.set(panel.pointing
      ? nextLayer(panel.inner, state, INNER_KEYS, by) : nextLayer(panel.across, state, ACROSS_KEYS, by));
    const many = this.gallery?.turning
      ?? { ArrowLeft: () => this.#step(-1), ArrowRight: () => this.#step(1) };
    const one = panel ? {
      ArrowUp: () => this.#step(-1), ArrowDown: () => this.#step(1),
      c: flip("cells"), b: flip("boxes"), m: flip("truths"), "[": turn(-1), "]": turn(1),
      e: this.pointed ? flip("points") : undefined,
      t: () => panel.tools.bar.querySelector("button").click(), Escape: () => this.#leave(),
    } : {};
    const act = { ...many, ...one }[event.key];
    act?.();
    return act !== undefined;
  }

  // Back to all objects, and from there to all images.
  #leave() {
    const { state } = this;
    if (state.get("found") === null && !state.get("points") && this.gallery) state.set({ opened: false });
    else state.set({ ...FRESH, points: false });
  }

  repaint() {
    this.panels.forEach((panel) => panel.repaint());
  }

  stop() {
    this.gallery?.stop();
  }
}

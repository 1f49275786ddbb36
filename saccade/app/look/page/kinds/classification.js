// Classes: what each image was taken for, and what in it that came from; of one run or of two.

import { mapPicker, neighbourMap } from "../classification/choices.js";
import { ClassGallery } from "../classification/gallery.js";
import { ClassPanel } from "../classification/panel.js";
import { LIST_KEYS, countText, subjectsOf } from "../classification/subjects.js";
import { middleOf } from "../image/maps.js";
import { loadImage } from "../image/paint.js";
import { VEIL_KEYS, VeilTools } from "../image/veil.js";
import { el } from "../controls/dom.js";

export class ClassificationView {
  constructor({ arrays, looks, state, foot, askClass, images }) {
    Object.assign(this, { arrays, state, foot, askClass });
    this.keeps = new Set(["item"]); // another image needs no other view
    this.runs = [...new Set(looks.map(({ run }) => run))].slice(0, 2);
    this.subjects = subjectsOf(images, looks, this.runs);
    const many = this.subjects.length > 1;
    this.gallery = many ? new ClassGallery({
      subjects: this.subjects, runs: this.runs, arrays, state, choose: (item) => this.#open(item),
    }) : null;
    this.host = el("div", { class: "class-host" });
    this.root = el("div", { class: `view caption-view class-view${many ? " many" : ""}` },
      ...[this.gallery?.root, this.host].filter(Boolean));
    this.panels = [];
    this.ready = this.#show();
  }

  get #opened() {
    return !this.gallery || this.state.get("opened");
  }

  #open(item) {
    if (item !== null) this.state.set({ item, opened: true });
  }

  // Builds what belongs to one image; nothing while all of them are shown.
  async #show() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.root.classList.toggle("opened", this.#opened);
    this.panels = [];
    if (!this.#opened) {
      this.host.replaceChildren();
      this.foot.carry();
      this.foot.say(`${countText(this.gallery.shown, this.subjects, this.runs)}. `
        + "Choose an image to see what its class came from.");
      return;
    }
    const wanted = this.state.get("item");
    const subject = this.subjects.find(({ item }) => item === wanted) ?? this.subjects[0];
    const image = await loadImage(subject.entry.source);
    if (turn !== this.turn) return;
    this.#build(subject);
    this.image = image;
    await this.#load();
  }

  #build({ looks, entry }) {
    const { state, arrays, askClass } = this;
    const alone = looks.length === 1;
    this.place = null;
    this.veil = new VeilTools(state, { boxes: entry.boxes.length > 0, path: false });
    this.picks = mapPicker(looks, state);
    this.panels = looks.map((look, number) => new ClassPanel({
      look, entry, state, arrays, alone, number, askClass,
      point: (panel, cell) => this.#point(panel, cell),
      ...(alone ? { picks: this.picks, under: this.veil.root } : {}),
    }));
    const cards = this.panels.map(({ root }) => root);
    this.host.replaceChildren(...(alone ? cards : [
      el("div", { class: "row-tools class-picks" }, this.picks, this.veil.root),
      el("div", { class: "halves" }, ...cards),
    ]));
    this.foot.carry(this.gallery?.pager());
  }

  async #load() {
    const { panels } = this;
    await Promise.all(panels.map((panel) => panel.load()));
    if (panels === this.panels) this.#draw(true);
  }

  #draw(tiles = false) {
    const several = this.panels.length > 1;
    const lines = this.panels.filter(({ map }) => map).map((panel) => {
      const line = panel.draw(this.image, this.place, tiles);
      return several ? `${panel.look.run}: ${line}` : line;
    });
    this.foot.say(lines.join("  |  "));
  }

  // The same place in both images, whatever their grids.
  #point(panel, cell) {
    this.place = cell === null ? null : middleOf(cell, panel.grid);
    this.#draw();
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    const drawn = has("site", "head", "veil", "opacity", "thumbs");
    if (has(...LIST_KEYS) || drawn) this.gallery?.refresh(has(...LIST_KEYS));
    else if (has("item", "opened")) this.gallery?.mark();
    if (has("item", "opened", ...(this.#opened ? [] : LIST_KEYS))) {
      this.ready = this.#show();
      return;
    }
    if (!this.panels.length) return;
    if (has(...LIST_KEYS)) this.foot.carry(this.gallery.pager());
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (has("site", "head")) {
      this.picks.refresh();
      this.ready = this.#load();
    } else if (has(...VEIL_KEYS)) this.#draw(has("veil", "cells", "opacity"));
  }

  key(event) {
    const flip = (key) => () => this.state.set({ [key]: !this.state.get(key) });
    const turn = (by) => () => this.state.set(neighbourMap(this.panels[0].look, this.state, by));
    const along = this.gallery?.turning ?? {};
    const many = { ...along, ArrowUp: along.ArrowLeft, ArrowDown: along.ArrowRight };
    const one = this.panels.length ? {
      c: flip("cells"), b: flip("boxes"), "[": turn(-1), "]": turn(1),
      t: () => this.panels.forEach(({ tools }) => tools.bar.querySelector("button").click()),
      Escape: () => this.#leave(),
    } : {};
    const act = { ...many, ...one }[event.key];
    act?.();
    return act !== undefined;
  }

  // Back to the first map, and from there to all images.
  #leave() {
    const { state } = this;
    if (this.gallery && state.get("site") === "all") state.set({ opened: false });
    else state.set({ site: "all", head: "mean" });
  }

  repaint() {
    this.panels.forEach((panel) => panel.repaint());
  }

  stop() {
    this.gallery?.stop();
  }
}

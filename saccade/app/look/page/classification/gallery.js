// Many images: what each was taken for, sorted and filtered; choose one to open it.

import { chosenMap } from "./choices.js";
import { verdictMark } from "./guesses.js";
import {
  classesOf, countText, differs, isRight, listedOf, ordersOf, saidOf, saidText, truthOf,
  verdictText, verdictsOf
} from "./subjects.js";
import { mapAt } from "../image/maps.js";
import { loadImage, paintImage } from "../image/paint.js";
import { MapSource } from "../image/tiles.js";
import { button, picker, rove, toggle } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

const CLASS_THUMB = 132;
const VEILED = 0.55; // of the opacity that is set: an image this small must still be seen

export class ClassGallery {
  // choose(item): open an image.
  constructor({ subjects, runs, arrays, state, choose }) {
    Object.assign(this, { subjects, runs, arrays, state, choose });
    this.nodes = new Map(subjects.map((subject) => [subject.item, this.#node(subject)]));
    this.painted = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) if (isIntersecting) this.#paint(target);
    }, { rootMargin: "200px" });
    this.list = el("ol", { class: "class-grid", "aria-label": "Images" });
    this.list.addEventListener("keydown", (event) => {
      if (!state.get("opened")) this.keys(event); // else the page goes through the images
    });
    this.count = el("span", { class: "class-count", role: "status" });
    this.clear = button("Show all", () => state.set({ truth: "", said: "", verdict: "" }), {
      class: "button quiet",
    });
    const two = runs.length > 1;
    const legend = two
      ? el("span", { class: "note", text: `above ${runs[0]}, below ${runs[1]}` }) : null;
    this.root = el("section", { class: "class-gallery", "aria-label": "All images" },
      el("header", { class: two ? "class-tools two" : "class-tools" }, this.count, this.clear,
        ...this.#pickers(), legend), this.list);
    this.refresh();
  }

  #pickers() {
    const { state, subjects, runs } = this;
    const offer = (label, key, options) => {
      if (options.length < 2) return null;
      const one = picker(label, options, this.#asked(key, options), (value) => state.set({ [key]: value }));
      one.follow = () => one.show(this.#asked(key, options));
      return one;
    };
    this.controls = [
      offer("Order", "order", ordersOf(subjects)), offer("Show", "verdict", verdictsOf(subjects, runs)),
      offer("True class", "truth", classesOf(subjects, truthOf)),
      offer("Class said", "said", classesOf(subjects, saidOf)),
    ].filter(Boolean);
    this.maps = toggle(runs.length > 1 ? `Maps of ${runs[0]}` : "Maps", state.get("thumbs"), (thumbs) => state.set({ thumbs }));
    return [...this.controls, this.maps];
  }

  #asked(key, options) {
    const asked = String(this.state.get(key));
    return options.some(([known]) => known === asked) ? asked : options[0][0];
  }

  #node(subject) {
    const { item, entry, looks } = subject;
    const canvas = el("canvas", {
      class: "class-thumb", "aria-hidden": "true", width: CLASS_THUMB, height: CLASS_THUMB,
      "data-item": item,
    });
    const lines = looks.map((look) => el("span", { class: "class-line" }, verdictMark(look),
      el("span", { class: "class-name", dir: "auto", text: saidText(look) }),
      el("span", { class: "number", text: percentText(look.score) })));
    const wrong = looks.find((look) => isRight(look) === false);
    const is = wrong ? `is ${wrong.classes.truth.join(", ")}` : "";
    const told = looks.map(
      (look) => (looks.length > 1 ? `${look.run}: ${verdictText(look)}` : verdictText(look))
    ).join("; ");
    const node = el("button", {
      type: "button", class: differs(subject) ? "class-item differs" : "class-item",
      title: entry.name, "aria-label": `Image ${item + 1}, ${entry.name}: ${told}`,
      on: { click: () => this.choose(item) },
    }, canvas, ...lines, el("span", { class: "class-is", dir: "auto", text: is }));
    return { node, canvas, row: el("li", null, node), subject, source: null };
  }

  async #paint(canvas) {
    const one = this.nodes.get(Number(canvas.dataset.item));
    const thumbs = this.state.get("thumbs");
    const pick = chosenMap(one.subject.looks[0], this.state);
    const look = { how: this.state.get("veil"), opacity: VEILED * this.state.get("opacity"), peak: false };
    const key = thumbs ? `${pick.key}/${pick.head}/${look.how}/${look.opacity}` : "plain";
    if (one.shown === key) return;
    one.shown = key;
    one.image ??= loadImage(one.subject.entry.source);
    one.source ??= new MapSource(this.arrays, one.subject.looks[0]);
    try {
      const image = await one.image;
      const matrix = thumbs ? await one.source.matrix(pick.sites, pick.head) : null;
      const { grid } = one.subject.looks[0].axes[pick.sites[0].columns];
      if (one.shown === key) {
        paintImage(canvas, image, matrix && mapAt(matrix, 0, grid), look, CLASS_THUMB);
      }
    } catch {
      canvas.classList.add("broken"); // an image that the browser cannot read
    }
  }

  // After a change of what is listed, of the order, or of how maps are drawn.
  refresh(listing = true) {
    const { state, subjects, runs } = this;
    if (listing) {
      this.shown = listedOf(subjects, state);
      const rows = this.shown.map(({ item }) => this.nodes.get(item).row);
      const none = el("li", { class: "note", text: "No image is left: choose less." });
      this.list.replaceChildren(...(rows.length ? rows : [none]));
      this.count.textContent = countText(this.shown, subjects, runs);
      this.clear.hidden = this.shown.length === subjects.length;
    }
    this.controls.forEach((one) => one.follow());
    this.maps.show(state.get("thumbs"));
    this.painted.disconnect();
    for (const { item } of this.shown) this.painted.observe(this.nodes.get(item).canvas);
    this.mark();
  }

  // While an image is open, the list is a row of small ones, and that one is in sight.
  mark() {
    const { state } = this;
    const opened = state.get("opened");
    this.list.classList.toggle("strip-of", opened);
    const at = this.#place();
    const buttons = () => this.shown.map(({ item }) => this.nodes.get(item).node);
    const columns = () => Math.max(1, buttons().findIndex((one) => one.offsetTop > buttons()[0].offsetTop));
    buttons().forEach((node, i) => {
      if (opened && i === at) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    });
    this.keys = rove(buttons, { columns, chosen: Math.max(0, at) });
    if (!opened) return;
    if (this.list.contains(document.activeElement)) buttons()[at]?.focus({ preventScroll: true });
    requestAnimationFrame(() => this.#reveal(at));
  }

  #reveal(at) {
    const node = this.nodes.get(this.shown[at]?.item)?.row;
    if (!node) return;
    const { clientWidth, offsetLeft } = this.list;
    this.list.scrollLeft = node.offsetLeft - offsetLeft - (clientWidth - node.offsetWidth) / 2;
  }

  #place() {
    return this.shown.findIndex(({ item }) => item === this.state.get("item"));
  }

  // The image `by` further on in the list; from one that is not listed, the first.
  step(by) {
    const at = this.#place();
    return this.shown[at < 0 ? 0 : at + by]?.item ?? null;
  }

  get where() {
    const at = this.#place();
    return at < 0 ? `– / ${this.shown.length}` : `${at + 1} / ${this.shown.length}`;
  }

  ends(last) {
    return this.shown.at(last ? -1 : 0)?.item ?? null;
  }

  focus() {
    const at = Math.max(0, this.#place());
    if (this.shown.length) this.nodes.get(this.shown[at].item).node.focus();
  }

  stop() {
    this.painted.disconnect();
  }
}

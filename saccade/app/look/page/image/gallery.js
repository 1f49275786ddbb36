// Many images in a grid, sorted and filtered; choose one to open it, and they become a row of small
// ones.

import { button, picker, rove } from "../controls/controls.js";
import { el } from "../controls/dom.js";

export class ImageGallery {
  // choose(item): open an image, if it is not null. `node(subject)` makes its {node, canvas}, and `paint(one, canvas)`
  // draws it once it is in sight. `listed()` are the subjects to show, `count(shown)` says how many
  // there are. `pickers` are [label, key, options], `clear` what shows all again, `extra` stands
  // after them and is told to `follow`.
  constructor({
    subjects, state, choose, node, paint, listed, count, pickers, clear, extra = [], wide = false,
    follow = () => {},
  }) {
    Object.assign(this, { subjects, state, choose, listed, countOf: count, follow });
    this.nodes = new Map(subjects.map((subject) => {
      const made = node(subject, () => this.choose(subject.item));
      return [subject.item, { ...made, row: el("li", null, made.node), subject }];
    }));
    this.painted = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) {
        if (isIntersecting) paint(this.nodes.get(Number(target.dataset.item)), target);
      }
    }, { rootMargin: "200px" });
    this.list = el("ol", { class: "class-grid", "aria-label": "Images" });
    this.list.addEventListener("keydown", (event) => {
      if (!state.get("opened")) this.keys(event); // else the page goes through the images
    });
    this.count = el("span", { class: "class-count", role: "status" });
    this.clear = button("Show all", () => state.set(clear), { class: "button quiet" });
    this.controls = pickers.map((one) => this.#picker(...one)).filter(Boolean);
    this.root = el("section", { class: "class-gallery", "aria-label": "All images" },
      el("header", { class: wide ? "class-tools two" : "class-tools" }, this.count, this.clear,
        ...this.controls, ...extra), this.list);
    this.refresh();
  }

  #picker(label, key, options) {
    if (options.length < 2) return null;
    const { state } = this;
    const asked = () => {
      const value = String(state.get(key));
      return options.some(([known]) => known === value) ? value : options[0][0];
    };
    const one = picker(label, options, asked(), (value) => state.set({ [key]: value }));
    one.follow = () => one.show(asked());
    return one;
  }

  // After a change of what is listed, of the order, or of how maps are drawn.
  refresh(listing = true) {
    const { subjects } = this;
    if (listing) {
      this.shown = this.listed();
      const rows = this.shown.map(({ item }) => this.nodes.get(item).row);
      const none = el("li", { class: "note", text: "No image is left: choose less." });
      this.list.replaceChildren(...(rows.length ? rows : [none]));
      this.count.textContent = this.countOf(this.shown);
      this.clear.hidden = this.shown.length === subjects.length;
    }
    this.controls.forEach((one) => one.follow());
    this.follow();
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

  // Turns to the image before, to the next, and back to all of them.
  pager(what = "image") {
    const turn = (text, label, by) => button(
      text, () => this.choose(this.step(by)), { class: "button icon", "aria-label": label }
    );
    return el("div", { class: "pager" }, turn("‹", `Previous ${what}`, -1),
      el("span", { class: "number", text: this.where }), turn("›", `Next ${what}`, 1),
      button(`All ${what}s`, () => this.state.set({ opened: false })));
  }

  // What keys do: they turn to other images, or go into the list where none is open.
  get turning() {
    const go = (by) => () => (this.state.get("opened") ? this.choose(this.step(by)) : this.focus());
    return {
      ArrowLeft: go(-1), ArrowRight: go(1),
      Home: () => this.choose(this.ends(false)), End: () => this.choose(this.ends(true)),
    };
  }

  focus() {
    const at = Math.max(0, this.#place());
    if (this.shown.length) this.nodes.get(this.shown[at].item).node.focus();
  }

  stop() {
    this.painted.disconnect();
  }
}

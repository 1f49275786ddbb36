// Texts about images, of one run or of two: what was said, which regions words looked at and which
// words regions, and every layer and head of both streams.

import { LIST_KEYS, countText, subjectsOf } from "../classification/subjects.js";
import { HeadDetail } from "../chart/detail.js";
import { headGrid, headTitle } from "../chart/grid.js";
import { JointGallery } from "../joint/gallery.js";
import { JointPanel, layersBetween } from "../joint/panel.js";
import { nextLayer } from "../detection/choices.js";
import { loadImage } from "../image/paint.js";
import { VEIL_KEYS, VeilTools } from "../image/veil.js";
import { card } from "../controls/controls.js";
import { el } from "../controls/dom.js";

const UNASKED = { token: null, found: null };

// Where one of several sentences is chosen each has a look of its own, that of the likeliest first.
const isFirst = ({ image, run }, at, looks) => at === looks.findIndex(
  (one) => one.image === image && one.run === run
);

export class JointView {
  constructor({ arrays, looks, state, foot, askClass, askExact, images }) {
    Object.assign(this, { arrays, state, foot, askClass, askExact });
    this.keeps = new Set(["item"]); // another image needs no other view
    this.sentences = looks;
    this.runs = [...new Set(looks.map(({ run }) => run))].slice(0, 2);
    this.subjects = subjectsOf(images, looks.filter(isFirst), this.runs);
    const many = this.subjects.length > 1;
    this.gallery = many ? new JointGallery({
      subjects: this.subjects, runs: this.runs, state, choose: (item) => this.#open(item),
    }) : null;
    this.host = el("div", { class: "class-host" });
    this.root = el("div", { class: `view caption-view class-view joint-view${many ? " many" : ""}` },
      ...[this.gallery?.root, this.host].filter(Boolean));
    this.panels = [];
    this.ready = this.#show();
  }

  get #opened() {
    return !this.gallery || this.state.get("opened");
  }

  #open(item) {
    if (item !== null) this.state.set({ item, opened: true, sentence: null, ...UNASKED });
  }

  // Builds what belongs to one text; nothing while all of them are shown.
  async #show() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.root.classList.toggle("opened", this.#opened);
    this.#forget();
    if (!this.#opened) {
      this.host.replaceChildren();
      this.foot.carry();
      this.foot.say(`${countText(this.gallery.shown, this.subjects, this.runs)}. `
        + "Choose one to see which regions its words looked at.");
      return;
    }
    const wanted = this.state.get("item");
    const subject = this.subjects.find(({ item }) => item === wanted) ?? this.subjects[0];
    const image = await loadImage(subject.entry.source);
    if (turn !== this.turn) return;
    this.image = image;
    this.#build(subject);
    await this.#load();
  }

  #forget() {
    this.grid?.stop();
    Object.assign(this, { panels: [], grid: null, detail: null });
  }

  // The look of the sentence that one has chosen to see.
  #sentence(look) {
    const wanted = look.regions.among?.[this.state.get("sentence")];
    const same = ({ image, run, regions }) => (
      image === look.image && run === look.run && regions.asked === wanted
    );
    return wanted === undefined ? look : this.sentences.find(same) ?? look;
  }

  // What shows another answer, or another sentence; null where there is none.
  #asker({ regions: { among, named } }) {
    if (!among?.length) return named ? this.askClass : null;
    return (label) => this.state.set({ sentence: among.indexOf(label), ...UNASKED });
  }

  #build({ looks: first, entry }) {
    const { state, arrays } = this;
    const looks = first.map((look) => this.#sentence(look));
    const alone = looks.length === 1;
    this.veil = new VeilTools(state, { boxes: !looks.every(({ axes }) => axes.regions.grid), path: false });
    this.veil.cells.hidden = !looks.some(({ axes }) => axes.regions.grid);
    this.panels = looks.map((look, number) => new JointPanel({
      look, entry, state, arrays, alone, number, askClass: this.#asker(look),
      say: (line) => this.foot.say(line),
    }));
    const cards = this.panels.map(({ root }) => root);
    this.host.replaceChildren(
      el("div", { class: "row-tools class-picks" }, this.veil.root),
      ...(alone ? [...cards, ...this.#more(looks[0])] : [el("div", { class: "halves" }, ...cards)])
    );
    this.foot.carry(this.gallery?.pager("text"));
  }

  // Every layer and head of both streams, and one of them in full.
  #more(look) {
    const { arrays, state } = this;
    this.gridTitle = el("span", { class: "note" });
    this.detail = new HeadDetail({
      arrays, look, state, say: (line) => this.foot.say(line), askExact: this.askExact,
      title: () => `${look.run} · ${this.gridTitle.textContent}`,
    });
    this.grid = headGrid({
      arrays, look, sites: look.sites, state,
      choose: (bsite, bhead) => state.set({ bsite, bhead }),
    });
    return [
      card("Every layer and head", { id: "heads", tools: this.grid.tools }, this.grid.body),
      card("Weights", { id: "map", tools: [this.detail.tools.bar] },
        el("div", { class: "caption" }, this.gridTitle, this.detail.badge), this.detail.root),
    ];
  }

  async #load() {
    const { panels } = this;
    await Promise.all([...panels.map((panel) => panel.load()), this.#loadDetail()]);
    if (panels === this.panels) this.#draw();
  }

  async #loadDetail() {
    if (!this.detail) return;
    const { look } = this.panels[0];
    const { state } = this;
    const site = look.sites.find(({ name }) => name === state.get("bsite"))
      ?? layersBetween(look, "words", "regions").at(-1);
    const asked = state.get("bhead");
    const head = typeof asked === "number" && asked < site.heads ? asked : site.heads === 1 ? 0 : "mean";
    this.gridTitle.textContent = headTitle(look, site, head);
    this.grid.mark(site.name, head);
    await this.detail.show([site], head);
  }

  #draw() {
    const several = this.panels.length > 1;
    const lines = this.panels.map((panel) => {
      const line = panel.draw(this.image);
      return several ? `${panel.look.run}: ${line}` : line;
    });
    this.foot.say(lines.join("  |  "));
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has(...LIST_KEYS)) this.gallery?.refresh(true);
    else if (has("item", "opened")) this.gallery?.mark();
    if (has("item", "opened", "sentence", ...(this.#opened ? [] : LIST_KEYS))) {
      this.ready = this.#show();
      return;
    }
    if (!this.panels.length) return;
    if (has(...LIST_KEYS)) this.foot.carry(this.gallery.pager("text"));
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (has("bsite", "bhead")) this.ready = this.#loadDetail();
    if (has("unit", "zoom", "map", "scale", "sink")) this.detail?.refresh(changed);
    if (has("site", "head")) this.ready = this.#load();
    else if (has("token", "found", "by", ...VEIL_KEYS)) this.#draw();
  }

  key(event) {
    const { state, panels: [panel] } = this;
    const flip = (key) => () => state.set({ [key]: !state.get(key) });
    const many = this.gallery?.turning
      ?? { ArrowLeft: () => panel.step(-1), ArrowRight: () => panel.step(1) };
    const turn = (by) => () => state.set(nextLayer(panel.layers, state, ["site", "head"], by));
    const one = panel ? {
      ArrowUp: () => panel.stepRegion(-1), ArrowDown: () => panel.stepRegion(1),
      c: flip("cells"), b: flip("boxes"), "[": turn(-1), "]": turn(1),
      t: () => panel.tools.bar.querySelector("button").click(), Escape: () => this.#leave(),
    } : {};
    const act = { ...many, ...one }[event.key];
    act?.();
    return act !== undefined;
  }

  // Back to all words, and from there to all texts.
  #leave() {
    const { state } = this;
    const asked = state.get("token") !== null || state.get("found") !== null;
    if (!asked && this.gallery) state.set({ opened: false });
    else state.set(UNASKED);
  }

  repaint() {
    this.panels.forEach((panel) => panel.repaint());
    this.detail?.repaint();
    this.grid?.repaint();
  }

  stop() {
    this.gallery?.stop();
    this.grid?.stop();
  }
}

// Texts that were understood: what was said of them, and what in them that came from; of one run or
// of two.

import { chosenMap, hasAttention, mapChoices, mapPicker, neighbourMap } from "../classification/choices.js";
import { HeadDetail } from "../chart/detail.js";
import { headGrid, headTitle } from "../chart/grid.js";
import { card, segmented } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { Scrubber } from "../controls/scrubber.js";
import { hasWords } from "../document/axis.js";
import { PairFlow } from "../understanding/flow.js";
import { isPair, isTagged } from "../understanding/maps.js";
import { UnderstandingPanel } from "../understanding/panel.js";

export class UnderstandingView {
  constructor({ arrays, looks, state, foot, askExact, askClass }) {
    Object.assign(this, { arrays, looks: looks.slice(0, 2), state, foot, askExact });
    [this.look] = this.looks;
    this.alone = this.looks.length === 1;
    this.root = el("div", { class: "view understanding" });
    this.#build(askClass);
    this.ready = this.#load();
  }

  #build(askClass) {
    const { state, arrays, alone } = this;
    this.picks = mapPicker(this.looks, state);
    this.panels = this.looks.map((look, number) => new UnderstandingPanel({
      look, state, arrays, alone, number, askClass, tools: alone ? [this.picks] : [],
      choose: (token) => state.set({ token }), point: (panel, token) => this.#point(panel, token),
    }));
    const cards = this.panels.map(({ root }) => root);
    if (alone) {
      this.flow = isPair(this.look)
        ? new PairFlow({ arrays, look: this.look, state, say: (text) => this.foot.say(text) }) : null;
      this.root.append(...[...cards, this.flow?.root, this.#mapCard(), this.#headsCard()].filter(Boolean));
    } else {
      this.root.append(el("div", { class: "row-tools" }, this.picks), el("div", { class: "halves" }, ...cards));
    }
    this.#transport();
  }

  #mapCard() {
    const { arrays, look, state } = this;
    this.unit = segmented(
      "Units", [["words", "words"], ["pieces", "pieces"]], state.get("unit"), (unit) => state.set({ unit })
    );
    this.unit.hidden = !hasWords(look.axes.text);
    this.mapTitle = el("span", { class: "note" });
    this.detail = new HeadDetail({
      arrays, look, state, say: (text) => this.foot.say(text), askExact: this.askExact,
      title: () => `${look.run} · ${this.mapTitle.textContent}`,
    });
    return card("Weights", { id: "map", tools: [this.unit, this.detail.tools.bar] },
      el("div", { class: "caption" }, this.mapTitle, this.detail.badge), this.detail.root);
  }

  #headsCard() {
    const { arrays, look, state } = this;
    if (!hasAttention(look)) return null;
    const sites = look.sites.filter(({ derived }) => !derived);
    this.grid = headGrid({
      arrays, look, sites, state, choose: (site, head) => state.set({ site, head }),
    });
    return card("Every head", { id: "heads", tools: this.grid.tools }, this.grid.body);
  }

  // Words with tags are stepped through.
  #transport() {
    if (!isTagged(this.look)) {
      this.foot.carry();
      return;
    }
    const { tokens } = this.look.axes.decision;
    this.scrub = new Scrubber({
      steps: tokens.length, value: this.panels[0].at, name: (at) => tokens[at],
      change: (token) => this.state.set({ token }),
    });
    this.foot.carry(this.scrub.root);
  }

  async #load() {
    const { panels } = this;
    await Promise.all(panels.map((panel) => panel.load()));
    this.#point(panels[0], null);
    if (!this.alone) return;
    const pick = chosenMap(this.look, this.state);
    this.mapTitle.textContent = pick.sites.length === 1 && !pick.sites[0].derived
      ? headTitle(this.look, pick.sites[0], pick.head) : pick.title;
    this.grid?.mark(pick.sites.length === 1 ? pick.sites[0].name : "", pick.head);
    await Promise.all([this.detail.show(pick.sites, pick.head), this.flow?.load(this.#between(pick))]);
  }

  // Maps of the whole model are of the decision alone: between texts there is attention.
  #between(pick) {
    if (!pick.sites[0].derived) return pick;
    const layers = mapChoices(this.look).find(({ sites }) => !sites[0].derived);
    return { sites: layers.sites, head: "mean", title: `${layers.words}, mean of all heads` };
  }

  #point(panel, token) {
    const lines = this.panels.map((one) => {
      const line = one.draw(one === panel ? token : null);
      return this.alone ? line : `${one.look.run}: ${line}`;
    });
    this.foot.say(lines.join("  |  "));
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("site", "head")) this.picks.refresh();
    if (has("unit")) this.unit?.show(this.state.get("unit"));
    if (has("token")) this.scrub?.show(this.panels[0].at);
    if (has("site", "head", "token")) this.ready = this.#load();
    else if (has("unit", "zoom", "map", "scale", "sink")) this.detail?.refresh(changed);
    this.flow?.refresh(changed);
  }

  key(event) {
    const { state } = this;
    const turn = (by) => () => state.set(neighbourMap(this.look, state, by));
    const steps = this.scrub ? {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true), " ": () => this.scrub.toggle(),
    } : {};
    const own = this.alone ? {
      w: () => state.set({ unit: state.get("unit") === "words" ? "pieces" : "words" }),
      t: () => this.detail.tools.bar.querySelector("button").click(),
    } : {};
    const flow = this.flow ? { r: () => state.set({ mode: state.get("mode") === "in" ? "out" : "in" }) } : {};
    const acts = {
      ...steps, ...own, ...flow, "[": turn(-1), "]": turn(1),
      Escape: () => state.set({ site: "all", head: "mean", token: null }),
    };
    acts[event.key]?.();
    return event.key in acts;
  }

  repaint() {
    this.#point(this.panels[0], null);
    this.detail?.repaint();
    this.grid?.repaint();
  }

  stop() {
    this.scrub?.stop();
    this.grid?.stop();
  }
}

// A language model: the text as a strip of tokens; one is asked, and what it looks at is tinted.

import { extent, isSelf } from "../document/attention.js";
import { groupHolding, groupsOf, hasWords, lastWord, tokenAt } from "../document/axis.js";
import { badge, card, segmented, toggle } from "../controls/controls.js";
import { HeadDetail, isLong } from "../chart/detail.js";
import { el } from "../controls/dom.js";
import { percentText, quoted, tokenText } from "../controls/format.js";
import { gazeAt } from "../document/gaze.js";
import { headGrid, headTitle } from "../chart/grid.js";
import { headPicker, neighbour, resolved, sitesOf } from "../controls/picks.js";
import { choiceList, columnWords, keyList, readable, rowWords } from "../controls/readout.js";
import { Scrubber } from "../controls/scrubber.js";
import { TokenStrip } from "../chart/strip.js";

// Where to begin on a long text: a head that can be read exactly, else the first.
function firstHead(sites) {
  const deep = sites.find((site) => site.zoom);
  return deep ? { site: deep.name, head: deep.zoom.heads[0] } : { site: sites[0].name, head: 0 };
}

export class LanguageView {
  constructor({ arrays, looks, state, foot, askExact }) {
    Object.assign(this, { arrays, looks, state, foot, askExact });
    this.look = looks[Math.min(Math.max(state.get("look"), 0), looks.length - 1)];
    this.sites = this.look.sites.filter(isSelf);
    this.long = this.sites.some((site) => isLong(this.look, site));
    this.#definite();
    this.root = el("div", { class: "view language" });
    this.#build();
    this.#read();
    this.ready = this.#load();
  }

  // What is read depends on who reads: one tower of a model sees a text, another one an image.
  #read() {
    const [site] = sitesOf(this.sites, this.state.get("site"));
    const another = this.axis !== undefined && site.rows !== this.axisName;
    this.axisName = site.rows;
    this.axis = this.look.axes[site.rows];
    this.count = Math.min(this.axis.tokens.length, extent(this.look, site)[0]);
    this.unit.hidden = this.long || !hasWords(this.axis);
    this.strip = new TokenStrip(this.axis, {
      point: (at) => this.#ask(at), choose: (at) => this.#choose(at),
      move: (by) => this.scrub.move(by),
    });
    this.textHost.replaceChildren(this.strip.root);
    this.textCard.heading.textContent = this.axis.kind === "grid" ? "Image" : "Text";
    if (another) this.state.set({ token: null, step: null });
    this.#transport();
  }

  // The parts that one steps by: words where words are shown.
  #parts() {
    const unit = this.unit.hidden ? "pieces" : this.state.get("unit");
    const parts = groupsOf(this.axis, unit, this.count);
    return {
      parts, steps: parts.length, value: groupHolding(parts, this.#chosen()),
      name: (at) => parts[at].label,
    };
  }

  // A long text has no mean over all layers: it needs one of them. True if none was chosen yet.
  #definite() {
    const vague = this.long && !this.sites.some(({ name }) => name === this.state.get("site"));
    if (vague) this.state.set(firstHead(this.sites));
    return vague;
  }

  #build() {
    const { state } = this;
    this.picks = headPicker(this.sites, state, { all: !this.long });
    this.mode = segmented(
      "Direction", [["out", "looks at"], ["in", "is looked at by"]], state.get("mode"),
      (mode) => state.set({ mode })
    );
    this.sink = toggle("Hide sink", state.get("sink"), (sink) => state.set({ sink }));
    this.sinkNote = el("p", { class: "note warn", hidden: true });
    this.badge = badge();
    this.textHost = el("div");
    const legend = el(
      "p", { class: "legend" },
      ...this.legend().map(([kind, text]) => el("span", { class: `token ${kind}`, text }))
    );
    this.textCard = card("Text", { id: "text", tools: [this.picks, this.mode, this.sink] },
      el(
        "div", { class: "caption" }, this.title = el("span", { class: "note" }), this.badge, legend
      ), this.sinkNote, this.textHost);
    this.answer = el("div", { class: "answer" });
    this.tokenCard = card("Token", { id: "token" }, this.answer);
    // A long text stands beside what is said of a token; a short one leaves that place to the map.
    const map = this.#detailCard();
    const [beside, below] = this.long ? [this.textCard, map] : [map, this.textCard];
    const columns = el(
      "div", { class: "columns" }, beside, el("div", { class: "side" }, this.tokenCard)
    );
    this.root.append(...(this.long ? [columns, below] : [below, columns]), this.#headsCard() ?? "");
  }

  #detailCard() {
    const { arrays, look, state } = this;
    this.unit = segmented(
      "Units", [["words", "words"], ["pieces", "pieces"]], state.get("unit"),
      (unit) => state.set({ unit })
    );
    this.scale = segmented(
      "Colour scale", [["sqrt", "√"], ["linear", "linear"], ["log", "log"]], state.get("scale"),
      (scale) => state.set({ scale })
    );
    this.scale.hidden = this.long;
    this.detail = new HeadDetail({
      arrays, look, state, say: (text) => this.foot.say(text), askExact: this.askExact,
      title: () => this.title.textContent,
      choose: ({ row, column }) => this.#choose(
        state.get("mode") === "in" && column !== null ? column : row ?? column
      ),
    });
    return card("Map", { id: "map", tools: [this.unit, this.scale, this.detail.tools.bar] },
      el(
        "div", { class: "caption" }, this.mapTitle = el("span", { class: "note" }),
        this.detail.badge
      ), this.detail.root);
  }

  #headsCard() {
    const { arrays, look, state, sites } = this;
    if (sites.reduce((sum, site) => sum + site.heads, 0) < 2) return null;
    const own = sites.filter((site) => !site.derived);
    this.grid = headGrid(
      { arrays, look, sites: own, state, choose: (site, head) => state.set({ site, head }) }
    );
    return card("Every head", { id: "heads", tools: this.grid.tools }, this.grid.body);
  }

  #transport() {
    this.scrub?.stop();
    this.scrub = new Scrubber({
      ...this.#parts(),
      change: (at) => {
        const { from, to } = this.#parts().parts[at];
        this.state.set({ token: from, step: to - 1 });
      },
    });
    this.foot.carry(this.scrub.root);
  }

  async #load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const pick = await resolved(this.arrays, this.look, this.sites, this.state);
    if (turn !== this.turn) return;
    this.pick = pick;
    this.title.textContent = pick.title;
    this.mapTitle.textContent = pick.sites.length === 1 ? headTitle(
      this.look, pick.sites[0], pick.head
    ) : pick.title;
    this.grid?.mark(pick.sites[0].name, pick.sites.length === 1 ? pick.head : null);
    this.#noteSink();
    await Promise.all([this.#answerFor(this.#chosen()), this.detail.show(pick.sites, pick.head)]);
    this.detail.mark(this.#chosen(), this.#along());
  }

  #chosen() {
    return Math.min(this.state.get("token") ?? this.opening(), this.count - 1);
  }

  // The token that is asked until the reader has chosen.
  opening() {
    return lastWord(this.axis, this.count);
  }

  legend() {
    return [["", "given"], ["made", "written"], ["chosen", "asked"]];
  }

  // What a token is to the model.
  role(at) {
    return at >= (this.axis.prompt ?? Infinity) ? "written" : "given";
  }

  #noteSink() {
    const on = this.state.get("sink");
    this.sinkNote.hidden = !on;
    const first = quoted(tokenText(tokenAt(this.axis, 0)));
    this.sinkNote.textContent = `The first token ${first} is hidden as a sink; `
      + "what is left of each row is scaled up to sum to one.";
  }

  #along() {
    return this.state.get("mode") === "in" ? "column" : "row";
  }

  async #gaze(at) {
    const along = this.#along();
    const gaze = await gazeAt(this.arrays, this.look, this.pick.sites, this.pick.head, at, along);
    if (!this.state.get("sink")) return gaze;
    if (along === "column") return at === 0 ? { ...gaze, pairs: [] } : gaze;
    const sink = gaze.pairs.find(([place]) => place === 0)?.[1] ?? 0;
    const factor = sink < 0.999 ? 1 / (1 - sink) : 0;
    const pairs = gaze.pairs.filter(([place]) => place !== 0).map(
      ([place, weight]) => [place, weight * factor]
    );
    return { ...gaze, pairs, rest: gaze.rest === null ? null : gaze.rest * factor };
  }

  // The pointer is on a token: tint what it looks at, and go back when it leaves.
  async #ask(at) {
    this.hover = at;
    const asked = at ?? this.#chosen();
    if (!this.pick) return;
    const gaze = await this.#gaze(asked);
    if (this.hover !== at) return;
    this.strip.mark(this.#chosen(), asked);
    this.strip.tint(gaze.pairs);
    this.#say(asked, gaze);
  }

  #choose(at) {
    if (at === null) return;
    this.state.set({ token: at });
  }

  async #answerFor(at) {
    const turn = (this.answerTurn = (this.answerTurn ?? 0) + 1);
    const gaze = await this.#gaze(at);
    if (turn !== this.answerTurn) return;
    this.badge.show(gaze.exactness);
    this.strip.mark(at);
    this.strip.tint(gaze.pairs);
    this.strip.dim(this.state.get("step") ?? Infinity);
    this.strip.reveal(at);
    this.detail.mark(at, this.#along());
    this.#say(at, gaze);
    this.#tell(at, gaze);
  }

  #say(at, gaze) {
    const name = tokenText(tokenAt(this.axis, at));
    const labels = (place) => tokenText(tokenAt(this.axis, place));
    this.foot.say(
      this.state.get("mode") === "in" ? columnWords(name, gaze, labels, null, 0.02)
      : rowWords(name, gaze, labels, 0.02)
    );
  }

  #tell(at, gaze) {
    const parts = [el("p", { class: "token-name" }, el(
      "b", { dir: "auto", text: readable(tokenText(tokenAt(this.axis, at))) }
    ),
      el("span", { class: "note", text: `token ${at} · ${this.role(at)}` }))];
    const logP = this.axis.log_p?.[at];
    const choices = this.axis.choices?.[at];
    if (choices?.length) parts.push(choiceList(choices, tokenAt(this.axis, at)));
    else if (typeof logP === "number") parts.push(
      el("p", { class: "note", text: `probability ${percentText(Math.exp(logP))}` })
    );
    parts.push(el("h3", { text: this.state.get("mode") === "in" ? "Is looked at by" : "Looks at" }),
      keyList(gaze, this.axis, (place) => this.#jump(at, place)));
    this.answer.replaceChildren(...parts);
  }

  #jump(from, to) {
    if (this.long) this.detail.long.lookAt(
      ...(this.state.get("mode") === "in" ? [to, from] : [from, to])
    );
    this.state.set({ token: to });
  }

  refresh(changed) {
    if (this.#definite()) return;
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("site", "head")) this.picks.refresh();
    if (has("site") && sitesOf(this.sites, this.state.get("site"))[0].rows !== this.axisName) this.#read();
    if (has("mode")) this.mode.show(this.state.get("mode"));
    if (has("unit")) { this.unit.show(this.state.get("unit")); this.scrub.divide(this.#parts()); }
    if (has("scale")) this.scale.show(this.state.get("scale"));
    if (has("sink")) { this.sink.show(this.state.get("sink")); this.#noteSink(); }
    if (has("token")) this.scrub.show(this.#parts().value);
    if (has("site", "head")) this.#load();
    else if (has("token", "step", "mode", "sink") && this.pick) this.#answerFor(this.#chosen());
    if (
      !has("site", "head") && has("unit", "zoom", "map", "scale", "sink")
    ) this.detail.refresh(changed);
  }

  key(event) {
    const acts = {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true),
      " ": () => this.scrub.toggle(), r: () => this.state.set(
        { mode: this.state.get("mode") === "in" ? "out" : "in" }
      ),
      s: () => this.state.set({ sink: !this.state.get("sink") }), w: () => this.state.set(
        { unit: this.state.get("unit") === "words" ? "pieces" : "words" }
      ),
      "[": () => this.state.set(
        neighbour(this.sites, this.state, -1)
      ), "]": () => this.state.set(neighbour(this.sites, this.state, 1)),
      t: () => this.detail.tools.bar.querySelector("button").click(), Escape: () => this.state.set(
        { step: null }
      ),
    };
    if (!(event.key in acts)) return false;
    acts[event.key]();
    return true;
  }

  repaint() {
    this.#ask(null);
    this.detail.repaint();
    this.grid?.repaint();
  }

  stop() {
    this.scrub.stop();
    this.grid?.stop();
  }
}

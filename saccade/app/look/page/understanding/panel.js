// One run on one text or pair: what it said, and the text coloured by what that came from.

import { guessList, verdictHead } from "../classification/guesses.js";
import { chosenMap } from "../classification/choices.js";
import { badge, card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { quoted, scoreText, tokenText, weightText } from "../controls/format.js";
import { choiceList, readable } from "../controls/readout.js";
import { groupsOf, tokenAt } from "../document/axis.js";
import { decidedText, decisionGaze, decisionRule, isTagged } from "./maps.js";
import { TaggedWords, TextStrips } from "./texts.js";

const MOST_NAMED = 5;

export class UnderstandingPanel {
  // choose(decision), point(panel, token | null)
  constructor({ look, state, arrays, alone, number, askClass, choose, point, tools }) {
    Object.assign(this, { look, state, arrays, gaze: null });
    this.axis = look.axes.text;
    this.words = groupsOf(this.axis, "words");
    const events = { choose, point: (token) => point(this, token) };
    this.text = isTagged(look) ? new TaggedWords(look, events) : new TextStrips(look, events);
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.rule = el("p", { class: "note" });
    this.said = el("div", { class: "word-host" }, ...this.#verdict(askClass));
    const body = el("div", { class: "understood" },
      el("div", { class: "understood-text" }, this.text.root,
        el("div", { class: "caption map-name" }, this.title, this.badge), this.rule),
      this.said);
    this.root = card(alone ? "Text" : look.run, { id: `understood-${number}`, tools }, body);
  }

  #verdict(askClass) {
    const { look } = this;
    if (look.classes) return [verdictHead(look), ...guessList(look, askClass)];
    if (isTagged(look)) return [];
    return [el("div", { class: "token-name" }, el("b", { text: scoreText(look.score) }),
      el("span", { class: "note", text: "a number" }))];
  }

  // Which decision is shown: of a text there is one.
  get at() {
    const { tokens } = this.look.axes.decision;
    return isTagged(this.look) ? Math.min(Math.max(this.state.get("token") ?? 0, 0), tokens.length - 1) : 0;
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const pick = chosenMap(this.look, this.state);
    const gaze = await decisionGaze(this.arrays, this.look, pick, this.at);
    if (turn !== this.turn) return;
    Object.assign(this, { pick, gaze });
    const { derived } = pick.sites[0];
    this.title.textContent = derived
      ? `What ${quoted(decidedText(this.look, this.at))} came from: ${pick.title}` : `Where the model looks: ${pick.title}`;
    this.rule.textContent = decisionRule(this.look, pick, this.at);
    this.badge.show(gaze.exactness);
    if (isTagged(this.look)) this.#tell();
    this.draw();
  }

  // The word that is asked, and what else it might be.
  #tell() {
    const { tokens, choices } = this.look.axes.decision;
    this.said.replaceChildren(
      el("div", { class: "token-name" }, el("b", { dir: "auto", text: tokens[this.at] }),
        el("span", { class: "note", text: `word ${this.at + 1} of ${tokens.length}` })),
      choiceList(choices[this.at], choices[this.at][0][0])
    );
  }

  // `asked`: the token under the pointer.
  draw(asked = null) {
    if (!this.gaze) return "";
    this.text.tint(this.gaze.pairs, this.look.axes.decision.places[this.at], asked);
    return this.#line(asked);
  }

  #line(asked) {
    const name = (place) => readable(tokenText(tokenAt(this.axis, place)));
    const what = `${this.pick.title} of ${quoted(this.look.axes.decision.tokens[this.at])}`;
    if (asked !== null) {
      const weight = this.gaze.pairs.find(([place]) => place === asked)?.[1] ?? 0;
      return `${what}: ${weightText(weight, 3)} at ${name(asked)}`;
    }
    const sums = this.words.map(({ label, from, to }) => [
      label, this.gaze.pairs.reduce((sum, [at, weight]) => sum + (at >= from && at < to ? weight : 0), 0),
    ]);
    const most = sums.filter(([, weight]) => weight > 0).sort((a, b) => b[1] - a[1]).slice(0, MOST_NAMED);
    const named = most.map(([label, weight]) => `${readable(label)} ${weightText(weight)}`);
    return `${what}: ${named.join(", ") || "nothing"}`;
  }
}

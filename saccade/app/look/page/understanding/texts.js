// The text that was read, or two, or words with their tags; tinted by how much each token mattered.

import { groupsOf } from "../document/axis.js";
import { inkOn, shade } from "../controls/colour.js";
import { rove } from "../controls/controls.js";
import { el, style } from "../controls/dom.js";
import { directionOf, percentText } from "../controls/format.js";
import { TokenStrip } from "../chart/strip.js";

const SIDES = ["first", "second"];

// Where each text begins and ends, with the special tokens around it.
function parts({ tokens, texts }) {
  return texts.map((_, i) => [
    i ? texts[i][0] : 0, i + 1 < texts.length ? texts[i + 1][0] : tokens.length,
  ]);
}

// point(token | null)
export class TextStrips {
  constructor({ axes: { text } }, { point }) {
    const events = { point, choose: () => {}, move: () => {} };
    const pair = text.texts.length > 1;
    this.strips = parts(text).map((range, i) => new TokenStrip(
      text, events, range, pair ? `the ${SIDES[i]} text` : undefined
    ));
    this.root = el("div", { class: "read-texts" }, ...this.strips.map(({ root }, i) => el(
      "div", { class: "read-text" },
      pair ? el("span", { class: "eyebrow", text: SIDES[i] }) : null, root
    )));
  }

  tint(pairs, place, asked) {
    for (const strip of this.strips) {
      strip.tint(pairs);
      strip.mark(null, asked);
    }
  }
}

// Words with their tags below them; one of them is asked. choose(decision), point(token | null)
export class TaggedWords {
  constructor(look, { choose, point }) {
    const { text, decision } = look.axes;
    this.groups = groupsOf(text, "words");
    const made = new Map(decision.places.map((place, at) => [place, at]));
    this.decisions = this.groups.map(({ from, to }) => {
      const place = decision.places.find((one) => one >= from && one < to);
      return place === undefined ? null : made.get(place);
    });
    this.nodes = this.groups.map((group, i) => this.#word(group, this.decisions[i], decision, { choose, point }));
    this.root = el("div", { class: "tagged-words", dir: directionOf(text.tokens.join("")) }, ...this.nodes);
    const buttons = () => this.nodes.filter((node) => node.matches("button"));
    this.root.addEventListener("keydown", rove(buttons, { columns: () => buttons().length }));
    this.root.addEventListener("pointerleave", () => point(null));
  }

  #word({ label, from }, at, decision, { choose, point }) {
    const on = { pointerover: () => point(from) };
    if (at === null) return el("span", { class: "tagged-word idle", on }, el("span", { class: "tagged-text", text: label }));
    const [[tag, probability]] = decision.choices[at];
    return el("button", {
      type: "button", class: "tagged-word", "data-at": at, "aria-pressed": "false",
      title: `${tag} ${percentText(probability)}`, on: { ...on, click: () => choose(at) },
    }, el("span", { class: "tagged-text", text: label }), el("span", { class: "tag", text: tag }));
  }

  // A word is as much looked at as its pieces are together.
  tint(pairs, place, asked) {
    const weights = new Map(pairs);
    this.groups.forEach(({ from, to }, i) => {
      let weight = 0;
      for (let token = from; token < to; token++) weight += weights.get(token) ?? 0;
      const lit = weight >= 0.01;
      style(this.nodes[i].firstElementChild, {
        "background-color": lit ? shade(weight, "sqrt") : "", color: lit ? inkOn(weight, "sqrt") : "",
      });
      const own = place >= from && place < to;
      this.nodes[i].classList.toggle("asked", asked !== null && asked >= from && asked < to);
      if (this.nodes[i].matches("button")) this.nodes[i].setAttribute("aria-pressed", String(own));
    });
  }
}

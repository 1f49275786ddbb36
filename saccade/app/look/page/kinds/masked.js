// A text with blanks: the words that fill them, and below it where every word looked.

import { card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { directionOf, isControl } from "../controls/format.js";
import { LanguageView } from "./language.js";
import { choiceList } from "../controls/readout.js";

// The places of an axis that were blank.
function blanksOf({ tokens, choices }) {
  return tokens.map((_, at) => at).filter((at) => choices?.[at]?.length);
}

export class MaskedView extends LanguageView {
  constructor(given) {
    super(given);
    this.buttons = new Map();
    const blanks = blanksOf(this.axis);
    const parts = [el("div", { class: "sentences" }, this.#sentence(blanks))];
    if (blanks.length) parts.push(card("Blanks", { id: "blanks" }, this.#choices(blanks)));
    this.root.prepend(...parts);
    this.#press();
  }

  // The text as it reads with its likeliest words; each can be asked.
  #sentence(blanks) {
    const { tokens, choices } = this.axis;
    const parts = tokens.map((token, at) => {
      if (!blanks.includes(at)) return isControl(token) ? "" : token;
      const word = el("button", {
        type: "button", class: "blank", text: choices[at][0][0],
        on: { click: () => this.state.set({ token: at }) },
      });
      this.buttons.set(at, word);
      return [/^ */.exec(token)[0], word];
    });
    return el(
      "p", { class: "sentence", dir: directionOf(this.look.text) },
      el("span", { class: "eyebrow", text: blanks.length ? "filled" : "text" }),
      el("span", null, ...parts.flat())
    );
  }

  #choices(blanks) {
    return el("div", { class: "blanks" }, ...blanks.map((at, nth) => el(
      "div", null, el("h3", { text: `Blank ${nth + 1}` }),
      choiceList(this.axis.choices[at], this.axis.choices[at][0][0])
    )));
  }

  #press() {
    const chosen = this.state.get("token") ?? this.opening();
    this.buttons.forEach((node, at) => node.setAttribute("aria-pressed", String(at === chosen)));
  }

  opening() {
    return blanksOf(this.axis)[0] ?? super.opening();
  }

  legend() {
    return [["", "given"], ["chosen", "asked"]];
  }

  role(at) {
    return this.axis.choices?.[at]?.length ? "blank" : "given";
  }

  refresh(changed) {
    super.refresh(changed);
    if (changed.has("token")) this.#press();
  }
}

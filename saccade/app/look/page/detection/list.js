// The objects of an image as a list: what was found, how surely and whether it is right; what was
// missed.

import { objectColour } from "./colours.js";
import { judgement, missedOf, tallyOf, tallyText, toldOf } from "./judged.js";
import { rove } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

export class ObjectList {
  // choose(number or null), hover(number or null): of an object that was found.
  // reveal(number or null): of one that was missed.
  constructor({ look, state, choose, hover, reveal }) {
    Object.assign(this, { look, state, choose, hover, reveal });
    this.tally = el("p", { class: "object-tally", role: "status" });
    this.list = el("ol", { class: "object-list", "aria-label": "Objects found" });
    this.list.addEventListener("keydown", (event) => this.keys?.(event));
    this.missed = el("div", { class: "object-missed" });
    this.root = el("div", { class: "object-part" }, this.tally, this.list, this.missed);
    this.fill();
  }

  // After a change of the score from which objects are told.
  fill() {
    const { look, state } = this;
    const told = toldOf(look, state);
    this.tally.textContent = tallyText(tallyOf(look, state));
    this.buttons = told.map((one) => this.#item(one));
    const none = el("li", { class: "note", text: "No object has so high a score; ask for less." });
    this.list.replaceChildren(
      ...(told.length ? this.buttons.map((one) => el("li", null, one)) : [none])
    );
    const missed = missedOf(look, told);
    this.missed.replaceChildren(...(missed.length ? [
      el("h3", { text: "Missed" }),
      el("ul", { class: "object-list" }, ...missed.map((one) => el("li", null, this.#lost(one)))),
    ] : []));
    this.mark();
  }

  #item(one) {
    const [sign, words] = judgement(one, this.look);
    const { number, label, score } = one;
    return el("button", {
      type: "button", class: "object-item", "data-number": number,
      "aria-label": [label, percentText(score), words].filter(Boolean).join(", "),
      on: {
        click: () => this.choose(this.state.get("found") === number ? null : number),
        pointerenter: () => this.hover(number), pointerleave: () => this.hover(null),
        focus: () => this.hover(number), blur: () => this.hover(null),
      },
    }, el("span", { class: "swatch", css: { background: objectColour(number) } }),
    el("span", { class: "object-name", dir: "auto", text: label }),
    el("span", { class: "meter" }, el("span", {
      class: "fill", css: { width: `${100 * score}%` },
    })),
    el("span", { class: "number", text: percentText(score) }),
    el("span", { class: sign === "✗" ? "object-verdict wrong" : "object-verdict" },
      sign ? el("b", { "aria-hidden": "true", text: `${sign} ` }) : null,
      words === "right" ? "" : words));
  }

  #lost({ label, number }) {
    return el("button", {
      type: "button", class: "object-item lost", "aria-label": `${label}, missed`,
      on: {
        pointerenter: () => this.reveal(number), pointerleave: () => this.reveal(null),
        focus: () => this.reveal(number), blur: () => this.reveal(null),
      },
    }, el("span", { class: "swatch hollow" }),
    el("span", { class: "object-name", dir: "auto", text: label }));
  }

  mark() {
    const chosen = this.buttons.findIndex(
      (one) => Number(one.dataset.number) === this.state.get("found")
    );
    this.buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === chosen)));
    this.keys = rove(() => this.buttons, { chosen: Math.max(0, chosen) });
  }
}

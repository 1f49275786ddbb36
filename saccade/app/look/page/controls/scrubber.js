// Stepping through what was written: a slider, a play button, arrow keys and space.

import { el, within } from "./dom.js";

const PACE = 650; // milliseconds a step, of words

export class Scrubber {
  // steps: how many; name(step): what was written there; change(step); pace: milliseconds a step.
  constructor({ steps, value, name, change, pace = PACE }) {
    Object.assign(this, { steps, name, change, pace });
    this.timer = null;
    this.range = el("input", { type: "range", min: 0, max: steps - 1, "aria-label": "Step" });
    this.output = el("output", { class: "step-name" });
    this.button = el("button", { type: "button", class: "play" });
    this.range.addEventListener("input", () => this.#go(Number(this.range.value)));
    this.button.addEventListener("click", () => this.toggle());
    this.root = el("div", { class: "scrubber" }, this.button, this.range, this.output);
    this.stop();
    this.show(value);
  }

  // The same text in other parts.
  divide({ steps, value, name }) {
    this.stop();
    Object.assign(this, { steps, name });
    this.range.max = steps - 1;
    this.show(value);
  }

  show(step) {
    this.step = within(step, 0, this.steps - 1);
    this.range.value = this.step;
    const name = this.name(this.step);
    const count = el("span", { class: "count", text: `${this.step + 1} / ${this.steps}` });
    this.output.replaceChildren(count, el("b", { dir: "auto", text: name }));
    this.range.setAttribute("aria-valuetext", `step ${this.step + 1} of ${this.steps}: ${name}`);
  }

  #go(step) {
    this.show(step);
    this.change(this.step);
  }

  move(by) {
    this.stop();
    this.#go(this.step + by);
  }

  toEnd(last) {
    this.stop();
    this.#go(last ? this.steps - 1 : 0);
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.step >= this.steps - 1) this.#go(0);
    this.#tell("Pause", true);
    this.timer = setInterval(() => {
      if (this.step >= this.steps - 1) this.stop();
      else this.#go(this.step + 1);
    }, this.pace);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.#tell("Play", false);
  }

  #tell(label, playing) {
    this.button.setAttribute("aria-label", label);
    this.button.setAttribute("aria-pressed", String(playing));
  }
}

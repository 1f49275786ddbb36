// Served mode: a text or an image goes in, a look comes out. What was given is kept when it fails.

import { button } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { ImageDrop } from "./image-drop.js";
import { Refusal, checked, eventsOf, post } from "./post.js";

export const EXAMPLES = [
  "The agreement on the European Economic Area was signed in August 1992.",
  "She does not eat the old apples.",
];

// What each kind of work lets one choose, and what one gets.
const ASKED = {
  translation: ["beam"], captioning: ["beam"], language: ["most_tokens", "temperature"],
  classification: [], detection: [], masked: [], understanding: [],
  answering: [], referring: [], fitting: [], choosing: [], joint: [],
  "text-to-image": ["temperature", "seed"],
};
const PROMISES = {
  understanding: "Write a sentence, and see what the model says of it, and what in it that came from.",
  masked: "Write a sentence with ___ for a word, and see what fills it, and where all words look.",
  captioning: "Give it an image, and see where on it each word of the caption looked.",
  classification: "Give it an image, and see what it is taken for, and what in it that came from.",
  detection: "Give it an image, and see which objects it finds, and where it looked for each.",
  answering: "Give it an image, ask a question, and see which regions each word looked at.",
  referring: "Give it an image and a phrase, and see which region it means, and why that one.",
  fitting: "Give it an image and a sentence, and see how well they fit, region by region.",
  choosing: "Give it an image and some sentences, one a line, and see which fits it, and why.",
  "text-to-image": "Write a prompt, and see an image painted for it, and which words each cell looked at.",
  joint: "Give it an image and a sentence with ___ for a word, and see what fills it.",
};

const PROMPTS = ["a red circle left of a blue square", "a small green triangle above a star"];
const ALONE = new Set(["text-to-image"]); // are not shown beside another run

export function isServed() {
  return document.querySelector('meta[name="saccade-server"][content="1"]') !== null;
}

const SURE = 0.3; // the score from which on objects become regions, as for `saccade predict`,
const MOST_REGIONS = 36; // and how many do

const KEPT = "saccade-asked";

// What was written and what was asked last, for as long as the tab is open: a reload loses neither.
function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

function remember(values) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ ...remembered(), ...values }));
  } catch {
    // A browser that keeps nothing: the page works without.
  }
}

function numberField(label, { value, min, max, step = 1 }) {
  const input = el("input", { type: "number", min, max, step, value, "aria-label": label });
  return Object.assign(
    el(
      "label", { class: "control number-field" }, el("span", { class: "name", text: label }), input
    ),
    { input }
  );
}

export class ServerBar {
  // receive(document): a new look has come.
  constructor({ receive, state }) {
    Object.assign(this, { receive, state });
    this.last = null;
    this.run = el("select", { "aria-label": "Run" });
    this.text = el(
      "textarea",
      {
        rows: 2, placeholder: "Write something for the model to read", "aria-label": "Text",
        spellcheck: "false", dir: "auto"
      }
    );
    this.pair = el("textarea", {
      rows: 2, placeholder: "And a second text to go with it", "aria-label": "Second text",
      spellcheck: "false", dir: "auto", hidden: true,
    });
    this.limit = el("p", { class: "note warn", role: "alert", hidden: true });
    this.drop = new ImageDrop(() => (this.takesText && !this.text.value.trim() ? this.text.focus() : this.ask()));
    this.drop.root.hidden = true;
    this.go = button("Look", () => this.ask(), { class: "button primary" });
    this.busy = el("p", { class: "busy", role: "status", hidden: true });
    this.error = el("div", { class: "error", role: "alert", hidden: true });
    this.written = el("p", { class: "written", dir: "auto", hidden: true });
    this.options = this.#options();
    for (const field of [this.text, this.pair]) {
      field.addEventListener("keydown", (event) => {
        const goesOn = event.shiftKey || (this.takesSentences && !event.ctrlKey && !event.metaKey);
        if (event.key !== "Enter" || goesOn || event.isComposing) return;
        event.preventDefault();
        this.ask();
      });
      field.addEventListener("input", () => {
        remember({ text: this.text.value, pair: this.pair.value });
        this.#measure();
      });
    }
    this.run.addEventListener("change", () => this.#suit());
    this.root = el("section", { class: "ask", "aria-label": "Ask the model" },
      el(
        "div", { class: "ask-row" },
        el(
          "label", { class: "control picker" }, el("span", { class: "name", text: "Run" }), this.run
        ),
        el("div", { class: "ask-texts" }, this.text, this.pair), this.drop.root, this.go
      ),
      this.limit, this.options, this.busy, this.written, this.error);
    this.ready = this.#inform();
  }

  #options() {
    this.beam = numberField("Beam", { value: 5, min: 1, max: 16 });
    this.most = numberField("New tokens", { value: 60, min: 1, max: 512 });
    this.temperature = numberField("Temperature", { value: "", min: 0, max: 5, step: 0.1 });
    this.seed = numberField("Seed", { value: 0, min: 0, max: 2 ** 31 });
    this.second = el("select", { "aria-label": "Compare with" });
    this.compare = el(
      "label", { class: "control picker" }, el("span", { class: "name", text: "Compare with" }),
      this.second
    );
    this.fields = {
      beam: this.beam, most_tokens: this.most, temperature: this.temperature, seed: this.seed,
    };
    return el("details", { class: "ask-options" }, el("summary", { text: "Options" }),
      el("div", { class: "ask-fields" }, this.beam, this.most, this.temperature, this.seed, this.compare));
  }

  async #inform() {
    try {
      const info = await (await checked(await fetch("/info"))).json();
      this.runs = info.runs.filter(({ looks }) => looks !== false);
      this.run.replaceChildren(
        ...this.runs.map(
          ({ name, description }) => el("option", { value: name, text: name, title: description })
        )
      );
      const { beam, most_tokens: most, text_characters: characters } = info.limits ?? {};
      if (beam) this.beam.input.max = beam;
      if (most) this.most.input.max = most;
      this.characters = characters ?? Infinity;
      this.#suit();
      this.#resume();
    } catch (error) {
      this.#fail(error);
    }
  }

  // After a reload: the same text, and the same look.
  #resume() {
    const { text = "", pair = "", asked } = remembered();
    this.text.value ||= text;
    this.pair.value ||= pair;
    this.#measure();
    if (!this.runs.some(({ name }) => name === asked?.run)) return;
    this.run.value = asked.run;
    this.#suit();
    this.second.value = asked.compare ?? "";
    for (const [name, { input }] of Object.entries(this.fields)) {
      input.value = asked[name] ?? input.value;
    }
    this.#send(asked, false, true);
  }

  // Whether the text is too long for this server, which says so at once; nothing is cut off.
  #measure() {
    const count = [...this.#written].length;
    const over = this.takesText && count > (this.characters ?? Infinity);
    this.limit.hidden = !over;
    this.limit.textContent = over ? `The text has ${count} characters; `
      + `this server takes at most ${this.characters}. Shorten it to go on.` : "";
    this.text.setAttribute("aria-invalid", String(over));
    this.go.disabled = over || !this.busy.hidden;
    return over;
  }

  // Only the options that this kind of run has.
  #suit() {
    const run = this.#chosen();
    this.text.parentElement.hidden = !this.takesText;
    this.pair.hidden = !this.takesPairs;
    this.drop.root.hidden = !this.takesImages;
    this.root.classList.toggle("both", this.takesImages && this.takesText);
    const asked = ASKED[run?.kind] ?? [];
    for (const [name, field] of Object.entries(this.fields)) field.hidden = !asked.includes(name);
    this.suited?.();
    const others = (this.runs ?? []).filter(
      ({ name, kind }) => name !== run?.name && kind === run?.kind && !ALONE.has(kind)
    );
    this.second.replaceChildren(
      el("option", { value: "", text: "no other run" }),
      ...others.map(({ name }) => el("option", { value: name, text: name }))
    );
    this.compare.hidden = others.length === 0;
    this.options.hidden = this.compare.hidden && asked.length === 0;
    this.#measure();
  }

  get kind() {
    return this.#chosen()?.kind;
  }

  get takesImages() {
    return this.#chosen()?.takes === "image";
  }

  // Some take an image and a text about it.
  get takesText() {
    return !this.takesImages || this.#chosen()?.asks === true;
  }

  get takesPairs() {
    return this.#chosen()?.pairs === true;
  }

  // Some choose among sentences, which are written one a line.
  get takesSentences() {
    return this.#chosen()?.chooses === true;
  }

  // The two texts of a pair go as one, with a tab between them; so do sentences to choose from.
  get #written() {
    const { value } = this.text;
    if (this.takesSentences) return value.split("\n").filter((line) => line.trim()).join("\t");
    return this.takesPairs ? `${value}\t${this.pair.value}` : value;
  }

  #chosen() {
    return (this.runs ?? []).find(({ name }) => name === this.run.value);
  }

  #body() {
    const run = this.#chosen();
    const given = {
      ...(this.takesImages ? { image: this.drop.file } : {}), ...(this.takesText ? { text: this.#written } : {}),
    };
    const body = { run: this.run.value, ...given };
    for (const name of ASKED[run?.kind] ?? []) {
      const { value } = this.fields[name].input;
      if (value !== "") body[name] = Number(value);
    }
    if (this.second.value) body.compare = this.second.value;
    return body;
  }

  ask() {
    const fields = !this.takesText ? [] : this.takesPairs ? [this.text, this.pair] : [this.text];
    const empty = this.takesImages && !this.drop.file ? this.drop
      : fields.find(({ value }) => !value.trim());
    if (empty || this.#measure()) {
      (empty ?? this.text).focus();
      return Promise.resolve();
    }
    return this.#send(this.#body(), this.kind === "language" && !this.second.value);
  }

  // The same text again, with this head kept exactly.
  askExact(site, head) {
    if (!this.last) return Promise.resolve();
    return this.#send({ ...this.last, zoom: [{ site: site.name, head }] }, false, true);
  }

  // The same image or text again, and what in it this class came from.
  askClass(label) {
    if (!this.last) return Promise.resolve();
    return this.#send({ ...this.last, of: label }, false, true);
  }

  // `again`: the same look as before, so that what was chosen on the page stays.
  async #send(body, stream, again = false) {
    this.controller?.abort();
    const controller = (this.controller = new AbortController());
    const clock = this.#start(controller);
    try {
      if (stream) await this.#stream(body, controller.signal);
      if (this.#wantsBoxes(body)) body.boxes = await this.#detected(body.image, controller.signal);
      const answer = await (await post("/v1/look", body, controller.signal)).json();
      this.last = body;
      if (!(body.image instanceof Blob)) remember({ asked: body });
      this.receive(answer, again);
    } catch (error) {
      if (error.name !== "AbortError") this.#fail(error, () => this.#send(body, stream, again));
    } finally {
      clearInterval(clock);
      if (this.controller === controller) this.#stop();
    }
  }

  // Some look at boxes, which a detector that is served beside them finds.
  #wantsBoxes({ run, boxes }) {
    return boxes === undefined && this.runs.find(({ name }) => name === run)?.boxes === true;
  }

  async #detected(image, signal) {
    const detector = this.runs.find(({ kind }) => kind === "detection");
    if (!detector) {
      throw new Refusal(`${this.run.value} looks at boxes, and no detector is served beside it. `
        + "Serve one too: saccade serve RUN DETECTOR");
    }
    const ask = { run: detector.name, image, threshold: SURE };
    const { predictions: [found] } = await (await post("/v1/predict", ask, signal)).json();
    const some = found.objects.map(({ box }) => box).filter(([left, top, right, bottom]) => right > left && bottom > top);
    return some.slice(0, MOST_REGIONS);
  }

  async #stream(body, signal) {
    const { run, text, most_tokens: most, temperature } = body;
    const ask = {
      run, text, stream: true, most_tokens: most,
      ...(temperature === undefined ? {} : { temperature })
    };
    const response = await post("/v1/predict", ask, signal);
    this.written.hidden = false;
    let soFar = "";
    for await (const event of eventsOf(response)) {
      if (event.error) throw new Refusal(event.error.message ?? "The server stopped half-way.");
      soFar = event.text ?? soFar; // each event has the whole text so far
      this.written.textContent = soFar;
      if (event.done) return;
    }
  }

  #start(controller) {
    const began = performance.now();
    const cancel = button("Stop", () => controller.abort(), { class: "button quiet" });
    const words = el("span");
    const tick = () => {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const does = this.takesImages ? "looking" : "reading";
      words.textContent = `The model is ${does}… ${seconds} s`;
    };
    this.error.hidden = true;
    this.busy.hidden = false;
    this.go.disabled = true;
    this.root.setAttribute("aria-busy", "true");
    this.busy.replaceChildren(el("span", { class: "pulse" }), words, cancel);
    tick();
    return setInterval(tick, 200);
  }

  #stop() {
    this.busy.hidden = true;
    this.#measure();
    this.written.hidden = true;
    this.written.textContent = "";
    this.root.removeAttribute("aria-busy");
  }

  #fail(error, again = null) {
    const kept = this.text.value && this.takesText ? " What you wrote is still here." : "";
    const words = error instanceof Refusal ? error.message : `The server cannot be reached.${kept}`;
    const wait = error.wait ? ` Try again in ${error.wait} s.` : "";
    this.error.replaceChildren(
      el("span", { text: words + wait }),
      again ? button("Try again", again, { class: "button quiet" }) : ""
    );
    this.error.hidden = false;
    if (error.field === "text") this.text.focus();
    if (error.field === "image") this.drop.focus();
  }

  fill(text) {
    this.text.value = text;
    remember({ text });
    this.text.focus();
  }
}

// Before the first look: what this is, and something to begin with.
export function emptyState(bar) {
  const words = el("p");
  const examples = el("div", { class: "examples" });
  const example = (text) => button(
    text, () => { bar.fill(text); bar.ask(); }, { class: "button example" }
  );
  bar.suited = () => {
    examples.hidden = bar.takesImages;
    const some = bar.kind === "text-to-image" ? PROMPTS : EXAMPLES;
    examples.replaceChildren(...some.map(example));
    words.textContent = PROMISES[bar.kind]
      ?? "Write a sentence, choose a run, and see which words each word looked at "
        + "while the model wrote.";
  };
  bar.suited();
  return el(
    "section", { class: "empty" }, el("h2", { text: "Where does a model look?" }), words, examples
  );
}

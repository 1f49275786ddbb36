// Puts the page together: head, views, foot, keys.

import { CaptionCompareView } from "./kinds/caption-compare.js";
import { VEIL_KEYS } from "./image/veil.js";
import { CaptionView } from "./kinds/caption.js";
import { ClassificationView } from "./kinds/classification.js";
import { nightfall, themeChanged, theme } from "./controls/colour.js";
import { CompareView } from "./kinds/compare.js";
import { DetectionView } from "./kinds/detection.js";
import { button, segmented } from "./controls/controls.js";
import { Arrays } from "./document/decode.js";
import { el } from "./controls/dom.js";
import { isolated } from "./controls/format.js";
import { helpDialog } from "./controls/help.js";
import { JointView } from "./kinds/joint.js";
import { LanguageView } from "./kinds/language.js";
import { MaskedView } from "./kinds/masked.js";
import { footBar } from "./controls/readout.js";
import { ServerBar, emptyState, isServed } from "./served/server.js";
import { State } from "./controls/state.js";
import { TextToImageView } from "./kinds/text-to-image.js";
import { TranslationView } from "./kinds/translation.js";
import { UnderstandingView } from "./kinds/understanding.js";

const DEFAULTS = {
  view: "", look: 0, site: "all", head: "mean", unit: "words", step: null, token: null, mode: "out",
  detail: null, zoom: null,
  map: "mean", scale: "sqrt", threshold: 0.1, sort: "name", filter: "", sink: false,
  asite: "all", ahead: "mean", bsite: "all", bhead: "mean",
  item: 0, veil: "spotlight", cells: false, opacity: 0.7, boxes: true, path: false, cell: null,
  patch: -1, encoder: "", least: 0.03,
  opened: false, order: "", truth: "", said: "", verdict: "", thumbs: true,
  found: null, sentence: null, sure: null, truths: true, points: false, by: "looks",
};

const FORMAT = "saccade-look";
const VERSION = 2;

// How each kind of document is shown: what one run did, and two runs side by side.
const KINDS = {
  translation: [TranslationView, CompareView],
  language: [LanguageView, CompareView],
  caption: [CaptionView, CaptionCompareView],
  classification: [ClassificationView, ClassificationView],
  detection: [DetectionView, DetectionView],
  masked: [MaskedView, CompareView],
  understanding: [UnderstandingView, UnderstandingView],
  joint: [JointView, JointView],
  "text-to-image": [TextToImageView, TextToImageView],
};

// Why this page cannot show a document; null if it can.
function whyNot({ format, version, kind }) {
  if (format !== FORMAT) return `This page reads "${FORMAT}", not "${format}".`;
  if (version !== VERSION) return `This page reads version ${VERSION} of a look, not ${version}.`;
  return Object.hasOwn(KINDS, kind) ? null : `This page knows no looks of the kind "${kind}".`;
}

class Page {
  constructor() {
    this.state = new State(DEFAULTS);
    this.host = document.querySelector("main");
    this.foot = footBar();
    this.help = helpDialog();
    this.#followSystem();
    this.tabs = el("div", { class: "tabs" });
    document.body.append(this.foot.root, this.help);
    this.#head();
    if (isServed()) this.server = new ServerBar(
      { receive: (answer, again) => this.receive(answer, again), state: this.state }
    );
    this.state.watch((changed) => this.#changed(changed));
    window.addEventListener("keydown", (event) => this.#key(event));
    nightfall.addEventListener("change", () => this.#followSystem());
  }

  #head() {
    this.dark = button(
      "", () => this.#flip(), { class: "button icon theme", "aria-label": "Dark or light" }
    );
    const help = button(
      "?", () => this.help.showModal(), { class: "button icon", "aria-label": "Help and keys" }
    );
    document.querySelector(".masthead .actions").append(this.tabs, this.dark, help);
  }

  start(data) {
    this.host.replaceChildren();
    if (this.server) this.host.append(this.server.root);
    this.body = el("div", { class: "body" });
    this.host.append(this.body);
    if (data) this.show(data);
    else if (this.server) {
      this.foot.show(false);
      this.body.append(emptyState(this.server));
    } else this.#trouble("This page holds no look.");
  }

  receive(data, again) {
    if (again) this.state.reset(...Object.keys(DEFAULTS));
    else this.state.reset("unit", "scale", "threshold", "sort", ...VEIL_KEYS);
    this.show(data);
  }

  show(data) {
    const refusal = whyNot(data);
    if (refusal) {
      this.#trouble(refusal);
      return;
    }
    this.data = data;
    this.arrays = new Arrays(data.blobs);
    this.runs = [...new Set(data.looks.map(({ run }) => run))];
    this.foot.show(true);
    const names = data.title.split(" · ");
    document.title = [...names.map(isolated), "Saccade"].join(" · ");
    document.querySelector(".masthead h1").replaceChildren(
      ...names.flatMap((text, i) => [i ? " · " : "", el("bdi", { text })])
    );
    this.#openView();
  }

  #openView() {
    this.view?.stop();
    this.view = null; // so that what the new view sets while it is built does not reach the old one
    const comparing = this.runs.length > 1;
    const wanted = this.state.get("view");
    const chosen = this.runs.includes(wanted) || comparing ? wanted : this.runs[0];
    const run = this.runs.includes(chosen) ? chosen : null;
    this.tabs.replaceChildren(...(comparing ? [this.#runTabs(run ?? "")] : []));
    const looks = this.data.looks.filter((look) => run === null || look.run === run);
    const { arrays, state, foot } = this;
    const askExact = this.server ? (site, head) => this.server.askExact(site, head) : null;
    const askClass = this.server ? (label) => this.server.askClass(label) : null;
    try {
      const { kind, images, subject } = this.data;
      const View = KINDS[kind][run === null ? 1 : 0];
      this.view = new View({ arrays, looks, state, foot, askExact, askClass, images, subject });
    } catch (error) {
      this.#trouble(error.message);
      return;
    }
    const notes = this.data.notes.map((text) => el("p", { class: "note", text }));
    const aside = el("aside", { class: "notes", "aria-label": "Notes" }, ...notes);
    this.body.replaceChildren(this.view.root, ...(notes.length ? [aside] : []));
    this.view.ready.then(
      () => { document.documentElement.dataset.ready = "1"; },
      (error) => this.#trouble(error.message),
    );
  }

  #runTabs(chosen) {
    const options = [["", "compare"], ...this.runs.map((run) => [run, run])];
    const fresh = { look: 0, site: "all", head: "mean", step: null, detail: null, zoom: null };
    return segmented("View", options, chosen, (view) => this.state.set({ view, ...fresh }));
  }

  #changed(changed) {
    if (!this.data) return;
    const keeps = (key) => this.view?.keeps?.has(key); // shows another by itself
    const other = ["view", "look", "item"].some((key) => changed.has(key) && !keeps(key));
    if (other) this.#openView();
    else this.view?.refresh(changed);
  }

  #trouble(message) {
    this.body.replaceChildren(
      el(
        "section", { class: "empty" }, el("h2", { text: "Nothing can be shown" }),
        el("p", { text: message })
      )
    );
  }

  // Until the reader has chosen.
  #followSystem() {
    if (!this.chosen) this.#dress(nightfall.matches ? "dark" : "light");
  }

  #flip() {
    this.chosen = true;
    this.#dress(theme() === "dark" ? "light" : "dark");
  }

  #dress(name) {
    document.documentElement.dataset.theme = name;
    themeChanged();
    this.view?.repaint();
  }

  #key(event) {
    if (
      event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || this.help.open
    ) return;
    const typing = event.target.closest?.(
      "input:not([type=range], [type=radio], [type=checkbox]), textarea, select"
    );
    if (typing) return;
    const inControl = event.target.closest?.("button, input, summary, a");
    if (
      inControl
      && (event.key === " " || (event.key.startsWith("Arrow") && inControl.matches("input")))
    ) return;
    if (event.key === "?") this.help.showModal();
    else if (event.key === "d") this.#flip();
    else if (!this.view?.key(event)) return;
    event.preventDefault();
  }
}

const page = new Page();
const text = document.getElementById("saccade-look")?.textContent.trim();
page.start(text ? JSON.parse(text) : null);

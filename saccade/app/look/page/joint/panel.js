// One run on one text about an image: what was said, which regions words looked at, which words
// regions, and what would be said without a region.

import { gridOf, lossesOf, RegionList, regionColour, regionMap, regionName, regionUnder } from "./regions.js";
import { guessList, verdictHead } from "../classification/guesses.js";
import { chosenLayer, layerPicker } from "../detection/choices.js";
import { drawObjectBoxes } from "../detection/paint.js";
import { TokenStrip } from "../chart/strip.js";
import { drawCell } from "../image/paint.js";
import { ImageStage } from "../image/stage.js";
import { MapSource } from "../image/tiles.js";
import { filmTools } from "../image/tools.js";
import { veilOf } from "../image/veil.js";
import { badge, card, segmented } from "../controls/controls.js";
import { pageColour } from "../controls/colour.js";
import { el } from "../controls/dom.js";
import { quoted, tokenText, weightText } from "../controls/format.js";
import { choiceList, readable } from "../controls/readout.js";
import { groupHolding, groupsOf } from "../document/axis.js";

const MOST_SAID = 4;
const PLACE = ["site", "head"];
const TRUE_BOX = "#ffffff";

export function layersBetween(look, rows, columns) {
  return look.sites.filter((site) => site.rows === rows && site.columns === columns);
}

function heaviest(weights, name) {
  const pairs = Array.from(weights, (weight, at) => [at, weight]).sort((a, b) => b[1] - a[1]);
  return pairs.slice(0, MOST_SAID).filter(([, weight], i) => i === 0 || weight >= 0.02)
    .map(([at, weight]) => `${name(at)} ${weightText(weight)}`).join(", ");
}

export class JointPanel {
  // `alone`: there is no other run beside it. say(): what the foot tells has changed. askClass():
  // another answer is asked about, where one may be.
  constructor({ look, entry, state, arrays, alone, number, say, askClass }) {
    Object.assign(this, { look, entry, state, say });
    this.source = new MapSource(arrays, look);
    this.layers = layersBetween(look, "words", "regions");
    this.back = layersBetween(look, "regions", "words");
    this.words = groupsOf(look.axes.words, "words");
    this.hovered = {};
    this.stage = new ImageStage({
      label: alone ? "The image" : `The image, ${look.run}`,
      point: (cell, place) => this.#hoverRegion(place && regionUnder(look, place)),
      choose: (cell, place) => this.#choose({ found: regionUnder(look, place), token: null }),
    });
    this.strip = new TokenStrip(look.axes.words, {
      point: (token) => this.#hover({ token }),
      choose: (token) => this.#choose({ token: this.#same(token) ? null : token, found: null }),
      move: (by) => this.step(by),
    });
    this.list = new RegionList({
      look, state, choose: (found) => this.#choose({ found, token: null }),
      hover: (found) => this.#hoverRegion(found),
    });
    this.title = el("p", { class: "note map-title" });
    this.badge = badge();
    this.tools = filmTools({
      model: () => this.#table(), sheet: () => this.stage.canvas,
      title: () => `${look.run} · ${entry.name} · ${look.regions.asked}`,
    });
    this.root = this.#card(alone, number, askClass);
  }

  #card(alone, number, askClass) {
    const { look, entry, state } = this;
    this.picks = layerPicker(this.layers, state, PLACE);
    this.by = segmented("Shade by", this.#shades(), state.get("by"), (by) => state.set({ by }));
    this.by.hidden = this.#shades().length < 2;
    const said = el("div", { class: "word-host" }, verdictHead(look),
      ...guessList(look, askClass, this.#noun()), ...this.#blanks());
    const about = el("div", { class: "word-part joint-part" }, this.strip.root, said, this.list.root,
      this.#rule());
    // The title changes under the pointer: nothing that one points at may move with it.
    const body = el("div", { class: "stage-body" }, el("div", { class: "stage-part" }, this.stage.root,
      this.by, el("div", { class: "caption joint-title" }, this.title, this.badge)), about);
    return card(alone ? entry.name : look.run, {
      id: `joint-${number}`, tools: [this.picks, this.tools.bar],
    }, body, this.tools.table);
  }

  // What guesses are.
  #noun() {
    const { among, chances } = this.look.regions;
    return among?.length ? "sentence" : chances.length ? "region" : "answer";
  }

  #shades() {
    const { without, chances } = this.look.regions;
    return [
      ["looks", "where words look"], ...(without.length ? [["without", "without this region"]] : []),
      ...(chances.length ? [["meant", "what is meant"]] : []),
    ];
  }

  #blanks() {
    const { choices } = this.look.axes.words;
    return (choices ?? []).filter((some) => some.length).map((some, nth) => el(
      "div", { class: "joint-blank" }, el("h3", { text: `Blank ${nth + 1}` }), choiceList(some, some[0][0])
    ));
  }

  #rule() {
    const { without, of_what: what } = this.look.regions;
    return without.length ? el("p", {
      class: "note", text: `Without it: how likely ${what} is once nothing is to be seen in that `
        + "region. What else shows the same place, such as the whole image, stays.",
    }) : null;
  }

  #same(token) {
    const chosen = this.state.get("token");
    return chosen !== null && this.#group(token) === this.#group(chosen);
  }

  #group(token) {
    return groupHolding(this.words, token);
  }

  // What is asked: a word or a region under the pointer, else what was chosen; neither is all.
  get focus() {
    const of = ({ token = null, found = null }) => (
      found !== null && found < this.look.regions.boxes.length ? { found }
        : token !== null && this.#group(token) >= 0 ? { word: this.#group(token) } : null
    );
    const { state } = this;
    return of(this.hovered) ?? of({ token: state.get("token"), found: state.get("found") }) ?? {};
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.picks.refresh();
    const pick = chosenLayer(this.layers, this.state, PLACE);
    const other = this.back[this.layers.indexOf(pick.site)];
    const [matrix, back] = await Promise.all(
      [[pick.site], [other]].map((sites) => this.source.matrix(sites, pick.head))
    );
    if (turn !== this.turn) return;
    Object.assign(this, { pick, matrix, backMatrix: back, other });
    this.badge.show(matrix.exactness);
  }

  // Of rows from … to, on average.
  #row({ data, columns }, from, to) {
    const mean = new Float32Array(columns);
    for (let row = from; row < to; row++) {
      for (let at = 0; at < columns; at++) mean[at] += data[row * columns + at] / (to - from);
    }
    return mean;
  }

  draw(image) {
    if (!this.matrix) return "";
    this.image = image;
    const shown = this.#shown();
    const { state } = this;
    this.by.show(state.get("by"));
    this.list.mark();
    this.list.tell(shown.onRegions);
    this.strip.tint(shown.onWords ? Array.from(shown.onWords, (weight, at) => [at, weight]) : []);
    const chosen = state.get("token");
    this.strip.mark(chosen, this.hovered.token ?? chosen);
    this.title.textContent = shown.title;
    this.#paint(shown);
    this.tools.refresh();
    return shown.line;
  }

  #shown() {
    const { focus, pick, look } = this;
    const named = (at) => readable(regionName(look, at));
    const by = this.state.get("by");
    const word = focus.word === undefined ? null : this.words[focus.word];
    const [from, to] = word ? [word.from, word.to] : [0, this.matrix.rows];
    const onRegions = this.#row(this.matrix, from, to);
    if (focus.found !== undefined) {
      const onWords = this.#row(this.backMatrix, focus.found, focus.found + 1);
      const title = `Which words ${quoted(regionName(look, focus.found))} looked at: `
        + pick.title.replace(pick.site.name, this.other.name);
      const token = (at) => readable(tokenText(look.axes.words.tokens[at]));
      return { onWords, onRegions: null, map: null, title, line: `${title}: ${heaviest(onWords, token)}` };
    }
    const other = this.#otherShade(by, word);
    if (other) return { ...other, onRegions };
    const who = word ? quoted(word.label) : "all words, on average,";
    const title = `Which regions ${who} looked at: ${pick.title}`;
    const onWords = word ? null : this.#row(this.backMatrix, 0, this.backMatrix.rows);
    return {
      onWords, onRegions, map: onRegions, title, line: `${title}: ${heaviest(onRegions, named)}`,
    };
  }

  // Maps that belong to no word.
  #otherShade(by, word) {
    const { look } = this;
    const { without, chances, of_what: what } = look.regions;
    const named = (at) => readable(regionName(look, at));
    if (word || !((by === "without" && without.length) || (by === "meant" && chances.length))) return null;
    if (by === "meant") {
      const title = "How likely each region is meant";
      return { onWords: null, map: chances, title, line: `${title}: ${heaviest(chances, named)}` };
    }
    const losses = lossesOf(look).map((loss) => Math.max(0, loss));
    const title = `How much less likely ${what} is without each region`;
    const none = losses.every((loss) => loss < 0.0005);
    return { onWords: null, map: losses, title, line: none ? `${title}: no region is needed` : `${title}: ${heaviest(losses, named)}` };
  }

  #paint({ map, line }) {
    const { look, image, state } = this;
    const cells = gridOf(look);
    const veil = veilOf(state, { peak: false, boxes: null });
    const laid = map && regionMap(look, map);
    this.stage.draw({
      image, words: line, map: laid, grid: cells ?? laid?.grid ?? regionMap(look, new Float32Array(look.regions.boxes.length)).grid,
      look: cells ? veil : { ...veil, cells: false },
      over: ({ pen, wide, high }) => this.#over(pen, wide, high),
    });
  }

  // Boxes and their names; of cells the one that is asked, or meant.
  #over(pen, wide, high) {
    const { look, focus, state } = this;
    const { boxes, meant, truth } = look.regions;
    const cells = gridOf(look);
    const asked = focus.found;
    const told = cells || !state.get("boxes") ? [] : boxes.map((box, number) => ({
      box, colour: regionColour(look, number), label: regionName(look, number),
      strong: number === (asked ?? meant), quiet: asked !== undefined && asked !== number,
    })).slice(1);
    const whole = asked === 0 ? [{ box: [0.005, 0.005, 0.995, 0.995], colour: TRUE_BOX, label: "", strong: true }] : [];
    const there = truth ? [{ box: truth, colour: TRUE_BOX, label: "what is meant", dashed: true }] : [];
    drawObjectBoxes(pen, [...whole, ...told, ...there], wide, high);
    const cell = asked ?? meant;
    if (cells && cell) drawCell(pen, cell - cells.special, cells, wide, high, pageColour("mark"), 2.5);
  }

  #hoverRegion(found) {
    this.#hover({ found: found ?? null });
  }

  #hover(hovered) {
    if (!this.image || String(Object.values(hovered)) === String(Object.values(this.hovered))) return;
    this.hovered = hovered;
    this.say(this.draw(this.image));
  }

  #choose(patch) {
    this.hovered = {};
    this.state.set(patch);
  }

  // The next word; after the last come all.
  step(by) {
    const { words, state } = this;
    const at = state.get("token") === null ? -1 : this.#group(state.get("token"));
    const next = (at + 1 + by + words.length + 1) % (words.length + 1) - 1;
    this.#choose({ token: next < 0 ? null : words[next].from, found: null });
  }

  stepRegion(by) {
    const { numbers } = this.list;
    const at = numbers.indexOf(this.state.get("found"));
    const next = (at + 1 + by + numbers.length + 1) % (numbers.length + 1) - 1;
    this.#choose({ found: next < 0 ? null : numbers[next], token: null });
  }

  // Words down, regions across.
  #table() {
    const { look, matrix } = this;
    if (!matrix) return null;
    const { tokens } = look.axes.words;
    return {
      matrix, other: false, rowLabels: tokens.map(tokenText),
      columnLabels: look.regions.boxes.map((_, number) => regionName(look, number)),
    };
  }

  repaint() {
    this.stage.repaint();
    if (this.image) this.draw(this.image);
  }
}

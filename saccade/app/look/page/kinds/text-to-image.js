// An image that was drawn for a text: painted cell by cell, and which words and earlier cells each
// cell looked at.

import { groupsOf } from "../document/axis.js";
import { bordersOf, cellsOf, mapAt } from "../image/maps.js";
import { loadImage } from "../image/paint.js";
import { cellName } from "../image/places.js";
import { ImageStage } from "../image/stage.js";
import { ImageTiles, MapSource } from "../image/tiles.js";
import { VEIL_KEYS, VeilTools, veilOf } from "../image/veil.js";
import { CaptionWords } from "../captioning/strip.js";
import { LayerMasks } from "../painting/masks.js";
import {
  cellCard, meanShares, pickedWordCard, pickedWordLine, shareLine, sharesOf, wholeCard, wordMap,
} from "../painting/side.js";
import { pageColour } from "../controls/colour.js";
import { badge, card } from "../controls/controls.js";
import { el, within } from "../controls/dom.js";
import { headPicker, neighbour, resolved } from "../controls/picks.js";
import { Scrubber } from "../controls/scrubber.js";

const ALL = { step: null, cell: null, token: null }; // the whole image, and nothing chosen
const WHOLE_FILM = 9000; // milliseconds to paint an image in, if that is neither a rush nor a crawl

export class TextToImageView {
  constructor({ arrays, looks, state, foot, images }) {
    Object.assign(this, { arrays, state, foot });
    [this.look] = looks;
    this.entry = images[this.look.image];
    const { seen, cells } = this.look.axes;
    Object.assign(this, { seen, grid: cells.grid, count: cellsOf(cells.grid) });
    this.texts = groupsOf(seen, "words", seen.grid.special);
    this.source = new MapSource(arrays, this.look);
    this.hoverWord = this.hoverCell = null;
    this.root = el("div", { class: "view caption-view painting-view" });
    this.#build();
    this.ready = this.#load();
  }

  #build() {
    const { state, look } = this;
    this.words = new CaptionWords({
      label: "Prompt", point: (word) => this.#point({ hoverWord: word }),
      choose: (token) => state.set({ ...ALL, token: state.get("token") === token ? null : token }),
    });
    this.stage = new ImageStage({
      label: "The image", point: (cell) => this.#point({ hoverCell: cell }),
      choose: (cell) => state.set({ ...ALL, cell: state.get("cell") === cell ? null : cell }),
    });
    this.masks = new LayerMasks({
      arrays: this.arrays, look, grid: this.grid,
      choose: ({ name }) => state.set(
        state.get("site") === name ? { site: "all", head: "mean" } : { site: name, head: "mean" }
      ),
    });
    this.tiles = new ImageTiles({
      source: this.source, rows: look.sites.map((site) => [
        `${site.name} · its ${look.drawn.sees[site.name]}`, [site],
      ]),
      choose: (site, head) => state.set(
        state.get("site") === site.name && state.get("head") === head
          ? { site: "all", head: "mean" } : { site: site.name, head }
      ),
    });
    this.heads = card("Every head", {
      id: "heads", note: "Which earlier cells each head looked at, as the code of this cell was chosen.",
    }, this.tiles.root);
    this.root.append(
      el("div", { class: "caption-head" }, this.words.root), this.#stageCard(), this.heads
    );
  }

  #stageCard() {
    this.veil = new VeilTools(this.state, { boxes: false, path: false });
    this.picks = headPicker(this.look.sites, this.state);
    this.badge = badge();
    this.title = el("span", { class: "note" });
    this.host = el("div", { class: "word-host" });
    const left = el("div", { class: "stage-part" }, this.stage.root, this.veil.root);
    const right = el("div", { class: "word-part" },
      el("div", { class: "caption" }, this.title, this.badge), this.host,
      el("div", { class: "masks-part" }, el("h3", { text: "What each layer may see" }), el("p", {
        class: "note", text: "All of the text, and of the image so far what is marked.",
      }), this.masks.root));
    return card("Where it looked", { id: "where", tools: [this.picks] },
      el("div", { class: "stage-body" }, left, right));
  }

  async #load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const pick = await resolved(this.arrays, this.look, this.look.sites, this.state);
    const [matrix, image] = await Promise.all([
      this.source.matrix(pick.sites, pick.head), loadImage(this.entry.source), this.masks.load(),
    ]);
    if (turn !== this.turn) return;
    const first = !this.image;
    Object.assign(this, { matrix, image });
    this.title.textContent = pick.title;
    this.badge.show(matrix.exactness);
    if (first) {
      this.words.show(this.texts);
      this.#transport();
    }
    this.#draw();
  }

  #transport() {
    this.scrub = new Scrubber({
      steps: this.count, value: this.state.get("step") ?? this.count - 1,
      name: (step) => cellName(step, this.grid), pace: within(WHOLE_FILM / this.count, 30, 650),
      change: (step) => { this.hoverCell = null; this.state.set({ ...ALL, step }); },
    });
    this.foot.carry(this.scrub.root);
  }

  get #painted() {
    const step = this.state.get("step");
    return step === null ? this.count : within(step, 0, this.count - 1) + 1;
  }

  // Which cell is asked about, or which word; neither is all of them.
  #asked() {
    const { hoverCell, hoverWord, state } = this;
    if (hoverCell !== null && hoverCell < this.#painted) return { row: hoverCell, word: null };
    if (hoverWord !== null) return { row: null, word: hoverWord };
    const [cell, token, step] = ["cell", "token", "step"].map((key) => state.get(key));
    if (cell !== null) return { row: within(cell, 0, this.count - 1), word: null };
    if (token !== null) return { row: null, word: within(token, 0, this.texts.length - 1) };
    return { row: step === null ? null : this.#painted - 1, word: null };
  }

  #draw() {
    const { row, word } = this.#asked();
    const map = row !== null ? mapAt(this.matrix, row, this.seen.grid)
      : word !== null ? wordMap(this.matrix, this.texts[word], this.grid) : null;
    const shares = row !== null ? sharesOf(this.matrix, row, this.texts)
      : word === null ? meanShares(this.matrix, this.texts) : null;
    const line = this.#line(row, word, map, shares);
    const painted = this.#painted;
    this.stage.draw({
      image: this.image, map, words: line, grid: this.grid,
      look: { ...veilOf(this.state), boxes: null, path: null, marked: row },
      over: (drawn) => this.#cover(drawn, painted),
    });
    this.words.light(word ?? -1, shares && this.#lights(shares));
    this.host.replaceChildren(...this.#card(row, word, map, shares));
    this.masks.show(row, this.state.get("site"));
    this.heads.hidden = row === null;
    if (row !== null) this.#showHeads(row);
    this.foot.say(line);
  }

  // As bright as the share of a word among those of the prompt: what frames a text and fills it up
  // often has most, and would leave them in the dark.
  #lights(shares) {
    const told = this.texts.map(({ from }) => this.seen.words.some(([start]) => start === from));
    const most = Math.max(...shares.filter((_, i) => told[i]), 0);
    return shares.map((share) => Math.min(share, most));
  }

  #line(row, word, map, shares) {
    if (word !== null) return pickedWordLine(this.texts[word].label, map);
    const who = row === null ? "All cells" : `The cell at ${cellName(row, this.grid)}`;
    return `${who} looked at: ${shareLine(this.texts, shares)}`;
  }

  #card(row, word, map, shares) {
    const { texts, grid, count, look } = this;
    if (word !== null) return pickedWordCard({ label: texts[word].label, map });
    if (row === null) return wholeCard({ words: texts, shares });
    return cellCard({
      cell: row, grid, shares, words: texts, map, count, begun: look.drawn.begun,
      logP: look.axes.cells.log_p[row],
    });
  }

  #showHeads(row) {
    this.tiles.mark(this.state.get("site"), this.state.get("head"));
    this.tiles.show({ image: this.image, from: row, to: row + 1, look: veilOf(this.state) });
  }

  // What has not been painted yet.
  #cover({ pen, wide, high }, painted) {
    const { width, across, down } = this.grid;
    const [xs, ys] = [bordersOf(across), bordersOf(down)];
    pen.fillStyle = pageColour("hush");
    for (let cell = painted; cell < this.count; cell++) {
      const [x, y] = [cell % width, Math.floor(cell / width)];
      const [left, top] = [Math.floor(xs[x] * wide), Math.floor(ys[y] * high)];
      pen.fillRect(left, top, Math.ceil(xs[x + 1] * wide) - left, Math.ceil(ys[y + 1] * high) - top);
    }
  }

  #point(under) {
    Object.assign(this, under);
    if (this.image) this.#draw();
  }

  refresh(changed) {
    const has = (...keys) => keys.some((key) => changed.has(key));
    if (has("site", "head")) this.picks.refresh();
    if (has(...VEIL_KEYS)) this.veil.refresh();
    if (!this.image) return;
    if (has("site", "head")) this.ready = this.#load();
    else if (has("step", "cell", "token", ...VEIL_KEYS)) {
      const step = this.state.get("step");
      if (step === null) this.scrub.stop();
      if (has("step")) this.scrub.show(step ?? this.count - 1);
      this.#draw();
    }
  }

  key(event) {
    if (!this.scrub) return false;
    const acts = {
      ArrowLeft: () => this.scrub.move(-1), ArrowRight: () => this.scrub.move(1),
      Home: () => this.scrub.toEnd(false), End: () => this.scrub.toEnd(true),
      " ": () => this.scrub.toggle(),
      c: () => this.state.set({ cells: !this.state.get("cells") }),
      "[": () => this.state.set(neighbour(this.look.sites, this.state, -1)),
      "]": () => this.state.set(neighbour(this.look.sites, this.state, 1)),
      Escape: () => {
        this.hoverCell = this.hoverWord = null;
        this.state.set({ ...ALL, site: "all", head: "mean" });
      },
    };
    if (!(event.key in acts)) return false;
    acts[event.key]();
    return true;
  }

  repaint() {
    this.stage.repaint();
    this.masks.repaint();
    this.tiles.repaint();
    if (this.image) this.#draw();
  }

  stop() {
    this.scrub?.stop();
  }
}

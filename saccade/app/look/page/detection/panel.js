// One run on one image: the image with its objects and where each was looked for, the list of them,
// what is truly there, and every layer and head in small.

import { AmongCard } from "./among.js";
import { chosenLayer, layerPicker } from "./choices.js";
import { objectColour } from "./colours.js";
import { countedText, missedOf, toldOf } from "./judged.js";
import { ObjectList } from "./list.js";
import { drawLights, drawObjectBoxes, drawPoint } from "./paint.js";
import { cellUnder, mapAt, massIn, middleOf } from "../image/maps.js";
import { paintImage } from "../image/paint.js";
import { placeBars, placeLine } from "../image/places.js";
import { ImageStage } from "../image/stage.js";
import { ImageTiles, MapSource } from "../image/tiles.js";
import { filmTools } from "../image/tools.js";
import { veilOf } from "../image/veil.js";
import { badge, card } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText, quoted } from "../controls/format.js";

const LOST = "#ffffff";
const THERE = 280; // pixels across of the image with what is there
export const ACROSS_KEYS = ["site", "head"];
export const INNER_KEYS = ["asite", "ahead"];

export class ObjectsPanel {
  // `alone`: there is no other run beside it. say(): what the foot tells has changed.
  constructor({ look, entry, state, arrays, alone, number, say }) {
    Object.assign(this, { look, entry, state, say });
    this.source = new MapSource(arrays, look);
    const between = (rows, columns) => look.sites.filter(
      (site) => site.rows === rows && site.columns === columns
    );
    this.across = between("objects", "image");
    this.inner = between("points", "image");
    this.grid = look.axes.image.grid;
    this.points = look.axes.points?.grid ?? null;
    this.stage = new ImageStage({
      label: alone ? "The image" : `The image, ${look.run}`,
      point: (cell, place) => this.#point(place), choose: (cell, place) => this.#choose(place),
    });
    this.list = new ObjectList({
      look, state, choose: (found) => state.set({ found, points: false }),
      hover: (found) => this.#hover(found), reveal: (lost) => this.#reveal(lost),
    });
    this.title = el("span", { class: "note" });
    this.badge = badge();
    this.falls = el("div", { class: "word-host" });
    this.tools = filmTools({
      model: () => this.#table(), sheet: () => this.stage.canvas,
      title: () => `${look.run} · ${entry.name} · ${this.title.textContent}`,
    });
    this.root = el("div", { class: "object-panel" }, this.#main(alone, number), ...this.#more(number));
  }

  #main(alone, number) {
    const { look, entry } = this;
    this.picks = layerPicker(this.across, this.state, ACROSS_KEYS);
    this.innerPicks = this.inner.length
      ? layerPicker(this.inner, this.state, INNER_KEYS, "Points: ") : null;
    const about = el("div", { class: "word-part" }, this.list.root, this.#thereHost(),
      el("div", { class: "caption map-name" }, this.title, this.badge), this.falls);
    const body = el("div", { class: "stage-body" },
      el("div", { class: "stage-part" }, this.stage.root), about);
    return card(alone ? entry.name : look.run, {
      id: `objects-${number}`, tools: [this.picks, this.innerPicks, this.tools.bar],
    }, body, this.tools.table);
  }

  #thereHost() {
    if (!this.look.objects.truth) return null;
    this.there = el("canvas", { class: "there-canvas", role: "img", "aria-label": "What is there" });
    return el("figure", { class: "there" }, this.there,
      el("figcaption", { class: "note", text: "What is there; dashed: missed" }));
  }

  #more(number) {
    const { look, state, source } = this;
    this.tiles = new ImageTiles({
      source, sites: this.across, choose: (site, head) => state.set({
        site: site.name, head: site.heads > 1 ? head : "mean", points: false,
      }),
    });
    const among = look.sites.filter(({ rows, columns }) => rows === "objects" && columns === "objects");
    this.amongCard = among.length
      ? new AmongCard({ look, sites: among, source, state, number }) : null;
    this.tilesNote = el("p", { class: "note" });
    return [
      card("Every layer and head", { id: `heads-${number}` }, this.tilesNote, this.tiles.root),
      this.amongCard?.root,
    ].filter(Boolean);
  }

  get pointing() {
    return this.state.get("points") === true && this.inner.length > 0;
  }

  // The object in focus: the one under the pointer, else the one that was chosen; null is all.
  get focus() {
    const asked = this.hovered ?? this.state.get("found");
    return this.told.find(({ number }) => number === asked) ?? null;
  }

  async load() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.picks.refresh();
    this.innerPicks?.refresh();
    this.picks.hidden = this.pointing;
    if (this.innerPicks) this.innerPicks.hidden = !this.pointing;
    const pick = this.pointing ? chosenLayer(this.inner, this.state, INNER_KEYS)
      : chosenLayer(this.across, this.state, ACROSS_KEYS);
    const [matrix] = await Promise.all(
      [this.source.matrix([pick.site], pick.head), this.amongCard?.load()]
    );
    if (turn !== this.turn) return;
    Object.assign(this, { pick, matrix, loaded: this.pointing });
    this.badge.show(matrix.exactness);
    this.tiles.mark(pick.site.name, pick.head);
  }

  // After a change of the score from which objects are told.
  refill() {
    this.list.fill();
    this.amongCard?.draw();
  }

  draw(image, tiles = false) {
    if (!this.matrix || this.loaded !== this.pointing) return "";
    this.image = image;
    this.told = toldOf(this.look, this.state);
    this.list.mark();
    const shown = this.pointing ? this.#ofPoint() : this.#ofObjects();
    const words = shown.words;
    this.map = shown.map;
    this.stage.draw({
      image, words, map: shown.map, grid: this.pointing ? this.points : this.grid,
      look: { ...veilOf(this.state), peak: false, boxes: null },
      over: ({ pen, wide, high }) => shown.over(pen, wide, high),
    });
    this.title.textContent = shown.title;
    this.#fallsOn();
    this.tools.refresh();
    this.#drawThere();
    if (tiles) this.#drawTiles();
    return words;
  }

  #ofPoint() {
    const at = this.state.get("patch");
    const chosen = at >= 0 && at < this.points.height * this.points.width;
    const map = chosen ? mapAt(this.matrix, at, this.grid) : null;
    const over = (pen, wide, high) => {
      drawObjectBoxes(pen, this.#boxes(null, true), wide, high);
      if (chosen) drawPoint(pen, middleOf(at, this.points), wide, high);
    };
    const title = chosen ? `Where this point looks: ${this.pick.title}`
      : "Choose a point of the image to see where it looks";
    return { map, over, title, words: chosen ? `${title}: ${placeLine(map, [])}` : title };
  }

  #ofObjects() {
    const { focus, told, pick } = this;
    const mapOf = ({ row }) => mapAt(this.matrix, row, this.grid);
    if (focus) {
      const map = mapOf(focus);
      const over = (pen, wide, high) => drawObjectBoxes(pen, this.#boxes(focus), wide, high);
      const title = `Where ${quoted(focus.label)} looked: ${pick.title}`;
      return { map, over, title, words: `${title}: ${placeLine(map, [focus])}` };
    }
    const over = (pen, wide, high) => {
      drawLights(pen, told.map(mapOf), told.map(({ number }) => objectColour(number)),
        veilOf(this.state), wide, high);
      drawObjectBoxes(pen, this.#boxes(null), wide, high);
    };
    const found = countedText(told.map(({ label }) => label));
    return {
      map: null, over, title: `Where each object looked, in its colour: ${pick.title}`,
      words: told.length ? `${found}. Point at an object to see where it looked.`
        : "Nothing has so high a score; ask for less to see what comes closest.",
    };
  }

  // What is drawn: found objects, and what was missed.
  #boxes(focus, quiet = false) {
    const { state, told } = this;
    const found = state.get("boxes") ? told.map((one) => ({
      box: one.box, colour: objectColour(one.number),
      label: quiet ? "" : `${one.label} ${one.score.toFixed(2)}`,
      strong: focus?.number === one.number,
      quiet: quiet || (focus !== null && focus.number !== one.number),
    })) : [];
    const missed = state.get("truths") && this.look.objects.truth ? missedOf(this.look, told) : [];
    const lost = missed.map(({ box, label, number }) => ({
      box, label: quiet ? "" : `missed: ${label}`, colour: LOST, dashed: true,
      strong: this.revealed === number, quiet: quiet || focus !== null,
    }));
    return [...found, ...lost];
  }

  #drawThere() {
    if (!this.there) return;
    const { truth } = this.look.objects;
    const taker = new Map(this.told.map((one) => [one.takes, one]));
    const boxes = truth.map(({ box, label, ignored }, number) => {
      const by = taker.get(number);
      return {
        box, label: ignored ? `${label}, does not count` : label, dashed: !by && !ignored, quiet: ignored,
        colour: by ? objectColour(by.number) : LOST, strong: this.revealed === number,
      };
    });
    const { pen, wide, high } = paintImage(this.there, this.image, null, {}, THERE);
    drawObjectBoxes(pen, boxes, wide, high);
    const words = truth.map(({ label }, n) => `${label}${taker.has(n) ? "" : " (missed)"}`);
    this.there.setAttribute("aria-label", `What is there: ${words.join(", ") || "nothing"}`);
  }

  #drawTiles() {
    const { focus, told } = this;
    const [from, to] = focus ? [focus.row, focus.row + 1]
      : [0, Math.max(1, ...told.map(({ row }) => row + 1))];
    this.tilesNote.textContent = focus ? `Where ${quoted(focus.label)} looked.`
      : "The mean over all objects; choose one to see its own.";
    this.tiles.show({ image: this.image, from, to, look: veilOf(this.state) });
  }

  #fallsOn() {
    const { map, focus } = this;
    if (!map) {
      this.falls.replaceChildren();
      return;
    }
    const inside = focus && !this.pointing ? el("p", {
      class: "note", text: `${percentText(massIn(map, focus.box))} of it lies in the object's box.`,
    }) : null;
    this.falls.replaceChildren(...[inside, placeBars(map)].filter(Boolean));
  }

  #hover(found) {
    this.hovered = found;
    this.#again();
  }

  #reveal(lost) {
    this.revealed = lost;
    this.#again();
  }

  #again() {
    if (this.image) this.say(this.draw(this.image));
  }

  // The smallest box around a place is meant.
  #under([x, y]) {
    const size = ([left, top, right, bottom]) => (right - left) * (bottom - top);
    const around = this.told.filter(
      ({ box: [left, top, right, bottom] }) => x >= left && x <= right && y >= top && y <= bottom
    );
    return around.sort((a, b) => size(a.box) - size(b.box))[0]?.number ?? null;
  }

  #point(place) {
    if (this.pointing || !this.told) return;
    const found = place === null ? null : this.#under(place);
    if (found !== (this.hovered ?? null)) this.#hover(found);
  }

  #choose(place) {
    if (this.pointing) this.state.set({ patch: cellUnder(place, this.points) });
    else this.state.set({ found: this.#under(place) });
  }

  #table() {
    if (!this.map) return null;
    const { height: rows, width: columns } = this.grid;
    const names = (count, word) => Array.from({ length: count }, (_, i) => `${word} ${i + 1}`);
    return {
      matrix: { rows, columns, data: this.map.data, rest: new Float32Array(rows) }, other: false,
      rowLabels: names(rows, "row"), columnLabels: names(columns, "column"),
    };
  }

  repaint() {
    this.stage.repaint();
    this.tiles.repaint();
    this.amongCard?.draw();
  }
}

// A map of thousands of tokens: coarse as a whole, exact where one zooms in and the document has
// what it takes. Drag a rectangle, turn the wheel, or use + − 0 and the arrows.

import {
  EXACT, coarseMap, exactTile, extent, sitesMatrix, withoutSink, zoomPlace
} from "../document/attention.js";
import { cellGroups, tokenAt } from "../document/axis.js";
import { pageColour, pixels } from "../controls/colour.js";
import { badge, button, segmented } from "../controls/controls.js";
import { el, perFrame, shape, style, within } from "../controls/dom.js";
import { runsLeft, tokenText } from "../controls/format.js";
import { LEFT, TOP, drawLongLabels, drawLongMargins, marginOf } from "./margins.js";

const MOST_EXACT = 400_000; // cells of a tile
const SMALLEST = 8; // tokens across at the deepest zoom

function imageOf(data, rows, columns, scale) {
  const canvas = el("canvas", { width: columns, height: rows });
  canvas.getContext("2d").putImageData(pixels(data, rows, columns, scale), 0, 0);
  return canvas;
}

export class LongMap {
  constructor({ state, point, choose, askExact = null }) {
    Object.assign(this, { state, point, choose, askExact });
    this.turn = 0;
    this.canvas = el(
      "canvas", { class: "long", tabindex: 0, role: "img", "aria-label": "Map of attention" }
    );
    this.overview = el("canvas", { class: "overview" });
    this.brush = shape("rect", { class: "brush" });
    this.band = el("div", { class: "band", hidden: true });
    this.badge = badge();
    this.says = el("p", { class: "note" });
    this.exactButton = button(
      "Fetch exact weights", () => this.askExact?.(this.site, this.head), { hidden: true }
    );
    this.redraw = perFrame(() => this.#draw());
    this.#listen();
    this.root = this.#layOut();
    new ResizeObserver(() => this.site && this.redraw()).observe(this.frame);
  }

  #layOut() {
    const set = (key) => (value) => this.state.set({ [key]: value });
    this.kind = segmented(
      "Cells show", [["mean", "mean"], ["max", "highest"]], this.state.get("map"), set("map")
    );
    this.scale = segmented(
      "Colour scale", [["sqrt", "√"], ["linear", "linear"], ["log", "log"]],
      this.state.get("scale"), set("scale")
    );
    const steps = el("span", { class: "zoom-buttons" },
      button("−", () => this.zoom(1.6), { "aria-label": "Zoom out" }), button(
        "+", () => this.zoom(1 / 1.6), { "aria-label": "Zoom in" }
      ),
      button("Whole", () => this.state.set({ zoom: null }), { "aria-label": "Show all" }));
    this.frame = el("div", { class: "long-frame" }, this.canvas, this.band);
    this.small = el("div", { class: "overview-frame" }, this.overview,
      shape("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, this.brush));
    this.#listenOverview(this.small);
    this.side = el(
      "div", { class: "long-side" }, el("h3", { text: "Whole" }), this.small, this.says, this.exactButton
    );
    return el("div", { class: "long-map" },
      el("div", { class: "long-tools" }, this.kind, this.scale, steps, this.badge),
      el("div", { class: "long-body" }, this.frame, this.side));
  }

  async show(arrays, look, site, head) {
    Object.assign(this, { arrays, look, site, head });
    [this.rows, this.columns] = extent(look, site);
    this.mirrored = runsLeft(look.axes[site.columns].tokens ?? []);
    this.small.classList.toggle("mirrored", this.mirrored);
    this.entropy = await marginOf(arrays, site, "entropy", head);
    this.received = await marginOf(arrays, site, "received", head);
    await this.refresh();
  }

  // Reads the state again: window, kind of map, colour scale.
  async refresh() {
    if (!this.site) return;
    const turn = ++this.turn;
    this.kind.show(this.state.get("map"));
    this.scale.show(this.state.get("scale"));
    let coarse = await coarseMap(this.arrays, this.site, this.head, this.state.get("map"));
    coarse ??= await sitesMatrix(this.arrays, this.look, [this.site], this.head);
    const window = this.window();
    const tile = await this.#exact(window);
    if (turn !== this.turn) return;
    if (coarse && this.state.get("sink")) coarse = withoutSink(coarse);
    this.coarse = coarse;
    this.tile = tile ? { data: tile, window } : null;
    this.coarseImage = coarse ? imageOf(
      coarse.data, coarse.rows, coarse.columns, this.state.get("scale")
    ) : null;
    this.badge.show(
      tile ? EXACT : coarse ? coarse.exactness : { kind: "none", text: "no map kept" }
    );
    this.#explain(window, Boolean(tile));
    this.redraw();
  }

  window() {
    const [r0, r1, c0, c1] = this.state.get("zoom") ?? [0, this.rows, 0, this.columns];
    return [
      within(r0, 0, this.rows - 1), within(r1, 1, this.rows), within(c0, 0, this.columns - 1),
      within(c1, 1, this.columns)
    ];
  }

  async #exact(window) {
    const [r0, r1, c0, c1] = window;
    const may = typeof this.head === "number" && (
      this.site.arrays.weights || zoomPlace(this.site, this.head) >= 0
    );
    if (!may || (r1 - r0) * (c1 - c0) > MOST_EXACT) return null;
    const tile = await exactTile(this.arrays, this.look, this.site, this.head, window);
    if (!this.state.get("sink")) return tile;
    const first = await exactTile(this.arrays, this.look, this.site, this.head, [r0, r1, 0, 1]);
    const wide = c1 - c0;
    return tile.map(
      (value, i) => (
        c0 + (i % wide) === 0 ? 0 : value / Math.max(1 - first[Math.floor(i / wide)], 1e-3)
      )
    );
  }

  #explain(window, exact) {
    const [r0, r1, c0, c1] = window;
    const whole = r1 - r0 === this.rows && c1 - c0 === this.columns;
    const canZoom = typeof this.head === "number" && (
      this.site.arrays.weights || zoomPlace(this.site, this.head) >= 0
    );
    const part = `Rows ${r0}–${r1 - 1}, columns ${c0}–${c1 - 1}.`;
    const where = whole ? `${this.rows} × ${this.columns} tokens.` : part;
    const how = exact ? "Every cell is one exact weight."
      : canZoom ? "Zoom in for exact weights: drag a rectangle on the map."
        : "This head has no exact zoom in this file; cells stay coarse.";
    this.says.textContent = `${where} ${how}`;
    this.exactButton.hidden = !(this.askExact && !canZoom && typeof this.head === "number");
  }

  zoom(factor, at = null) {
    const [r0, r1, c0, c1] = this.window();
    const [y, x] = at ?? [(r0 + r1) / 2, (c0 + c1) / 2];
    this.#look(
      [y - (y - r0) * factor, y + (r1 - y) * factor, x - (x - c0) * factor, x + (c1 - x) * factor]
    );
  }

  pan(down, across) {
    const [r0, r1, c0, c1] = this.window();
    const dy = Math.round((r1 - r0) * down);
    const dx = Math.round((c1 - c0) * (this.mirrored ? -across : across));
    this.#look([r0 + dy, r1 + dy, c0 + dx, c1 + dx]);
  }

  // A window made whole: inside the map, and not smaller than a few tokens.
  #look([a, b, c, d]) {
    const fit = (from, to, length) => {
      const size = within(Math.round(to - from), Math.min(SMALLEST, length), length);
      const start = within(Math.round(from), 0, length - size);
      return [start, start + size];
    };
    const next = [...fit(a, b, this.rows), ...fit(c, d, this.columns)];
    const whole = next[1] - next[0] === this.rows && next[3] - next[2] === this.columns;
    this.state.set({ zoom: whole ? null : next });
  }

  lookAt(row, column) {
    const half = 24;
    this.#look([row - half, row + half, column - half, column + half]);
  }

  #listen() {
    const { canvas } = this;
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = this.#inside(event);
      if (start) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = this.#inside(event);
      if (start && at && event.buttons) this.#showBand(start, at);
      else this.point(at && this.cellAt(at));
    });
    canvas.addEventListener("pointerup", (event) => {
      const at = this.#inside(event) ?? start;
      this.band.hidden = true;
      if (start && at) this.#finish(start, at);
      start = null;
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("wheel", (event) => {
      // The page keeps its own scrolling until the map has been chosen.
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      const at = this.#inside(event);
      if (at) this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, [at.row, at.column]);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const acts = {
      "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
      0: () => this.state.set({ zoom: null }),
      ArrowUp: () => this.pan(-0.2, 0), ArrowDown: () => this.pan(0.2, 0),
      ArrowLeft: () => this.pan(0, -0.2), ArrowRight: () => this.pan(0, 0.2),
    };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  #finish(start, at) {
    if (Math.abs(start.x - at.x) < 6 && Math.abs(start.y - at.y) < 6) {
      this.choose(this.cellAt(at));
      return;
    }
    const rows = [start.row, at.row].sort((a, b) => a - b);
    const columns = [start.column, at.column].sort((a, b) => a - b);
    this.#look(
      [Math.floor(rows[0]), Math.ceil(rows[1]), Math.floor(columns[0]), Math.ceil(columns[1])]
    );
  }

  #showBand(start, at) {
    this.band.hidden = false;
    style(this.band, {
      left: `${Math.min(start.x, at.x)}px`, top: `${Math.min(start.y, at.y)}px`,
      width: `${Math.abs(start.x - at.x)}px`, height: `${Math.abs(start.y - at.y)}px`,
    });
  }

  #listenOverview(frame) {
    const move = (event) => {
      if (!event.buttons && event.type !== "pointerdown") return;
      const rect = frame.getBoundingClientRect();
      const [r0, r1, c0, c1] = this.window();
      const y = ((event.clientY - rect.top) / rect.height) * this.rows;
      const share = (event.clientX - rect.left) / rect.width;
      const x = (this.mirrored ? 1 - share : share) * this.columns;
      this.#look([y - (r1 - r0) / 2, y + (r1 - r0) / 2, x - (c1 - c0) / 2, x + (c1 - c0) / 2]);
    };
    frame.addEventListener("pointerdown", move);
    frame.addEventListener("pointermove", move);
  }

  // A point of the canvas in tokens (with fractions); null outside the map.
  #inside(event) {
    if (!this.site) return null;
    const rect = this.canvas.getBoundingClientRect();
    const x = event.clientX - rect.left;
    const y = event.clientY - rect.top;
    const [r0, r1, c0, c1] = this.window();
    const row = r0 + ((y - TOP) / this.size) * (r1 - r0);
    const share = (x - LEFT) / this.size;
    const column = c0 + (this.mirrored ? 1 - share : share) * (c1 - c0);
    return row >= r0 && row < r1 && column >= c0 && column < c1 ? { x, y, row, column } : null;
  }

  // What the map shows there: one weight, or a coarse cell.
  cellAt({ row, column }) {
    const t = Math.floor(row);
    const s = Math.floor(column);
    if (this.tile) {
      const [r0, , c0, c1] = this.tile.window;
      return {
        row: t, column: s, value: this.tile.data[(t - r0) * (c1 - c0) + s - c0], exactness: EXACT
      };
    }
    if (!this.coarse) return { row: t, column: s, value: null, exactness: null };
    const [high, wide] = this.coarse.cell;
    const at = Math.floor(t / high) * this.coarse.columns + Math.floor(s / wide);
    return { row: t, column: s, value: this.coarse.data[at], exactness: this.coarse.exactness };
  }

  // Outlines one token's row, or its column.
  mark(place, along) {
    this.marked = { place, along };
    if (this.site) this.redraw();
  }

  #draw() {
    const dense = Math.min(window.devicePixelRatio || 1, 2);
    this.size = within(this.frame.clientWidth - LEFT - 8, 180, 620);
    const wide = LEFT + this.size + 8;
    const high = TOP + this.size + 8;
    Object.assign(this.canvas, { width: wide * dense, height: high * dense });
    style(this.canvas, { width: `${wide}px`, height: `${high}px` });
    const pen = this.canvas.getContext("2d");
    pen.scale(dense, dense);
    pen.save();
    if (this.mirrored) pen.transform(-1, 0, 0, 1, 2 * LEFT + this.size, 0);
    this.#drawMap(pen);
    this.#drawMark(pen);
    pen.restore();
    drawLongMargins(pen, this, this.window());
    drawLongLabels(pen, this, this.window());
    this.#drawOverview();
  }

  #drawMap(pen) {
    const [r0, r1, c0, c1] = this.window();
    pen.imageSmoothingEnabled = false;
    if (this.tile && String(this.tile.window) === String([r0, r1, c0, c1])) {
      const image = imageOf(this.tile.data, r1 - r0, c1 - c0, this.state.get("scale"));
      pen.drawImage(image, LEFT, TOP, this.size, this.size);
    } else if (this.coarseImage) {
      const [high, wide] = this.coarse.cell;
      pen.drawImage(
        this.coarseImage, c0 / wide, r0 / high, (c1 - c0) / wide, (r1 - r0) / high, LEFT, TOP,
        this.size, this.size
      );
    }
    pen.strokeStyle = pageColour("line");
    pen.strokeRect(LEFT - 0.5, TOP - 0.5, this.size + 1, this.size + 1);
  }

  #drawMark(pen) {
    if (!this.marked) return;
    const { place, along } = this.marked;
    const [r0, r1, c0, c1] = this.window();
    const [from, to] = along === "row" ? [r0, r1] : [c0, c1];
    if (place < from || place >= to) return;
    const cell = this.size / (to - from);
    const at = (place - from) * cell - 0.75;
    const thick = Math.max(cell, 1) + 1.5;
    pen.strokeStyle = pageColour("accent");
    pen.lineWidth = 1.5;
    if (along === "row") pen.strokeRect(LEFT - 4, TOP + at, this.size + 8, thick);
    else pen.strokeRect(LEFT + at, TOP - 4, thick, this.size + 8);
  }

  #drawOverview() {
    const [r0, r1, c0, c1] = this.window();
    if (this.coarseImage) {
      Object.assign(this.overview, { width: this.coarse.columns, height: this.coarse.rows });
      this.overview.getContext("2d").drawImage(this.coarseImage, 0, 0);
    }
    const share = (value, of) => (100 * value) / of;
    for (const [name, value] of Object.entries({
      x: share(c0, this.columns), width: share(
        c1 - c0, this.columns
      ), y: share(r0, this.rows), height: share(r1 - r0, this.rows),
    })) this.brush.setAttribute(name, value);
  }

  // What is on the screen as a matrix, for the table and the files.
  model() {
    if (!this.tile && !this.coarse) return null;
    const [r0, r1, c0, c1] = this.window();
    const rowAxis = this.look.axes[this.site.rows];
    const columnAxis = this.look.axes[this.site.columns];
    if (this.tile) return exactModel(this.tile, rowAxis, columnAxis, c1 - c0 < this.columns);
    const [high, wide] = this.coarse.cell;
    return coarseModel(this.coarse, cellGroups(rowAxis, high, this.coarse.rows), cellGroups(
      columnAxis, wide, this.coarse.columns
    ),
      [
        Math.floor(r0 / high), Math.ceil(r1 / high), Math.floor(c0 / wide), Math.ceil(c1 / wide)
      ], this.state.get("scale"));
  }
}

function exactModel({ data, window: [r0, r1, c0, c1] }, rowAxis, columnAxis, other) {
  const names = (axis, from, to) => Array.from(
    { length: to - from }, (_, i) => tokenText(tokenAt(axis, from + i))
  );
  const rest = Float32Array.from({ length: r1 - r0 }, (_, i) => {
    const row = data.subarray(i * (c1 - c0), (i + 1) * (c1 - c0));
    return Math.max(0, 1 - row.reduce((sum, value) => sum + value, 0));
  });
  return {
    matrix: { rows: r1 - r0, columns: c1 - c0, data, rest }, other, scale: "sqrt",
    rowLabels: names(rowAxis, r0, r1), columnLabels: names(columnAxis, c0, c1),
  };
}

function coarseModel(coarse, rowGroups, columnGroups, [a, b, c, d], scale) {
  const data = new Float32Array((b - a) * (d - c));
  for (let i = a; i < b; i++) data.set(
    coarse.data.subarray(i * coarse.columns + c, i * coarse.columns + d), (i - a) * (d - c)
  );
  return {
    matrix: {
      rows: b - a, columns: d - c, data, rest: new Float32Array(b - a)
    }, other: false, scale,
    rowLabels: rowGroups.slice(a, b).map(
      ({ label }) => label
    ), columnLabels: columnGroups.slice(c, d).map(({ label }) => label),
  };
}

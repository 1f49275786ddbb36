// The caption as words that can be chosen, and as a film: the image once for each word.

import { peakOf, placeName } from "../image/maps.js";
import { paintImage } from "../image/paint.js";
import { shade, inkOn } from "../controls/colour.js";
import { el, perFrame, style } from "../controls/dom.js";
import { isControl, quoted, runsLeft, weightText } from "../controls/format.js";

const LONG = 4; // letters: shorter words seldom name a thing
const FRAME = 128;
const FAINT = 0.1; // below this a peak stands for nothing

// point(row or null), choose(row).
export class CaptionWords {
  constructor({ point, choose, label = "Caption" }) {
    Object.assign(this, { point, choose });
    this.root = el("p", { class: "told", role: "group", "aria-label": label });
    this.nodes = [];
  }

  show(rows) {
    this.nodes = rows.map(({ label }, row) => el("button", {
      type: "button", class: isControl(label) ? "told-word ending" : "told-word",
      text: label, on: {
        pointerenter: () => this.point(row), pointerleave: () => this.point(null),
        click: () => this.choose(row),
      },
    }));
    this.root.dir = runsLeft(rows.map(({ label }) => label)) ? "rtl" : "ltr";
    this.root.replaceChildren(...this.nodes);
  }

  // `shares`: how much each word looks at the cell under the pointer, if there is one.
  light(chosen, shares = null) {
    const most = shares ? Math.max(...shares, 1e-6) : 1;
    this.nodes.forEach((node, row) => {
      node.setAttribute("aria-pressed", String(row === chosen));
      const share = shares ? shares[row] / most : 0;
      style(node, shares ? { background: shade(share, "linear"), color: inkOn(share, "linear") }
        : { background: "", color: "" });
    });
  }
}

export class Filmstrip {
  constructor({ point, choose }) {
    Object.assign(this, { point, choose });
    this.root = el("ol", { class: "film" });
    this.frames = [];
    this.repaint = perFrame(() => this.#paint());
  }

  show(rows) {
    this.frames = rows.map(({ label }, row) => {
      const canvas = el("canvas", { class: "frame-canvas", "aria-hidden": "true" });
      const trait = el("span", { class: "trait" });
      const node = el("button", {
        type: "button", class: "frame", on: {
          pointerenter: () => this.point(row), pointerleave: () => this.point(null),
          click: () => this.choose(row),
        },
      }, canvas, el("span", { class: "frame-word", text: label }), trait);
      return { label, canvas, trait, node };
    });
    this.root.dir = runsLeft(rows.map(({ label }) => label)) ? "rtl" : "ltr";
    this.root.replaceChildren(...this.frames.map(({ node }) => el("li", null, node)));
  }

  draw(image, maps, look) {
    this.model = { image, maps, look: { ...look, boxes: null, path: null, marked: null } };
    this.repaint();
  }

  light(chosen, scroll = false) {
    this.frames.forEach(({ node }, row) => {
      node.setAttribute("aria-pressed", String(row === chosen));
      node.tabIndex = row === chosen ? 0 : -1;
    });
    const node = this.frames[chosen]?.node;
    if (!node) return;
    if (this.root.contains(document.activeElement)) node.focus({ preventScroll: true });
    if (!scroll) return;
    const [film, frame] = [this.root, node].map((one) => one.getBoundingClientRect());
    if (frame.left < film.left || frame.right > film.right) {
      this.root.scrollLeft += frame.left - film.left - (film.width - frame.width) / 2;
    }
  }

  #paint() {
    const { image, maps, look } = this.model ?? {};
    if (!image) return;
    this.frames.forEach(({ label, canvas, trait, node }, row) => {
      const map = maps?.[row] ?? null;
      const { cell, weight } = map ? peakOf(map) : {};
      paintImage(canvas, image, map, { ...look, peak: weight >= FAINT }, FRAME);
      if (!map) return;
      trait.textContent = weight > 0 ? `${placeName(cell, map.grid)} ${weightText(weight)}` : "nowhere";
      node.setAttribute("aria-label", `${quoted(label)}: ${trait.textContent}`);
    });
  }

  // All frames in one image, for a file.
  sheet() {
    const wide = Math.min(this.frames.length, 8);
    const [w, h] = [FRAME + 12, FRAME + 34];
    const canvas = el("canvas", {
      width: 2 * (wide * w + 12), height: 2 * (Math.ceil(this.frames.length / wide) * h + 12),
    });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = "#14181f";
    pen.textAlign = "center";
    pen.font = "15px Georgia, serif";
    this.frames.forEach(({ canvas: frame, label }, i) => {
      const [x, y] = [12 + (i % wide) * w, 12 + Math.floor(i / wide) * h];
      pen.drawImage(frame, x, y, FRAME, FRAME);
      pen.fillText(label, x + FRAME / 2, y + FRAME + 19, FRAME);
    });
    return canvas;
  }
}

// The word to begin with: of the long ones, the one that looks most sharply.
export function firstWord(rows, maps) {
  const says = (least) => ({ label }) => !isControl(label) && label.length >= least;
  const told = rows.some(says(LONG)) ? says(LONG) : says(0);
  const peaks = rows.map((row, i) => (told(row) ? peakOf(maps[i]).weight : 0));
  return peaks.indexOf(Math.max(...peaks));
}

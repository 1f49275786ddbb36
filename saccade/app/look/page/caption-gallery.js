// Several pictures on one page: choose one.

import { loadPicture, paintPicture } from "./caption-paint.js";
import { el } from "./dom.js";

const GALLERY_THUMB = 82;

// texts[i]: what was said of picture i.
export class Gallery {
  constructor(pictures, texts, chosen, choose) {
    this.nodes = pictures.map((picture, i) => {
      const canvas = el("canvas", { class: "gallery-thumb", "aria-hidden": "true" });
      loadPicture(picture.source).then(
        (image) => paintPicture(canvas, image, null, {}, GALLERY_THUMB), () => canvas.remove()
      );
      return el("li", null, el("button", {
        type: "button", class: "gallery-item", "aria-pressed": String(i === chosen),
        "aria-label": `Picture ${i + 1}, ${picture.name}: ${texts[i]}`,
        title: picture.name, on: { click: () => choose(i) },
      }, canvas, el("span", { class: "gallery-text", text: texts[i] })));
    });
    this.root = el("ol", { class: "gallery", "aria-label": "Pictures" }, ...this.nodes);
    requestAnimationFrame(() => this.#reveal(chosen));
  }

  #reveal(chosen) {
    const node = this.nodes[chosen];
    const { clientWidth, offsetLeft } = this.root;
    if (node) this.root.scrollLeft = node.offsetLeft - offsetLeft - (clientWidth - GALLERY_THUMB) / 2;
  }
}

// Several images on one page: choose one.

import { loadImage, paintImage } from "../image/paint.js";
import { el } from "../controls/dom.js";

const GALLERY_THUMB = 82;

// texts[i]: what was said of image i.
export class Gallery {
  constructor(images, texts, chosen, choose) {
    this.nodes = images.map((entry, i) => {
      const canvas = el("canvas", { class: "gallery-thumb", "aria-hidden": "true" });
      loadImage(entry.source).then(
        (image) => paintImage(canvas, image, null, {}, GALLERY_THUMB), () => canvas.remove()
      );
      return el("li", null, el("button", {
        type: "button", class: "gallery-item", "aria-pressed": String(i === chosen),
        "aria-label": `Image ${i + 1}, ${entry.name}: ${texts[i]}`,
        title: entry.name, on: { click: () => choose(i) },
      }, canvas, el("span", { class: "gallery-text", text: texts[i] })));
    });
    this.root = el("ol", { class: "gallery", "aria-label": "Images" }, ...this.nodes);
    requestAnimationFrame(() => this.#reveal(chosen));
  }

  #reveal(chosen) {
    const node = this.nodes[chosen];
    const { clientWidth, offsetLeft } = this.root;
    if (node) this.root.scrollLeft = node.offsetLeft - offsetLeft - (clientWidth - GALLERY_THUMB) / 2;
  }
}

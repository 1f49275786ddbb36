// A place to drop, choose or paste an image file.

import { el } from "../controls/dom.js";

const FILE_TYPES = "image/jpeg,image/png,image/webp,image/gif,image/bmp,image/tiff";
const SMALL = 112; // pixels of the thumbnail: two to a point

export class ImageDrop {
  // choose(file): an image has come.
  constructor(choose) {
    this.choose = choose;
    this.file = null;
    this.input = el("input", { type: "file", accept: FILE_TYPES, "aria-label": "Image" });
    this.words = el("span");
    this.thumb = el("canvas", { width: SMALL, height: SMALL, hidden: true, "aria-hidden": "true" });
    this.root = el("label", { class: "drop" }, this.input, this.thumb, this.words);
    this.input.addEventListener("change", () => this.#take(this.input.files[0]));
    for (const name of ["dragenter", "dragover"]) {
      this.root.addEventListener(name, (event) => this.#over(event, true));
    }
    this.root.addEventListener("dragleave", (event) => this.#over(event, false));
    this.root.addEventListener("drop", (event) => {
      this.#over(event, false);
      this.#take(event.dataTransfer.files[0]);
    });
    window.addEventListener("paste", (event) => {
      if (!this.root.hidden) this.#take(event.clipboardData?.files[0]);
    });
    this.#tell();
  }

  #over(event, on) {
    event.preventDefault();
    this.root.classList.toggle("over", on);
  }

  #take(file) {
    if (!file) return;
    this.file = file;
    this.#tell();
    this.#draw(file);
    this.choose(file);
  }

  #tell() {
    const name = this.file ? el("b", { text: this.file.name || "pasted image" })
      : el("b", { text: "Drop an image here" });
    const more = this.file ? " · drop or choose another" : ", paste one, or choose a file";
    this.words.replaceChildren(name, el("span", { text: more }));
  }

  // A file that the browser cannot draw may still be one that the server can read.
  async #draw(file) {
    try {
      const image = await createImageBitmap(file);
      const side = Math.min(image.width, image.height);
      const [x, y] = [(image.width - side) / 2, (image.height - side) / 2];
      this.thumb.getContext("2d").drawImage(image, x, y, side, side, 0, 0, SMALL, SMALL);
      this.thumb.hidden = false;
    } catch {
      this.thumb.hidden = true;
    }
  }

  focus() {
    this.input.focus();
  }
}

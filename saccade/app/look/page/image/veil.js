// How a map is laid over an image, as the reader likes it; the same for every view.

import { segmented, slider, toggle } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

export const VEIL_KEYS = ["veil", "cells", "opacity", "boxes", "path"];

export function veilOf(state, more = {}) {
  return {
    how: state.get("veil"), cells: state.get("cells"), opacity: state.get("opacity"), ...more,
  };
}

export class VeilTools {
  constructor(state, { boxes, path = true }) {
    this.state = state;
    this.how = segmented(
      "Overlay", [["spotlight", "spotlight"], ["glow", "glow"]], state.get("veil"),
      (veil) => state.set({ veil })
    );
    this.cells = segmented(
      "Cells", [["false", "smooth"], ["true", "true cells"]], String(state.get("cells")),
      (key) => state.set({ cells: key === "true" })
    );
    this.opacity = slider("Opacity", {
      min: 0, max: 1, step: 0.05, value: state.get("opacity"),
      show: (value) => (value > 0 ? percentText(value) : "0 %"),
    }, (opacity) => state.set({ opacity }));
    this.boxes = toggle("Boxes", state.get("boxes"), (on) => state.set({ boxes: on }));
    this.path = toggle("Path", state.get("path"), (on) => state.set({ path: on }));
    this.boxes.hidden = !boxes;
    this.path.hidden = !path;
    this.path.title = "Where the peak went from word to word";
    this.root = el("div", { class: "veil-tools" }, this.how, this.cells, this.opacity,
      this.boxes, this.path);
  }

  refresh() {
    const { state } = this;
    this.how.show(state.get("veil"));
    this.cells.show(String(state.get("cells")));
    this.opacity.show(state.get("opacity"));
    this.boxes.show(state.get("boxes"));
    this.path.show(state.get("path"));
  }
}

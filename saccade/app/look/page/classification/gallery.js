// Many images: what each was taken for, sorted and filtered; choose one to open it.

import { chosenMap } from "./choices.js";
import { verdictMark } from "./guesses.js";
import {
  classesOf, countText, differs, isRight, listedOf, ordersOf, saidOf, saidText, truthOf,
  verdictText, verdictsOf
} from "./subjects.js";
import { ImageGallery } from "../image/gallery.js";
import { mapAt } from "../image/maps.js";
import { loadImage, paintImage } from "../image/paint.js";
import { MapSource } from "../image/tiles.js";
import { toggle } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

const CLASS_THUMB = 132;
const VEILED = 0.55; // of the opacity that is set: an image this small must still be seen

function classNode(subject, choose) {
  const { item, entry, looks } = subject;
  const canvas = el("canvas", {
    class: "class-thumb", "aria-hidden": "true", width: CLASS_THUMB, height: CLASS_THUMB,
    "data-item": item,
  });
  const lines = looks.map((look) => el("span", { class: "class-line" }, verdictMark(look),
    el("span", { class: "class-name", dir: "auto", text: saidText(look) }),
    el("span", { class: "number", text: percentText(look.score) })));
  const wrong = looks.find((look) => isRight(look) === false);
  const is = wrong ? `is ${wrong.classes.truth.join(", ")}` : "";
  const told = looks.map(
    (look) => (looks.length > 1 ? `${look.run}: ${verdictText(look)}` : verdictText(look))
  ).join("; ");
  const node = el("button", {
    type: "button", class: differs(subject) ? "class-item differs" : "class-item",
    title: entry.name, "aria-label": `Image ${item + 1}, ${entry.name}: ${told}`,
    on: { click: choose },
  }, canvas, ...lines, el("span", { class: "class-is", dir: "auto", text: is }));
  return { node, canvas, source: null };
}

async function paintClass(one, canvas, arrays, state) {
  const thumbs = state.get("thumbs");
  const pick = chosenMap(one.subject.looks[0], state);
  const look = { how: state.get("veil"), opacity: VEILED * state.get("opacity"), peak: false };
  const key = thumbs ? `${pick.key}/${pick.head}/${look.how}/${look.opacity}` : "plain";
  if (one.shown === key) return;
  one.shown = key;
  one.image ??= loadImage(one.subject.entry.source);
  one.source ??= new MapSource(arrays, one.subject.looks[0]);
  try {
    const image = await one.image;
    const matrix = thumbs ? await one.source.matrix(pick.sites, pick.head) : null;
    const { grid } = one.subject.looks[0].axes[pick.sites[0].columns];
    if (one.shown === key) {
      paintImage(canvas, image, matrix && mapAt(matrix, 0, grid), look, CLASS_THUMB);
    }
  } catch {
    canvas.classList.add("broken"); // an image that the browser cannot read
  }
}

export class ClassGallery extends ImageGallery {
  constructor({ subjects, runs, arrays, state, choose }) {
    const two = runs.length > 1;
    const maps = toggle(two ? `Maps of ${runs[0]}` : "Maps", state.get("thumbs"),
      (thumbs) => state.set({ thumbs }));
    const legend = two
      ? el("span", { class: "note", text: `above ${runs[0]}, below ${runs[1]}` }) : null;
    super({
      subjects, state, choose, node: classNode, wide: two, extra: [maps, legend],
      paint: (one, canvas) => paintClass(one, canvas, arrays, state),
      listed: () => listedOf(subjects, state),
      count: (shown) => countText(shown, subjects, runs),
      clear: { truth: "", said: "", verdict: "" },
      follow: () => maps.show(state.get("thumbs")),
      pickers: [
        ["Order", "order", ordersOf(subjects)], ["Show", "verdict", verdictsOf(subjects, runs)],
        ["True class", "truth", classesOf(subjects, truthOf)],
        ["Class said", "said", classesOf(subjects, saidOf)],
      ],
    });
  }
}

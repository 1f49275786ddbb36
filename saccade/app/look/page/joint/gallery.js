// Many texts about images, with what was said of each; choose one to open it.

import { regionColour } from "./regions.js";
import { verdictMark } from "../classification/guesses.js";
import {
  classesOf, countText, differs, listedOf, ordersOf, saidOf, saidText, truthOf, verdictText, verdictsOf
} from "../classification/subjects.js";
import { drawObjectBoxes } from "../detection/paint.js";
import { ImageGallery } from "../image/gallery.js";
import { loadImage, paintImage } from "../image/paint.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

const JOINT_THUMB = 160;
const MOST_NAMES = 40; // classes that one may choose from

function jointNode(subject, choose) {
  const { item, entry, looks } = subject;
  const canvas = el("canvas", {
    class: "class-thumb", "aria-hidden": "true", width: JOINT_THUMB, height: JOINT_THUMB,
    "data-item": item,
  });
  const { among } = looks[0].regions;
  const asked = among?.length ? `which of ${among.length} sentences?` : looks[0].regions.asked;
  const lines = looks.map((look) => el("span", { class: "class-line" }, verdictMark(look),
    el("span", { class: "class-name", dir: "auto", text: saidText(look) }),
    el("span", { class: "number", text: percentText(look.score) })));
  const told = looks.map(
    (look) => (looks.length > 1 ? `${look.run}: ${verdictText(look)}` : verdictText(look))
  ).join("; ");
  const node = el("button", {
    type: "button", class: differs(subject) ? "class-item joint-item differs" : "class-item joint-item",
    title: asked, "aria-label": `${asked} ${entry.name}: ${told}`, on: { click: choose },
  }, canvas, el("span", { class: "joint-asked", dir: "auto", text: asked }), ...lines);
  return { node, canvas };
}

async function paintJoint(one, canvas) {
  if (one.drawn) return;
  one.drawn = true;
  const { entry, looks: [look] } = one.subject;
  try {
    const image = await loadImage(entry.source);
    const { pen, wide, high } = paintImage(canvas, image, null, {}, JOINT_THUMB);
    const { meant, boxes, truth } = look.regions;
    drawObjectBoxes(pen, [
      ...(meant ? [{ box: boxes[meant], colour: regionColour(look, meant) }] : []),
      ...(truth ? [{ box: truth, colour: "#ffffff", dashed: true }] : []),
    ], wide, high);
  } catch {
    canvas.classList.add("broken"); // an image that the browser cannot read
  }
}

export class JointGallery extends ImageGallery {
  constructor({ subjects, runs, state, choose }) {
    const two = runs.length > 1;
    const legend = two
      ? el("span", { class: "note", text: `above ${runs[0]}, below ${runs[1]}` }) : null;
    const named = (label, key, namesOf) => {
      const names = classesOf(subjects, namesOf);
      return [label, key, names.length > MOST_NAMES + 1 ? [] : names];
    };
    super({
      subjects, state, choose, node: jointNode, wide: two, extra: [legend], paint: paintJoint,
      listed: () => listedOf(subjects, state),
      count: (shown) => countText(shown, subjects, runs),
      clear: { truth: "", said: "", verdict: "" },
      pickers: [
        ["Order", "order", ordersOf(subjects)], ["Show", "verdict", verdictsOf(subjects, runs)],
        named("True answer", "truth", truthOf), named("Answer given", "said", saidOf),
      ],
    });
  }
}

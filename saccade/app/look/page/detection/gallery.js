// Many images with what was found in each; choose one to open it.

import { objectColour } from "./colours.js";
import { countedText, mistakesText, missedOf, sureOf, tallyOf, toldOf } from "./judged.js";
import { drawObjectBoxes } from "./paint.js";
import { ImageGallery } from "../image/gallery.js";
import { loadImage, paintImage } from "../image/paint.js";
import { el } from "../controls/dom.js";

const OBJECT_THUMB = 160;
export const OBJECT_LIST_KEYS = ["order", "verdict"];

function mistakes({ looks }, state) {
  return looks.reduce((sum, look) => {
    const { wrong, missed } = tallyOf(look, state);
    return sum + (wrong ?? 0) + (missed ?? 0);
  }, 0);
}

const OBJECT_ORDERS = {
  mistakes: (state) => (a, b) => mistakes(b, state) - mistakes(a, state),
  most: (state) => (a, b) => tallyOf(b.looks[0], state).found - tallyOf(a.looks[0], state).found,
  given: () => () => 0,
};

function listedObjects(subjects, state) {
  const known = subjects.some(({ looks: [look] }) => look.objects.truth);
  const asked = String(state.get("order"));
  const order = OBJECT_ORDERS[asked] ?? OBJECT_ORDERS[known ? "mistakes" : "given"];
  const verdict = known ? String(state.get("verdict")) : "";
  const kept = subjects.filter((subject) => (
    verdict === "right" ? mistakes(subject, state) === 0
      : verdict === "wrong" ? mistakes(subject, state) > 0 : true
  ));
  return kept.sort((a, b) => order(state)(a, b) || a.item - b.item);
}

// Lines of a thumbnail change with the score from which objects are told.
function objectNode({ item, entry, looks }, choose) {
  const canvas = el("canvas", {
    class: "class-thumb found-thumb", "aria-hidden": "true", "data-item": item,
    width: OBJECT_THUMB, height: OBJECT_THUMB,
  });
  const lines = looks.map(() => el("span", { class: "class-line" }, el("span", { class: "class-name", dir: "auto" })));
  const tally = el("span", { class: "class-is" });
  const node = el("button", {
    type: "button", class: "class-item", title: entry.name, on: { click: choose },
  }, canvas, ...lines, tally);
  return { node, canvas, lines, tally };
}

function tellObjects({ node, lines, tally, subject: { item, entry, looks } }, state) {
  const texts = looks.map((look) => countedText(toldOf(look, state).map(({ label }) => label)));
  texts.forEach((text, i) => { lines[i].firstChild.textContent = text; });
  tally.textContent = looks.map((look) => mistakesText(tallyOf(look, state))).join(" | ");
  node.setAttribute("aria-label",
    `Image ${item + 1}, ${entry.name}: ${texts.join("; ")}; ${tally.textContent}`);
}

async function paintObjects(one, canvas, state) {
  const [look] = one.subject.looks;
  const key = `${sureOf(look, state)}/${state.get("truths")}`;
  if (one.shown === key) return;
  one.shown = key;
  one.image ??= loadImage(one.subject.entry.source);
  try {
    const image = await one.image;
    if (one.shown !== key) return;
    const told = toldOf(look, state);
    const { pen, wide, high } = paintImage(canvas, image, null, {}, OBJECT_THUMB);
    const lost = state.get("truths") ? missedOf(look, told) : [];
    drawObjectBoxes(pen, [
      ...told.map(({ box, number }) => ({ box, colour: objectColour(number) })),
      ...lost.map(({ box }) => ({ box, colour: "#ffffff", dashed: true })),
    ], wide, high);
  } catch {
    canvas.classList.add("broken"); // an image that the browser cannot read
  }
}

export class ObjectsGallery extends ImageGallery {
  constructor({ subjects, runs, state, choose }) {
    const known = subjects.some(({ looks: [look] }) => look.objects.truth);
    const orders = [
      ["mistakes", "most mistakes first"], ["most", "most objects first"], ["given", "as they came"],
    ];
    super({
      subjects, state, choose, node: objectNode, wide: runs.length > 1,
      paint: (one, canvas) => paintObjects(one, canvas, state),
      listed: () => listedObjects(subjects, state),
      count: (shown) => {
        const wrong = shown.filter((one) => mistakes(one, state) > 0).length;
        return `${shown.length} of ${subjects.length}${known ? `, ${wrong} with mistakes` : ""}`;
      },
      clear: { verdict: "" },
      pickers: [
        ["Order", "order", known ? orders : orders.slice(1).reverse()],
        ["Show", "verdict", known
          ? [["", "all"], ["right", "without mistakes"], ["wrong", "with mistakes"]] : []],
      ],
    });
    this.tell();
  }

  tell() {
    for (const one of this.nodes.values()) tellObjects(one, this.state);
  }
}

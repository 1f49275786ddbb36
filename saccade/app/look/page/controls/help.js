// What the keys do, and how to read the figures.

import { button } from "./controls.js";
import { el } from "./dom.js";

const KEYS = [
  [
    "← →", "one step back or forward"
  ], ["Home End", "first or last step"], ["space", "play or pause"],
  ["[ ]", "previous or next head or map"], ["w", "words or pieces"], [
    "r", "looks at / is looked at by (language)"
  ],
  ["s", "hide the sink (language)"], [
    "↑ ↓", "previous or next image (captions, classes)"
  ], ["c b p", "true cells, boxes, path of the peak (on images)"], [
    "e m", "where a point looks, what was missed (objects)"
  ], ["t", "show the numbers as a table"], ["d", "dark or light"],
  ["Esc", "let go of the step or word; back to all images"], ["?", "this help"],
];
const MAP_KEYS = [
  ["arrows", "in a matrix or an image, from cell to cell; in the list of heads, from head to head"],
  ["Enter", "keep the word or open the head"], [
    "+ − 0", "on a long map: closer, further, all of it"
  ],
  [
    "arrows",
    "on a long map: move the window; drag a rectangle to look closer; "
    + "the wheel zooms once the map has been clicked"
  ],
];
const READING = [
  ["exact", "every weight as computed, to half precision"], ["8-bit", "off by at most 0.004"],
  [
    "top 8, 82 % of the mass", "only the largest weights were kept"
  ], ["8×8 mean", "downsampled: each cell stands for 8 × 8 weights"],
  [
    "true cells", "what the model had: one weight to a square; smooth maps are drawn between them"
  ],
  ["local", "mass on the tokens nearby, beyond what even attention would put there"],
  ["other", "mass that is not drawn word by word; nothing is dropped without a trace"],
  [
    "sink",
    "many heads park their attention on the first token when they have nothing to say; "
    + "“hide sink” leaves it out and rescales"
  ],
];

function pairs(list, tag) {
  return el(
    "dl", { class: "help-list" },
    ...list.flatMap(
      ([term, words]) => [el("dt", null, el(tag, { text: term })), el("dd", { text: words })]
    )
  );
}

export function helpDialog() {
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help-title" });
  dialog.append(el(
    "header", null, el("h2", { id: "help-title", text: "Help" }),
    button("Close", () => dialog.close(), { class: "button quiet" })
  ),
    el("h3", { text: "Keys" }), pairs(KEYS, "kbd"), el(
      "h3", { text: "In the figures" }
    ), pairs(MAP_KEYS, "kbd"),
    el("h3", { text: "How to read them" }),
    el(
      "p",
      {
        text: "A row is a word that looks; its weights over the columns sum to one. "
          + "Where a model looks is not a reason for what it says."
      }
    ),
    pairs(READING, "b"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return dialog;
}

// What an image was taken for, how surely, and what it is.

import { isRight, saidText } from "./subjects.js";
import { button } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { percentText } from "../controls/format.js";

// A mark that needs no colour; nothing where the truth is not known.
export function verdictMark(look) {
  const right = isRight(look);
  return right === null ? null : el("span", {
    class: right ? "verdict" : "verdict wrong", "aria-hidden": "true", text: right ? "✓" : "✗",
  });
}

// askClass(label): a server is asked what in the image this class came from.
function guess([label, probability], { truth, target, guesses }, askClass, noun) {
  const asked = label === target && label !== guesses[0][0];
  const told = [truth.includes(label) ? `true ${noun}` : "", asked ? "asked for" : ""].filter(Boolean).join(", ");
  return el("li", { class: truth.includes(label) ? "guess true" : "guess" },
    askClass && label !== target
      ? button(label, () => askClass(label), {
        class: "button guess-name", dir: "auto", title: `What speaks for ${label}?`,
      })
      : el("span", { class: "guess-name", dir: "auto", text: label, title: label }),
    el("span", { class: "meter" },
      el("span", { class: "fill", css: { width: `${100 * probability}%` } })),
    el("span", { class: "number", text: percentText(probability) }),
    el("span", { class: "guess-note", text: told }));
}

// The class that is shown is listed even where it is none of the best; so is the truth. `noun` is
// what guesses are.
export function guessList(look, askClass = null, noun = "class") {
  const { classes } = look;
  const { guesses, truth, target, probability } = classes;
  const named = new Set(guesses.map(([label]) => label));
  const asked = named.has(target) ? [] : [[target, probability]];
  const missing = truth.filter((label) => !named.has(label) && label !== target);
  const rest = missing.length
    ? el("p", { class: "note", text: `True ${noun}: ${missing.join(", ")}, not among these.` }) : null;
  const list = el("ol", { class: "guesses", "aria-label": "Best guesses" },
    ...[...guesses, ...asked].map((one) => guess(one, classes, askClass, noun)));
  return [list, ...(rest ? [rest] : [])];
}

export function verdictHead(look) {
  const right = isRight(look);
  const { truth } = look.classes;
  const words = right === null ? percentText(look.score)
    : right ? `${percentText(look.score)} · right`
      : `${percentText(look.score)} · wrong: it is ${truth.join(", ")}`;
  return el("div", { class: "token-name" }, verdictMark(look),
    el("b", { dir: "auto", text: saidText(look) }), el("span", { class: "note", text: words }));
}

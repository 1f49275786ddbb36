// The n-best list: each hypothesis with its score; choosing one shows where it looked.

import { el } from "../controls/dom.js";
import { scoreText } from "../controls/format.js";

export function hypotheses(looks, chosen, choose) {
  const best = Math.max(...looks.map(({ score }) => score ?? -Infinity));
  const items = looks.map((look, i) => {
    const share = look.score === null || look.score === undefined ? 0 : Math.exp(look.score - best);
    return el("li", null, el("button", {
      type: "button", class: "hypothesis", "aria-pressed": String(i === chosen), on: {
        click: () => choose(i)
      },
    },
    el("span", { class: "rank", text: look.label }),
    el("span", { class: "hypothesis-text", dir: "auto", text: look.text }),
    el("span", { class: "hypothesis-score" },
      el("span", { text: scoreText(look.score) }),
      el(
        "span", { class: "meter" }, el("span", { class: "fill", css: { width: `${100 * share}%` } })
      )),
    look.finished === false ? el("span", { class: "ended", text: "unfinished" }) : null));
  });
  return el("ol", { class: "hypotheses" }, ...items);
}

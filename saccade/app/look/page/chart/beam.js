// The beam at one step: a table of its candidates, and the last few steps as a small tree.

import { el, shape } from "../controls/dom.js";
import { scoreText, tokenText } from "../controls/format.js";
import { fitted, svgWord } from "./plan.js";

const FEWEST_STEPS = 3;
const COLUMN = 108;
const ROW = 30;
const ROOM_OF_TOKEN = 68;

// The place of a candidate's forebear in the step before.
function forebear(step, { parent }) {
  return step === 0 ? null : parent ?? null;
}

// The places of a candidate of `step` and of its forebears, by step.
function lineage(beam, step, rank) {
  const path = new Map();
  for (let t = step, at = rank; t >= 0 && beam[t][at]; t--) {
    path.set(t, at);
    at = forebear(t, beam[t][at]);
  }
  return path;
}

// The step on which what is shown was complete, and how it came to be.
function ending({ beam, text, finished, axes }) {
  const step = Math.min(axes.target.tokens.length, beam.length) - 1;
  const fits = (one) => one.ended === Boolean(finished);
  const same = beam[step].findIndex((one) => fits(one) && one.text.trim() === text.trim());
  const rank = Math.max(same < 0 ? beam[step].findIndex(fits) : same, 0);
  return { step, path: lineage(beam, step, rank) };
}

function tree(beam, step, path, room) {
  const from = Math.max(0, step - Math.max(FEWEST_STEPS, Math.floor((room + 8) / COLUMN)) + 1);
  const deepest = Math.max(...beam.slice(from, step + 1).map((list) => list.length));
  const x = (t) => 10 + (t - from) * COLUMN;
  const y = (rank) => 34 + rank * ROW;
  const edges = [];
  const nodes = [];
  for (let t = from; t <= step; t++) {
    nodes.push(shape("text", { class: "step", x: x(t), y: 12, text: String(t + 1) }));
    beam[t].forEach((candidate, rank) => {
      const on = path.get(t) === rank;
      const before = forebear(t, candidate);
      if (t > from && before !== null) {
        const start = x(t - 1) + 78;
        const middle = (start + x(t) - 8) / 2;
        edges.push(shape("path", {
          class: on ? "edge on" : "edge",
          d: `M${start} ${y(before)} C${middle} ${y(before)} `
            + `${middle} ${y(rank)} ${x(t) - 8} ${y(rank)}`,
        }));
      }
      nodes.push(
        shape(
          "circle", { class: on ? "node on" : "node", cx: x(t) - 2, cy: y(rank), r: on ? 4 : 3 }
        )
      );
      nodes.push(svgWord(fitted(tokenText(candidate.token), ROOM_OF_TOKEN, 13, 650), {
        class: on ? "token on" : "token", x: x(t) + 7, y: y(rank) + 4,
      }));
    });
  }
  const width = 20 + (step - from) * COLUMN + 84;
  return shape("svg", {
    class: "beam-tree", width, height: 24 + deepest * ROW,
    viewBox: `0 0 ${width} ${24 + deepest * ROW}`, role: "img",
    "aria-label": `Beam of the last ${step - from + 1} steps`,
  }, ...edges, ...nodes);
}

// What was there before, and the token that was added.
function written({ text, token }) {
  const end = token && text.endsWith(token) ? text.length - token.length : text.length;
  return [
    el("span", { class: "before", text: text.slice(0, end) }), el("b", { text: text.slice(end) })
  ];
}

function candidateRow(candidate, rank, best, on, from) {
  const share = Math.exp((candidate.score ?? candidate.log_probability ?? 0) - best);
  const bar = el(
    "span", { class: "fill", css: { width: `${Math.max(2, 100 * Math.min(share, 1))}%` } }
  );
  return el("tr", { class: on ? "first" : null },
    el("td", { class: "number", text: String(rank + 1) }),
    el(
      "td", { class: "text", dir: "auto" }, ...written(candidate),
      candidate.ended ? el("span", { class: "ended", text: "ended" }) : null
    ),
    el(
      "td", { class: "number" }, el("span", { text: scoreText(candidate.score) }),
      el("span", { class: "meter" }, bar)
    ),
    el("td", { class: "number", text: from === null ? "–" : String(from + 1) }));
}

// `show(step)`: the beam then; without a step, when what is shown was complete.
export function beamPanel(look) {
  const { beam } = look;
  const root = el("div", { class: "beam" });
  const best = ending(look);
  root.show = (step) => {
    const at = Math.min(step ?? best.step, beam.length - 1);
    const path = at <= best.step ? best.path : lineage(beam, at, 0);
    const list = beam[at] ?? [];
    const top = Math.max(...list.map((one) => one.score ?? one.log_probability ?? 0));
    root.replaceChildren(
      el("div", { class: "scroller" }, tree(beam, at, path, root.clientWidth || 370)),
      el("div", { class: "scroller" }, el("table", { class: "candidates" },
        el("caption", { text: `Candidates after step ${at + 1}` }),
        el(
          "thead", null,
          el(
            "tr", null,
            ...["#", "text", "score", "from"].map((text) => el("th", { scope: "col", text }))
          )
        ),
        el("tbody", null, ...list.map((candidate, rank) => candidateRow(
          candidate, rank, top, path.get(at) === rank, forebear(at, candidate)
        ))))));
    const row = root.querySelector(".first");
    const frame = row?.closest(".scroller");
    if (row) frame.scrollTop = row.offsetTop + row.offsetHeight - frame.clientHeight;
  };
  return root;
}

// The beam at one step: a table of its candidates, and the last few steps as a small tree.

import { el, shape } from "../controls/dom.js";
import { clip, scoreText, tokenText } from "../controls/format.js";

const FEWEST_STEPS = 3;
const COLUMN = 108;
const ROW = 30;

// The places of the best candidate of `step` and of its forebears, by step.
function lineage(beam, step, rank) {
  const path = new Map();
  for (let t = step, at = rank; t >= 0 && at !== null && at !== undefined; t--) {
    path.set(t, at);
    at = beam[t][at]?.parent;
  }
  return path;
}

function tree(beam, step, room) {
  const from = Math.max(0, step - Math.max(FEWEST_STEPS, Math.floor((room + 8) / COLUMN)) + 1);
  const path = lineage(beam, step, 0);
  const deepest = Math.max(...beam.slice(from, step + 1).map((list) => list.length));
  const x = (t) => 10 + (t - from) * COLUMN;
  const y = (rank) => 34 + rank * ROW;
  const edges = [];
  const nodes = [];
  for (let t = from; t <= step; t++) {
    nodes.push(shape("text", { class: "step", x: x(t), y: 12, text: String(t + 1) }));
    beam[t].forEach((candidate, rank) => {
      const on = path.get(t) === rank;
      if (t > from && beam[t - 1][candidate.parent]) {
        const start = x(t - 1) + 78;
        const middle = (start + x(t) - 8) / 2;
        edges.push(shape("path", {
          class: on && path.get(t - 1) === candidate.parent ? "edge on" : "edge",
          d: `M${start} ${y(candidate.parent)} C${middle} ${y(candidate.parent)} `
            + `${middle} ${y(rank)} ${x(t) - 8} ${y(rank)}`,
        }));
      }
      nodes.push(
        shape(
          "circle", { class: on ? "node on" : "node", cx: x(t) - 2, cy: y(rank), r: on ? 4 : 3 }
        )
      );
      nodes.push(shape("text", {
        class: on ? "token on" : "token", x: x(t) + 7, y: y(rank) + 4, text: clip(
          tokenText(candidate.token), 8
        ),
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

function candidateRow(candidate, rank, best) {
  const share = Math.exp((candidate.score ?? candidate.log_probability ?? 0) - best);
  const bar = el(
    "span", { class: "fill", css: { width: `${Math.max(2, 100 * Math.min(share, 1))}%` } }
  );
  return el("tr", { class: rank === 0 ? "first" : null },
    el("td", { class: "number", text: String(rank + 1) }),
    el(
      "td", { class: "text" }, ...written(candidate),
      candidate.ended ? el("span", { class: "ended", text: "ended" }) : null
    ),
    el(
      "td", { class: "number" }, el("span", { text: scoreText(candidate.score) }),
      el("span", { class: "meter" }, bar)
    ),
    el(
      "td",
      {
        class: "number",
        text: candidate.parent === null || candidate.parent === undefined ? "–" : String(
          candidate.parent + 1
        )
      }
    ));
}

export function beamPanel() {
  const root = el("div", { class: "beam" });
  root.show = (beam, step) => {
    const at = Math.min(step, beam.length - 1);
    const list = beam[at] ?? [];
    const best = list[0]?.score ?? list[0]?.log_probability ?? 0;
    root.replaceChildren(
      el("div", { class: "scroller" }, tree(beam, at, root.clientWidth || 370)),
      el("div", { class: "scroller" }, el("table", { class: "candidates" },
        el("caption", { text: `Candidates after step ${at + 1}` }),
        el(
          "thead", null,
          el(
            "tr", null,
            ...["#", "text", "score", "from"].map((text) => el("th", { scope: "col", text }))
          )
        ),
        el("tbody", null, ...list.map((candidate, rank) => candidateRow(candidate, rank, best))))));
  };
  return root;
}

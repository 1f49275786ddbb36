// What is under the pointer, in words: the line at the foot of the page, and lists of what a token
// looks at.

import { el } from "./dom.js";
import {
  directionOf, isolated, percentText, quoted, snippet, tokenText, weightText
} from "./format.js";

const MOST_LISTED = 5;

// A comma among commas cannot be told apart, so tokens without letters are quoted.
export function readable(label) {
  return /[\p{L}\p{N}]/u.test(label) ? isolated(label) : quoted(label);
}

function listed(gaze, threshold) {
  const kept = gaze.pairs.filter(([, weight]) => weight >= threshold).slice(0, MOST_LISTED);
  return kept.length ? kept : gaze.pairs.slice(0, 1);
}

export function otherMass(gaze, kept) {
  if (gaze.rest === null) return null;
  const all = gaze.rest + gaze.pairs.reduce((total, [, weight]) => total + weight, 0);
  return Math.max(0, all - kept.reduce((total, [, weight]) => total + weight, 0));
}

// ‘Haus’ looks at: house .62, the .21, other .17
export function rowWords(name, gaze, labels, threshold = 0.05) {
  if (gaze.pairs.length === 0 && !gaze.rest) return `${quoted(name)} looks nowhere.`;
  const kept = listed(gaze, threshold);
  const parts = kept.map(([at, weight]) => `${readable(labels(at))} ${weightText(weight)}`);
  const other = otherMass(gaze, kept);
  if (other !== null && other >= 0.005) parts.push(`other ${weightText(other)}`);
  return `${quoted(name)} looks at: ${parts.join(", ")}`;
}

export function columnWords(name, gaze, labels, total = null, threshold = 0.05) {
  const kept = listed(gaze, threshold);
  if (kept.length === 0) return `${quoted(name)} is looked at by no one.`;
  const parts = kept.map(([at, weight]) => `${readable(labels(at))} ${weightText(weight)}`);
  const sum = total === null ? "" : `; ${total.toFixed(2)} in all`;
  return `${quoted(name)} is looked at by: ${parts.join(", ")}${sum}`;
}

// The bar at the foot of the page: a place for the scrubber, the read-out and how exact it is.
export function footBar() {
  const transport = el("div", { class: "transport" });
  const line = el("p", { class: "readout", id: "readout", role: "status", "aria-live": "polite" });
  const root = el("footer", { class: "foot" }, transport, line);
  return {
    root,
    say(text) { if (line.textContent !== text) line.textContent = text; },
    carry(...nodes) { transport.replaceChildren(...nodes.filter(Boolean)); },
    show(on) { root.hidden = !on; },
  };
}

function entry(axis, at, weight, widest, go, name) {
  const [before, self, after] = snippet(axis, at, 4);
  return el("li", null, el("button", {
    type: "button", class: "key", title: `token ${at}`, on: { click: () => go(at) }
  },
    el("span", { class: "key-weight", text: weightText(weight) }),
    el(
      "span", { class: "meter" },
      el("span", { class: "fill", css: { width: `${Math.max(1, (100 * weight) / widest)}%` } })
    ),
    el("span", { class: "key-text", dir: directionOf(before + self + after) },
      el("span", { text: before }), el(
        "mark", { text: name === null ? self : tokenText(self) }
      ), el("span", { text: after })),
    el("span", { class: "key-place", text: String(at) })));
}

// The largest weights as a list with the words around each, and the rest as "other".
export function keyList(gaze, axis, go, most = 8) {
  const kept = gaze.pairs.filter(([, weight], i) => i === 0 || weight >= 0.005).slice(0, most);
  const other = otherMass(gaze, kept);
  const widest = Math.max(kept[0]?.[1] ?? 0, other ?? 0, 1e-6);
  const rows = kept.map(([at, weight]) => entry(axis, at, weight, widest, go, null));
  if (other !== null && kept.length) {
    rows.push(el("li", { class: "key other" },
      el("span", { class: "key-weight", text: weightText(other) }),
      el(
        "span", { class: "meter" },
        el("span", { class: "fill hatched", css: { width: `${(100 * other) / widest}%` } })
      ),
      el("span", { class: "key-text", text: "other" })));
  }
  return el("ol", { class: "keys" }, ...rows);
}

// What else might have been written there.
export function choiceList(choices, token) {
  const widest = Math.max(...choices.map(([, p]) => p), 1e-6);
  return el("ol", {
    class: "choices", "aria-label": "Most probable tokens here"
  }, ...choices.slice(0, 5).map(([text, p]) => {
    const chosen = tokenText(text) === tokenText(token);
    return el("li", { class: chosen ? "taken" : null },
      el("span", { class: "choice-text", dir: "auto", text: tokenText(text) }),
      el(
        "span", { class: "meter" },
        el("span", { class: "fill", css: { width: `${(100 * p) / widest}%` } })
      ),
      el("span", { class: "number", text: percentText(p) }));
  }));
}

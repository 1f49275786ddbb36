// What a decision came from, as a weight for each token: by one of the maps of the whole model, or
// by the row of the token at which it was made.

import { sitesMatrix } from "../document/attention.js";
import { gazeAt } from "../document/gaze.js";
import { quoted } from "../controls/format.js";

const WHOLE_RULES = {
  relevance: (name) => "Attention through all layers, weighed by how it raises the score of "
    + `${name} (Chefer et al. 2021).`,
  rollout: () => "Attention followed through all layers; the same whatever is asked.",
};

export function isTagged(look) {
  return Boolean(look.axes.decision.choices);
}

export function isPair(look) {
  return look.axes.text.texts.length > 1;
}

// What decision `at` says: a class, a number, or the tag of a word.
export function decidedText(look, at) {
  return isTagged(look) ? look.axes.decision.choices[at][0][0] : look.axes.decision.tokens[at];
}

export function decisionRule(look, { key }, at) {
  const told = WHOLE_RULES[key]?.(quoted(decidedText(look, at)));
  if (told) return told;
  if (isTagged(look)) return "What the first piece of the word looks at.";
  const place = look.axes.decision.places[at];
  if (place === undefined) return "What all tokens look at, on average; all that is said is read from their mean.";
  return `What the ${place ? "last" : "first"} token looks at; all that is said is read there.`;
}

// Of all rows alike.
function meanPairs(data, rows, columns) {
  const mean = new Float32Array(columns);
  data.forEach((weight, i) => { mean[i % columns] += weight / rows; });
  return Array.from(mean, (weight, i) => [i, weight]).sort((a, b) => b[1] - a[1]);
}

// [[place, weight]], the largest first, and how exact they are.
export async function decisionGaze(arrays, look, pick, at) {
  const place = look.axes.decision.places[at];
  const derived = pick.sites[0].derived;
  if (!derived && place !== undefined) return gazeAt(arrays, look, pick.sites, pick.head, place, "row");
  const { data, rows, columns, exactness } = await sitesMatrix(arrays, look, pick.sites, pick.head);
  if (!derived) return { pairs: meanPairs(data, rows, columns), rest: null, exactness };
  const pairs = Array.from(data.subarray(at * columns, (at + 1) * columns), (weight, i) => [i, weight]);
  const kept = pairs.filter(([, weight]) => weight > 0.001).sort((a, b) => b[1] - a[1]);
  return { pairs: kept, rest: null, exactness };
}

// Which head is shown: one, or the mean, the highest or the best aligned of several.

import { sitesMatrix } from "../document/attention.js";
import { picker } from "./controls.js";
import { el } from "./dom.js";
import { bestAligned } from "../document/statistics.js";

const MANY_WORDS = { mean: "mean", max: "highest" };

// Layers that look from one thing at one other, and so can be averaged: [[key, words, sites]]. A
// model with a tower for text and one for images has several such sets.
function families(candidates) {
  const byAxes = new Map();
  for (const site of candidates.filter(({ derived }) => !derived)) {
    const axes = site.rows === site.columns ? site.rows : `${site.rows} to ${site.columns}`;
    byAxes.set(axes, [...(byAxes.get(axes) ?? []), site]);
  }
  return [...byAxes].map(([axes, sites], i) => [
    i ? `all of ${axes}` : "all", byAxes.size > 1 ? `all layers of ${axes}` : "all layers", sites
  ]);
}

// The sites that a choice of layer means.
export function sitesOf(candidates, choice) {
  const named = candidates.find((site) => site.name === choice);
  if (named) return [named];
  const sets = families(candidates);
  return (sets.find(([key]) => key === choice) ?? sets[0])[2];
}

// What the state asks for, made definite: {sites, head, title}.
export async function resolved(arrays, look, candidates, state, prefix = "") {
  const sites = sitesOf(candidates, state.get(`${prefix}site`));
  const head = state.get(`${prefix}head`);
  if (head === "best") {
    const best = await bestAligned(arrays, look, sites);
    return {
      sites: [best.site], head: best.head,
      title: `best aligned: ${best.site.name} head ${best.head}`
    };
  }
  if (typeof head === "number" && head < sites[0].heads) {
    return { sites: [sites[0]], head, title: `${sites[0].name} head ${head}` };
  }
  const how = head === "max" ? "max" : "mean";
  if (sites.length === 1 && sites[0].heads === 1) return { sites, head: 0, title: sites[0].name };
  const many = families(candidates).length > 1 ? `all layers of ${sites[0].rows}` : "all layers";
  const where = sites.length > 1 ? `${many} and heads` : `the heads of ${sites[0].name}`;
  return { sites, head: how, title: `${MANY_WORDS[how]} over ${where}` };
}

export async function pickedMatrix(arrays, look, pick) {
  return sitesMatrix(arrays, look, pick.sites, pick.head);
}

// Two choices, layer and head; nothing at all where there is nothing to choose.
export function headPicker(candidates, state, { best = false, all = true, prefix = "" } = {}) {
  const root = el("span", { class: "picks" });
  const heads = (site) => [
    ["mean", "mean"], ["max", "highest"], ...(best ? [["best", "best aligned"]] : []),
    ...(site ? Array.from({ length: site.heads }, (_, n) => [String(n), `head ${n}`]) : []),
  ];
  const current = () => candidates.find(
    (site) => site.name === state.get(`${prefix}site`)
  ) ?? (candidates.length === 1 ? candidates[0] : null);
  const sets = all ? families(candidates) : [];
  const layer = picker("Layer", [...sets, ...candidates.map(({ name }) => [name, name])],
    state.get(`${prefix}site`), (key) => {
      const site = candidates.find(({ name }) => name === key);
      const head = state.get(`${prefix}head`);
      const keep = typeof head !== "number" || (site && head < site.heads);
      state.set({ [`${prefix}site`]: key, [`${prefix}head`]: keep ? head : "mean" });
    });
  const head = picker("Head", heads(current()), String(state.get(`${prefix}head`)), (key) => {
    state.set({ [`${prefix}head`]: /^\d+$/.test(key) ? Number(key) : key });
  });
  if (candidates.length > 1) root.append(layer);
  if (candidates.length > 1 || candidates[0].heads > 1) root.append(head);
  root.refresh = () => {
    const chosen = state.get(`${prefix}site`);
    const known = [...sets.map(([key]) => key), ...candidates.map(({ name }) => name)];
    layer.show(known.includes(chosen) ? chosen : "all");
    head.offer(heads(current()), String(state.get(`${prefix}head`)));
  };
  root.refresh();
  return root;
}

// The next or the previous head, through all layers.
export function neighbour(candidates, state, by) {
  const flat = candidates.flatMap(
    (site) => Array.from({ length: site.heads }, (_, head) => ({ site: site.name, head }))
  );
  const at = flat.findIndex(
    ({ site, head }) => site === state.get("site") && head === state.get("head")
  );
  const next = at < 0 ? (by > 0 ? 0 : flat.length - 1) : (at + by + flat.length) % flat.length;
  return flat[next];
}

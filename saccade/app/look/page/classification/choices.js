// Which map is shown: one of the whole model, or what a layer and its heads look at.

import { picker } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { quoted } from "../controls/format.js";

const RULES = {
  relevance: (name) => "Attention through all layers, weighed by how it raises the score of "
    + `${name} (Chefer et al. 2021).`,
  rollout: () => "Attention followed through all layers; the same whatever the class.",
  "Grad-CAM": (name) => "The last grid of features, weighed by how each raises the score of "
    + `${name} (Selvaraju et al. 2017).`,
};
const ALL_LAYERS = "all layers";
const NO_ATTENTION = "This model has no attention. Grad-CAM needs none and is all there is to show. ";

// Whether a map is of one class; attention and rollout are the same whatever is asked for.
export function isOfClass({ key }) {
  return key === "relevance" || key === "Grad-CAM";
}

export function hasAttention({ sites }) {
  return sites.some(({ derived }) => !derived);
}

// [{key, words, sites}], the most telling first. Layers are averaged only where their cells agree.
export function mapChoices({ sites }) {
  const layers = sites.filter(({ derived }) => !derived);
  const alike = layers.length > 1 && layers.every(({ columns }) => columns === layers[0].columns);
  const attention = (name, some) => ({ key: name, words: `attention, ${name}`, sites: some });
  return [
    ...sites.filter(({ derived }) => derived).map(
      (site) => ({ key: site.name, words: site.name, sites: [site] })
    ),
    ...(alike ? [attention(ALL_LAYERS, layers)] : []),
    ...layers.map((site) => attention(site.name, [site])),
  ];
}

// What the state asks for, as far as this look has it: {key, sites, head, title}.
export function chosenMap(look, state) {
  const choices = mapChoices(look);
  const { key, sites, words } = choices.find((one) => one.key === state.get("site")) ?? choices[0];
  const asked = state.get("head");
  const [site] = sites;
  if (sites.length === 1 && site.heads === 1) return { key, sites, head: 0, title: words };
  if (sites.length === 1 && typeof asked === "number" && asked < site.heads) {
    return { key, sites, head: asked, title: `${words}, head ${asked}` };
  }
  const head = asked === "max" ? "max" : "mean";
  return { key, sites, head, title: `${words}, ${head === "max" ? "highest" : "mean"} of all heads` };
}

// By which rule the map that is shown was made.
export function ruleText(look, { key }) {
  const rule = RULES[key]?.(quoted(look.classes.target))
    ?? "What the class token looks at or, where there is none, all cells on average; "
      + "the same whatever the class.";
  return hasAttention(look) ? rule : NO_ATTENTION + rule;
}

// The map and the head, for all looks at once; nothing where there is nothing to choose.
export function mapPicker(looks, state) {
  const choices = new Map(looks.flatMap(mapChoices).map((choice) => [choice.key, choice]));
  const heads = ({ sites }) => (sites.length > 1 ? 0 : Math.max(
    ...looks.flatMap((look) => look.sites.filter(({ name }) => name === sites[0].name))
      .map((site) => site.heads)
  ));
  const current = () => choices.get(state.get("site")) ?? choices.values().next().value;
  const map = picker("Map", [...choices.keys()].map((key) => [key, key]),
    current().key, (site) => state.set({ site, head: "mean" }));
  const head = picker("Head", [], "", (key) => {
    state.set({ head: /^\d+$/.test(key) ? Number(key) : key });
  });
  const root = el("span", { class: "picks" });
  if (choices.size > 1) root.append(map, head);
  root.refresh = () => {
    const count = heads(current());
    map.show(current().key);
    head.hidden = count === 1;
    head.offer([["mean", "mean"], ["max", "highest"],
      ...Array.from({ length: count }, (_, n) => [String(n), `head ${n}`])],
    String(state.get("head")));
  };
  root.refresh();
  return root;
}

// The next or the previous map, through the whole model, all layers and their heads.
export function neighbourMap(look, state, by) {
  const flat = mapChoices(look).flatMap(({ key, sites }) => (
    sites.length > 1 || sites[0].heads === 1 ? [{ site: key, head: "mean" }]
      : Array.from({ length: sites[0].heads }, (_, head) => ({ site: key, head }))
  ));
  const { key } = chosenMap(look, state);
  const at = flat.findIndex(({ site, head }) => site === key && head === state.get("head"));
  const from = at < 0 ? flat.findIndex(({ site }) => site === key) : at;
  return flat[(from + by + flat.length) % flat.length];
}

// Which layer and head is shown, of one set of layers; the last and the mean of its heads by default.

import { picker } from "../controls/controls.js";
import { el } from "../controls/dom.js";

// What the state asks for under these keys: {site, head, title}.
export function chosenLayer(sites, state, [siteKey, headKey]) {
  const site = sites.find(({ name }) => name === state.get(siteKey)) ?? sites.at(-1);
  const asked = state.get(headKey);
  if (site.heads === 1) return { site, head: 0, title: site.name };
  if (typeof asked === "number" && asked < site.heads) {
    return { site, head: asked, title: `${site.name}, head ${asked}` };
  }
  const head = asked === "max" ? "max" : "mean";
  return { site, head, title: `${site.name}, ${head === "max" ? "highest" : "mean"} of its heads` };
}

// Two choices; nothing where there is nothing to choose.
export function layerPicker(sites, state, keys, prefix = "") {
  const [siteKey, headKey] = keys;
  const layer = picker(`${prefix}Layer`, sites.map(({ name }) => [name, name]), "",
    (site) => state.set({ [siteKey]: site, [headKey]: "mean" }));
  const head = picker(`${prefix}Head`, [], "", (key) => {
    state.set({ [headKey]: /^\d+$/.test(key) ? Number(key) : key });
  });
  const root = el("span", { class: "picks" }, sites.length > 1 ? layer : null,
    sites.some(({ heads }) => heads > 1) ? head : null);
  root.refresh = () => {
    const pick = chosenLayer(sites, state, keys);
    layer.show(pick.site.name);
    head.offer([["mean", "mean"], ["max", "highest"],
      ...Array.from({ length: pick.site.heads }, (_, n) => [String(n), `head ${n}`])],
    String(pick.head));
  };
  root.refresh();
  return root;
}

// The next or the previous head, through all layers.
export function nextLayer(sites, state, [siteKey, headKey], by) {
  const flat = sites.flatMap((site) => Array.from(
    { length: site.heads }, (_, head) => ({ [siteKey]: site.name, [headKey]: head })
  ));
  const at = flat.findIndex(
    (one) => one[siteKey] === state.get(siteKey) && one[headKey] === state.get(headKey)
  );
  return flat[at < 0 ? (by > 0 ? 0 : flat.length - 1) : (at + by + flat.length) % flat.length];
}

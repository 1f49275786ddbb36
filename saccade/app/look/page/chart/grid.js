// All heads at a glance: a small image of each, by layer or in the order of some trait.

import { extent, headMatrix } from "../document/attention.js";
import { pixels } from "../controls/colour.js";
import { picker, rove } from "../controls/controls.js";
import { el, whenIdle } from "../controls/dom.js";
import { runsLeft, weightText } from "../controls/format.js";
import { headStatistics } from "../document/statistics.js";

const THUMB = 76;

export const SORTS = [
  ["name", "layer and head"], [
    "entropy", "entropy, low first"
  ], ["highest", "highest weight"], ["sink", "sink mass"],
  ["local", "locality"], ["previous", "previous token"], ["monotone", "moves forward"],
];

// Each image cell is the highest of the cells it stands for, so that thin lines stay visible.
function shrunk(matrix, most) {
  const rows = Math.min(matrix.rows, most);
  const columns = Math.min(matrix.columns, most);
  if (rows === matrix.rows && columns === matrix.columns) return matrix;
  const data = new Float32Array(rows * columns);
  for (let t = 0; t < matrix.rows; t++) {
    const i = Math.floor((t * rows) / matrix.rows) * columns;
    for (let s = 0; s < matrix.columns; s++) {
      const at = i + Math.floor((s * columns) / matrix.columns);
      const value = matrix.data[t * matrix.columns + s];
      if (value > data[at]) data[at] = value;
    }
  }
  return { rows, columns, data };
}

async function drawThumb(canvas, arrays, look, site, head) {
  const matrix = await headMatrix(arrays, look, site, head);
  if (!matrix) return;
  const small = shrunk(matrix, THUMB);
  canvas.classList.toggle("mirrored", runsLeft(look.axes[site.columns].tokens ?? []));
  canvas.width = small.columns;
  canvas.height = small.rows;
  canvas.getContext("2d").putImageData(pixels(small.data, small.rows, small.columns, "sqrt"), 0, 0);
}

function tileOf(site, head) {
  const canvas = el("canvas", { class: "thumb", width: 1, height: 1, "aria-hidden": "true" });
  const trait = el("span", { class: "trait" });
  const node = el("button", {
    type: "button", class: "tile", "aria-pressed": "false", "data-site": site.name,
    "data-head": head,
  }, canvas, el(
    "span", { class: "tile-name" },
    el(
      "span",
      {
        class: "tile-site",
        text: `${site.name.replace("encoder", "enc").replace("decoder", "dec")} `
      }
    ),
    el("b", { text: String(head) })
  ), trait);
  const name = `${site.name} head ${head}`;
  node.setAttribute("aria-label", name);
  return { node, canvas, trait, site, head, name, statistics: null, drawn: false };
}

function describe(tile, sort) {
  const found = tile.statistics;
  if (!found) return;
  const { label } = found;
  const worth = label && label.value !== null ? ` ${weightText(label.value)}` : "";
  const byTrait = sort !== "name" && found[sort] !== undefined && found[sort] !== null
    ? `${sort} ${weightText(found[sort])}` : null;
  tile.trait.textContent = byTrait ?? (label ? label.text + worth : "");
  const full = label?.text === "previous" ? "previous token" : label?.text;
  tile.node.setAttribute("aria-label", `${tile.name}${label ? `, ${full}${worth}` : ""}`);
  tile.node.title = ["entropy", "highest", "sink", "local", "previous", "monotone"]
    .filter((key) => found[key] !== undefined && found[key] !== null)
    .map((key) => `${key} ${weightText(found[key])}`).join(" · ");
}

function ordered(tiles, sort) {
  if (sort === "name") return tiles;
  const worth = ({ statistics }) => statistics?.[sort] ?? (
    sort === "entropy" ? Infinity : -Infinity
  );
  const sign = sort === "entropy" ? 1 : -1;
  return [...tiles].sort((a, b) => sign * (worth(a) - worth(b)));
}

function matches(tile, filter) {
  const label = tile.statistics?.label?.text ?? "";
  return `${tile.site.name} head ${tile.head} ${label}`.toLowerCase().includes(
    filter.trim().toLowerCase()
  );
}

function drawWhenSeen(tiles, arrays, look) {
  const byCanvas = new Map(tiles.map((tile) => [tile.canvas, tile]));
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const tile = byCanvas.get(target);
      if (!isIntersecting || tile.drawn) continue;
      tile.drawn = true;
      drawThumb(tile.canvas, arrays, look, tile.site, tile.head);
    }
  }, { rootMargin: "120px" });
  tiles.forEach((tile) => watcher.observe(tile.canvas));
  return watcher;
}

// choose(site, head); state keeps `sort` and `filter`.
export function headGrid({ arrays, look, sites, state, choose }) {
  const tiles = sites.flatMap(
    (site) => Array.from({ length: site.heads }, (_, head) => tileOf(site, head))
  );
  const most = Math.max(...sites.map((site) => site.heads));
  const body = el(
    "div", { class: "heads", role: "group", "aria-label": "Heads", css: { "--heads": most } }
  );
  const count = el("span", { class: "note", role: "status" });
  const watcher = drawWhenSeen(tiles, arrays, look);
  const arrange = () => layOut(body, tiles, state, count);
  body.addEventListener("click", (event) => {
    const node = event.target.closest(".tile");
    if (node) choose(node.dataset.site, Number(node.dataset.head));
  });
  arrange();
  measureAll(sites, tiles, arrays, look, state, arrange);
  return {
    body,
    tools: gridTools(sites, state, arrange, count),
    mark(name, head) {
      for (const tile of tiles) {
        tile.node.setAttribute(
          "aria-pressed", String(tile.site.name === name && tile.head === head)
        );
      }
    },
    repaint() {
      for (const tile of tiles) if (tile.drawn) drawThumb(
        tile.canvas, arrays, look, tile.site, tile.head
      );
    },
    refresh: arrange,
    stop: () => watcher.disconnect(),
  };
}

function measureAll(sites, tiles, arrays, look, state, arrange) {
  const next = (i) => {
    if (i >= sites.length) return arrange();
    return whenIdle(async () => {
      const all = await headStatistics(arrays, look, sites[i]);
      for (const tile of tiles) {
        if (tile.site !== sites[i]) continue;
        tile.statistics = all[tile.head];
        describe(tile, state.get("sort"));
      }
      next(i + 1);
    });
  };
  next(0);
}

function gridTools(sites, state, arrange, count) {
  const kinds = sites.some((site) => site.rows === site.columns)
    ? SORTS : SORTS.filter(([key]) => !["sink", "local", "previous"].includes(key));
  const sort = picker(
    "Order", kinds, state.get("sort"), (key) => { state.set({ sort: key }); arrange(); }
  );
  const filter = el("input", {
    type: "search", placeholder: "filter: cross, sink, head 3", value: state.get("filter"),
    "aria-label": "Filter heads",
  });
  filter.addEventListener("input", () => { state.set({ filter: filter.value }); arrange(); });
  return [count, el("label", { class: "control search" }, filter), sort];
}

function layOut(body, tiles, state, count) {
  const sort = state.get("sort");
  tiles.forEach((tile) => describe(tile, sort));
  const shown = ordered(tiles, sort).filter((tile) => matches(tile, state.get("filter")));
  const all = shown.length === tiles.length;
  count.textContent = all ? "" : `${shown.length} of ${tiles.length} heads`;
  body.classList.toggle("by-layer", sort === "name");
  if (sort === "name") {
    const rows = new Map();
    for (const tile of shown) rows.set(
      tile.site.name, [...(rows.get(tile.site.name) ?? []), tile.node]
    );
    body.replaceChildren(...[...rows].map(([name, nodes]) => el("div", { class: "layer" },
      el("h3", { text: name }), el("div", { class: "layer-heads" }, ...nodes))));
  } else {
    body.replaceChildren(...shown.map(({ node }) => node));
  }
  const nodes = () => shown.map(({ node }) => node);
  const pressed = shown.findIndex(({ node }) => node.getAttribute("aria-pressed") === "true");
  const wide = () => {
    const tops = shown.map(({ node }) => node.offsetTop);
    const second = tops.findIndex((top) => top > tops[0]);
    return second < 1 ? shown.length : second;
  };
  body.onkeydown = rove(nodes, { columns: wide, chosen: Math.max(pressed, 0) });
}

// A word for the shape of a head: its site, itself, and how large it is.
export function headTitle(look, site, head) {
  const [rows, columns] = extent(look, site);
  const which = typeof head === "number" ? `head ${head}` : {
    mean: "mean of heads", max: "highest of heads"
  }[head];
  return `${site.name} · ${which} · ${rows} × ${columns}`;
}

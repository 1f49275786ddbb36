// The few controls of the page, each a native one underneath so that keys and readers work.

import { el } from "./dom.js";

let controlCount = 0;

// One of a few: radio buttons that look like one bar.
export function segmented(label, options, value, choose) {
  const name = `choice-${controlCount++}`;
  const inputs = options.map(([key]) => el("input", {
    type: "radio", name, value: key, checked: key === value, on: { change: () => choose(key) },
  }));
  const bar = el("span", { class: "bar" },
    ...options.map(([, text], i) => el("label", null, inputs[i], el("span", { text }))));
  const root = el(
    "span", { class: "control segmented", role: "radiogroup", "aria-label": label }, bar
  );
  root.show = (key) => inputs.forEach((input) => { input.checked = input.value === key; });
  return root;
}

// One of many.
export function picker(label, options, value, choose) {
  const select = el("select", { "aria-label": label, on: { change: () => choose(select.value) } });
  const root = el(
    "label", { class: "control picker" }, el("span", { class: "name", text: label }), select
  );
  root.offer = (entries, chosen) => {
    select.replaceChildren(...entries.map(([key, text]) => el("option", { value: key, text })));
    select.value = chosen;
  };
  root.show = (key) => { select.value = key; };
  root.offer(options, value);
  return root;
}

export function slider(label, { min, max, step, value, show }, choose) {
  const output = el("output", { text: show(value) });
  const input = el("input", { type: "range", min, max, step, value, "aria-label": label });
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    choose(Number(input.value));
  });
  const root = el(
    "label", { class: "control slider" }, el("span", { class: "name", text: label }), input, output
  );
  root.show = (next) => { input.value = next; output.textContent = show(next); };
  return root;
}

export function toggle(label, value, choose) {
  const input = el("input", { type: "checkbox", role: "switch", checked: value });
  input.addEventListener("change", () => choose(input.checked));
  const root = el(
    "label", { class: "control toggle" }, input, el("span", { class: "name", text: label })
  );
  root.show = (next) => { input.checked = next; };
  return root;
}

export function button(text, act, extra) {
  return el("button", { type: "button", class: "button", text, on: { click: act }, ...extra });
}

export function badge(exactness) {
  const node = el("span", { class: "badge" });
  node.show = ({ kind, text }) => {
    node.textContent = text;
    node.dataset.kind = kind;
    node.title = BADGE_WORDS[kind] ?? "";
  };
  node.show(exactness ?? { kind: "none", text: "" });
  return node;
}

const BADGE_WORDS = {
  exact: "Every weight as the model computed it, to half precision.",
  "8-bit": "Weights kept in eight bits; each is off by at most 0.004.",
  top: "Only the largest weights of each row were kept; the others are drawn as “other”.",
  mean: "Downsampled: a cell is the mass an average row of the cell gives to all its columns.",
  max: "Downsampled: a cell is the largest single weight in it.",
};

// A titled part of the page with room for controls at its right.
export function card(title, { id, tools = [], note } = {}, ...body) {
  const heading = el("h2", { text: title, id: `${id}-title` });
  const root = el("section", { class: "card", id, "aria-labelledby": `${id}-title` },
    el("header", null, heading, el("div", { class: "tools" }, ...tools)),
    note ? el("p", { class: "note", text: note }) : null,
    ...body);
  root.heading = heading;
  return root;
}

// Arrow keys move between the items of a group; only one of them is a tab stop.
export function rove(items, { columns = () => 1, chosen = 0 } = {}) {
  const focus = (i) => {
    items().forEach((item, j) => { item.tabIndex = i === j ? 0 : -1; });
    items()[i]?.focus();
  };
  items().forEach((item, i) => { item.tabIndex = i === chosen ? 0 : -1; });
  return (event) => {
    const all = items();
    const at = all.indexOf(event.target.closest("[tabindex]"));
    const wide = columns();
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide, Home: -at,
      End: all.length - 1 - at
    };
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    const next = at + steps[event.key];
    if (next >= 0 && next < all.length) focus(next);
  };
}

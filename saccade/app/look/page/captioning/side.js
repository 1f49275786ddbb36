// What is known of one word of a caption: how sure it was, where it looked, and on what.

import { holds, massIn, peakOf, placeName, placesOf, spreadOf } from "./maps.js";
import { el } from "../controls/dom.js";
import { percentText, quoted, weightText } from "../controls/format.js";
import { choiceList } from "../controls/readout.js";

function bars(entries, label) {
  return el("ol", { class: "places", "aria-label": label },
    ...entries.map(([name, mass, hit, other]) => el("li", { class: hit ? "hit" : null },
      el("span", { class: "place-name", text: name }),
      el("span", { class: "meter" }, el("span", {
        class: other ? "fill hatched" : "fill", css: { width: `${Math.min(100, 100 * mass)}%` },
      })),
      el("span", { class: "number", text: weightText(mass) }))));
}

// Shares of the attention by ninths of the picture; what is left is always said.
function placeBars(map) {
  const places = placesOf(map);
  const kept = places.slice(0, 4).filter(([, mass], i) => i === 0 || mass >= 0.02);
  const other = 1 - kept.reduce((sum, [, mass]) => sum + mass, 0);
  const rest = other > 0.005 ? [["elsewhere", other, false, true]] : [];
  return bars([...kept, ...rest], "Where it looks");
}

function boxBars(map, boxes) {
  const { cell } = peakOf(map);
  const entries = boxes.map(({ label, box }) => [
    label || "box", massIn(map, box), holds(box, cell, map.grid),
  ]);
  return bars(entries.sort((a, b) => b[1] - a[1]), "How much falls into each box");
}

// one: {label, count, logP, choices, token, map, boxes, hard}
export function wordCard(one) {
  const { map, boxes } = one;
  const sure = typeof one.logP === "number" ? `probability ${percentText(Math.exp(one.logP))}` : "";
  const parts = [el("div", { class: "token-name" }, el("b", { text: one.label }),
    el("span", { class: "note", text: [one.count, sure].filter(Boolean).join(" · ") }))];
  if (map) {
    parts.push(el("p", { class: "note", text: gazeNote(map, one.hard) }), placeBars(map));
    if (boxes.length) parts.push(el("h3", { text: "Falls into" }), boxBars(map, boxes));
  }
  if (one.choices?.length) {
    parts.push(el("h3", { text: "Might have said" }), choiceList(one.choices, one.token));
  }
  return parts;
}

function gazeNote(map, hard) {
  const { cell, weight } = peakOf(map);
  if (!(weight > 0)) return "It looks nowhere.";
  const at = `row ${Math.floor(cell / map.grid.width) + 1}, column ${(cell % map.grid.width) + 1}`;
  if (hard && weight > 0.999) return `One glance, at ${placeName(cell, map.grid)} (${at}).`;
  const spread = Math.max(1, Math.round(spreadOf(map)));
  const cells = `${spread} of ${map.data.length} cells`;
  return `Peak ${weightText(weight)} at ${placeName(cell, map.grid)} (${at}); as wide as ${cells}.`;
}

// The same in one line, for the foot of the page and for readers.
export function wordLine(label, map, boxes) {
  if (!map) return `${quoted(label)} was said without looking back at the picture.`;
  const { cell, weight } = peakOf(map);
  if (!(weight > 0)) return `${quoted(label)} looks nowhere.`;
  const places = placesOf(map).slice(0, 3).filter(([, mass], i) => i === 0 || mass >= 0.05);
  const other = 1 - places.reduce((sum, [, mass]) => sum + mass, 0);
  const parts = places.map(([name, mass]) => `${name} ${weightText(mass)}`);
  if (other >= 0.005) parts.push(`other ${weightText(other)}`);
  const hit = boxes.filter(({ box }) => holds(box, cell, map.grid)).map(({ label: name }) => name);
  const on = hit.length ? `; its peak is on ${hit.join(" and ")}` : "";
  return `${quoted(label)} looks at: ${parts.join(", ")}${on}`;
}

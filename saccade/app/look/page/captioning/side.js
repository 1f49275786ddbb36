// What is known of one word of a caption: how sure it was, where it looked, and on what.

import { peakOf, placeName, spreadOf } from "../image/maps.js";
import { boxBars, cellName, placeBars, placeLine } from "../image/places.js";
import { el } from "../controls/dom.js";
import { percentText, quoted, weightText } from "../controls/format.js";
import { choiceList } from "../controls/readout.js";

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
  const at = cellName(cell, map.grid);
  if (hard && weight > 0.999) return `One glance, at ${placeName(cell, map.grid)} (${at}).`;
  const spread = Math.max(1, Math.round(spreadOf(map)));
  const cells = `${spread} of ${map.data.length} cells`;
  return `Peak ${weightText(weight)} at ${placeName(cell, map.grid)} (${at}); as wide as ${cells}.`;
}

export function wordLine(label, map, boxes) {
  if (!map) return `${quoted(label)} was said without looking back at the image.`;
  if (!(peakOf(map).weight > 0)) return `${quoted(label)} looks nowhere.`;
  return `${quoted(label)} looks at: ${placeLine(map, boxes)}`;
}

// What is known of one cell of a drawn image, or of one word of its prompt.

import { peakOf } from "../image/maps.js";
import { bars, cellName, placeBars } from "../image/places.js";
import { el } from "../controls/dom.js";
import { isolated, percentText, quoted, weightText } from "../controls/format.js";

const MOST_WORDS = 8;

// How much of a row falls on each word: [share].
export function sharesOf(matrix, row, words) {
  const from = row * matrix.columns;
  return words.map(({ from: a, to: b }) => {
    let sum = 0;
    for (let at = a; at < b; at++) sum += matrix.data[from + at];
    return sum;
  });
}

// The same of all cells, on average.
export function meanShares(matrix, words) {
  const sums = words.map(() => 0);
  for (let row = 0; row < matrix.rows; row++) {
    sharesOf(matrix, row, words).forEach((share, i) => { sums[i] += share / matrix.rows; });
  }
  return sums;
}

// The cells that looked at a word, as a map that sums to one; `mean` is what a cell gives it.
export function wordMap(matrix, { from, to }, grid) {
  const data = new Float32Array(matrix.rows);
  for (let row = 0; row < matrix.rows; row++) {
    for (let at = from; at < to; at++) data[row] += matrix.data[row * matrix.columns + at];
  }
  const total = data.reduce((sum, share) => sum + share, 0);
  const most = Math.max(...data);
  return {
    data: data.map((share) => share / Math.max(total, 1e-12)), grid, aside: 0, rest: 0,
    mean: total / matrix.rows, most,
  };
}

function wordBars(words, shares, label) {
  const order = shares.map((share, i) => [words[i].label, share]).sort((a, b) => b[1] - a[1]);
  const kept = order.slice(0, MOST_WORDS);
  const other = order.slice(MOST_WORDS).reduce((sum, [, share]) => sum + share, 0);
  return bars(
    [...kept, ...(other > 0.005 ? [["other words", other, false, true]] : [])], label
  );
}

// one: {cell, grid, shares, words, map, logP, begun, count}
export function cellCard(one) {
  const onWords = one.shares.reduce((sum, share) => sum + share, 0);
  const sure = one.cell < one.begun ? "given" : `probability ${percentText(Math.exp(one.logP))}`;
  const { cell: peak, weight } = peakOf(one.map);
  const parts = [
    el("div", { class: "token-name" }, el("b", { text: cellName(one.cell, one.grid) }),
      el("span", { class: "note", text: `${one.cell + 1} / ${one.count} · ${sure}` })),
    el("p", { class: "note", text: `As its code was chosen, ${percentText(onWords)} of attention `
      + `fell on the text, ${percentText(Math.max(0, 1 - onWords))} on cells before it.` }),
    el("h3", { text: "Words" }), wordBars(one.words, one.shares, "How much it looked at each word"),
  ];
  if (weight > 0) parts.push(el("h3", { text: "Cells" }), el("p", {
    class: "note", text: `Most at ${cellName(peak, one.grid)}, ${weightText(weight, 3)}.`,
  }));
  return parts;
}

export function pickedWordCard({ label, map }) {
  const { cell } = peakOf(map);
  return [
    el("div", { class: "token-name" }, el("b", { text: label })),
    el("p", { class: "note", text: `A cell gave it ${weightText(map.mean, 3)} of its attention, on `
      + `average; most gave ${cellName(cell, map.grid)}, ${weightText(map.most, 3)}.` }),
    el("h3", { text: "Who looked at it" }), placeBars(map, "Where the cells are that looked at it"),
  ];
}

export function wholeCard({ words, shares }) {
  return [
    el("p", { class: "note", text: "All cells, on average. Play to see it painted; choose a cell "
      + "for its words, or a word for its cells." }),
    wordBars(words, shares, "How much a cell looked at each word"),
  ];
}

export function shareLine(words, shares) {
  const order = shares.map((share, i) => [share, i]).sort((a, b) => b[0] - a[0]).slice(0, 4);
  return order.map(([share, i]) => `${isolated(words[i].label)} ${weightText(share)}`).join(", ");
}

export function pickedWordLine(label, map) {
  const { cell } = peakOf(map);
  return `${quoted(label)} was looked at most by the cell at ${cellName(cell, map.grid)}, `
    + `${weightText(map.most, 3)}; by a cell on average ${weightText(map.mean, 3)}`;
}

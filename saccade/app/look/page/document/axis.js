// The two sides of a matrix: pieces as the model sees them, or words as people do.

import { isControl, tokenText } from "../controls/format.js";

export function axisLength(axis) {
  if (axis.tokens?.length) return axis.tokens.length;
  return axis.grid ? axis.grid.special + axis.grid.height * axis.grid.width : 0;
}

export function tokenAt(axis, place) {
  if (axis.tokens?.length) return axis.tokens[place] ?? "";
  const { special, width } = axis.grid;
  const patch = place - special;
  return patch < 0 ? `special ${place}` : `${Math.floor(patch / width)},${patch % width}`;
}

// [{from, to, label}]: each piece alone, or each word and whatever lies between words.
export function groupsOf(axis, unit, length = axisLength(axis)) {
  const groups = [];
  const single = (at) => groups.push({ from: at, to: at + 1, label: tokenText(tokenAt(axis, at)) });
  let at = 0;
  if (unit === "words") {
    for (const [from, to] of axis.words ?? []) {
      if (to > length) break;
      while (at < from) single(at++);
      groups.push({ from, to, label: tokenText(axis.tokens.slice(from, to).join("")) });
      at = to;
    }
  }
  while (at < length) single(at++);
  return groups;
}

// Groups of equal width, for maps that have been made coarser.
export function cellGroups(axis, cell, count) {
  return Array.from({ length: count }, (_, i) => {
    const from = i * cell;
    const to = Math.min((i + 1) * cell, axisLength(axis));
    return { from, to, label: cell === 1 ? tokenText(tokenAt(axis, from)) : `${from}–${to - 1}` };
  });
}

export function groupHolding(groups, piece) {
  return groups.findIndex((group) => piece >= group.from && piece < group.to);
}

// Of a text that was only read, the last word that says something: not [SEP], not a full stop.
export function lastWord(axis, count) {
  const says = (token) => /[\p{L}\p{N}]/u.test(token) && !isControl(token);
  const found = axis.tokens.slice(0, count).findLastIndex(says);
  return found < 0 ? count - 1 : found;
}

export function hasWords(axis) {
  return (axis.words ?? []).some(([from, to]) => to - from > 1);
}

// How many groups from the first on read the same.
export function sharedStart(a, b) {
  const differ = a.findIndex((group, i) => group.label !== b[i]?.label);
  return differ < 0 ? a.length : differ;
}

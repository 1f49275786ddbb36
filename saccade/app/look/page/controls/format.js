// Numbers and tokens as people read them.

// .62 for 0.62; 1.00 keeps its one.
export function weightText(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? "−" : "") + (
    text.startsWith("0.") ? text.slice(1) : text
  );
}

export function percentText(value) {
  if (value < 0.001) return "<0.1 %";
  return `${value < 0.1 ? (100 * value).toFixed(1) : Math.round(100 * value)} %`;
}

export function scoreText(value) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(2).replace("-", "−");
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u; // marks that turn a line around

// A token with its edges trimmed and what cannot be seen made visible.
export function tokenText(token) {
  const shown = token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(
    new RegExp(`\\p{Cc}|\\p{Cs}|${TURNS.source}`, "gu"), "·"
  ).trim();
  if (token === "") return "·"; // a part of the character before
  if (!shown) return "␣";
  if (/^[\p{Cf}\ufe00-\ufe0f]+$/u.test(shown)) return "·"; // joins two others
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown;
}

// <end>, [SEP] and the like: what nobody wrote. It decides where to begin, never what is shown.
export function isControl(label) {
  return /^(<.+>|\[[\p{L}\p{N}_]+\])$/u.test(label.trim());
}

// The way a text runs, by its first letter.
export function directionOf(text) {
  return RIGHT_TO_LEFT.test(/\p{L}/u.exec(text)?.[0] ?? "") ? "rtl" : "ltr";
}

export function runsLeft(labels) {
  return directionOf(labels.filter((label) => !isControl(label)).join(" ")) === "rtl";
}

// In a line of ours, words that run the other way must not turn what stands around them.
export function isolated(text) {
  return RIGHT_TO_LEFT.test(text) || TURNS.test(text) ? `\u2068${text}\u2069` : text;
}

export function quoted(text) {
  return `‘${isolated(text)}’`;
}

// The pieces around a place, as running text; cells have blanks between them.
export function snippet({ tokens, kind }, at, reach) {
  const from = Math.max(0, at - reach);
  const to = Math.min(tokens.length, at + reach + 1);
  const gap = kind === "grid" ? " " : "";
  const join = (a, b) => tokens.slice(a, b).join(gap).replace(/\s+/g, " ");
  return [
    `${from > 0 ? "…" : ""}${join(from, at)}${gap}`, join(at, at + 1),
    `${gap}${join(at + 1, to)}${to < tokens.length ? "…" : ""}`
  ];
}

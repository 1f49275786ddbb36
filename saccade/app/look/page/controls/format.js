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

// A token with its edges trimmed and what cannot be seen made visible.
export function tokenText(token) {
  const shown = token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(
    /[\u0000-\u001f\u007f]/g, "·"
  );
  return shown.trim() || (token === "" ? "∅" : "␣");
}

export function clip(text, length) {
  const letters = [...text];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : text;
}

export function quoted(text) {
  return `‘${text}’`;
}

// The pieces around a place, as running text.
export function snippet(tokens, at, reach) {
  const from = Math.max(0, at - reach);
  const to = Math.min(tokens.length, at + reach + 1);
  const join = (a, b) => tokens.slice(a, b).join("").replace(/\s+/g, " ");
  return [
    (from > 0 ? "…" : "") + join(from, at), join(at, at + 1),
    join(at + 1, to) + (to < tokens.length ? "…" : "")
  ];
}

// What was found in an image, from which score on it is told, and whether it is right.

// From which score on objects are told: the reader's choice, else the document's.
export function sureOf({ objects }, state) {
  const asked = state.get("sure");
  return typeof asked === "number" ? asked : objects.threshold;
}

// [{...found, number}]: the likeliest first, so these are the first of all that are kept.
export function toldOf(look, state) {
  const sure = sureOf(look, state);
  return look.objects.found.map((one, number) => ({ ...one, number })).filter(
    ({ score }) => score >= sure
  );
}

const isThere = (takes) => takes !== null && takes !== undefined;

// null where nobody knows; else "right", "confused", "nothing" or "excused".
export function judgedAs({ label, takes, excused }, { objects: { truth } }) {
  if (!truth) return null;
  if (isThere(takes)) return truth[takes].label === label ? "right" : "confused";
  return excused ? "excused" : "nothing";
}

// In words, and in a mark that needs no colour.
export function judgement(one, look) {
  const truth = look.objects.truth?.[one.takes];
  return {
    right: ["✓", "right"], confused: ["✗", `it is ${truth?.label}`],
    nothing: ["✗", "nothing is there"], excused: ["–", "does not count"],
  }[judgedAs(one, look)] ?? ["", ""];
}

// The true objects that nobody found: [{label, box, number}].
export function missedOf(look, told) {
  const taken = new Set(told.map(({ takes }) => takes).filter(isThere));
  return (look.objects.truth ?? []).map((one, number) => ({ ...one, number })).filter(
    ({ ignored, number }) => !ignored && !taken.has(number)
  );
}

// {found, wrong, missed}; the last two are null where the truth is not known.
export function tallyOf(look, state) {
  const told = toldOf(look, state);
  if (!look.objects.truth) return { found: told.length, wrong: null, missed: null };
  const wrong = told.filter((one) => ["confused", "nothing"].includes(judgedAs(one, look)));
  return { found: told.length, wrong: wrong.length, missed: missedOf(look, told).length };
}

// “1 wrong, 2 missed”; nothing where the truth is not known.
export function mistakesText({ wrong, missed }) {
  if (wrong === null) return "";
  const parts = [wrong ? `${wrong} wrong` : "", missed ? `${missed} missed` : ""].filter(Boolean);
  return parts.join(", ") || "all right";
}

export function tallyText(tally) {
  return [`${tally.found} found`, mistakesText(tally)].filter(Boolean).join(", ");
}

// “2 circles, 1 star”, as the command line has it.
export function countedText(labels) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const many = (label) => label + (/(s|x|ch|sh)$/.test(label) ? "es" : "s");
  return [...counts].map(
    ([label, count]) => `${count} ${count === 1 ? label : many(label)}`
  ).join(", ") || "nothing";
}

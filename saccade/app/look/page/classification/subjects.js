// The images of a page and what each run took them for: which of them are shown, in what order.

import { percentText } from "../controls/format.js";

export const LIST_KEYS = ["order", "truth", "said", "verdict"];

// Whether exactly the true classes were said; null where nobody knows them.
export function isRight({ classes: { said, truth } }) {
  if (truth.length === 0) return null;
  return said.length === truth.length && said.every((label) => truth.includes(label));
}

export function saidText({ classes: { said } }) {
  return said.join(", ") || "nothing";
}

// [{item, entry, looks: one of each run, sure, mistaken}]: how sure the runs were, and how sure the
// surest of those that were wrong; −1 where none was.
export function subjectsOf(images, looks, runs) {
  const found = new Map(looks.map((look) => [`${look.image} ${look.run}`, look]));
  return images.map((entry, item) => {
    const own = runs.map((run) => found.get(`${item} ${run}`)).filter(Boolean);
    const wrong = own.filter((look) => isRight(look) === false).map(({ score }) => score);
    const sure = own.reduce((sum, { score }) => sum + score / own.length, 0);
    return { item, entry, looks: own, sure, mistaken: Math.max(-1, ...wrong) };
  }).filter(({ looks: own }) => own.length > 0);
}

export function differs({ looks: [first, second] }) {
  return second !== undefined && saidText(first) !== saidText(second);
}

const ORDERS = {
  mistakes: ["surest mistakes first", (a, b) => b.mistaken - a.mistaken || a.sure - b.sure],
  least: ["least sure first", (a, b) => a.sure - b.sure],
  most: ["surest first", (a, b) => b.sure - a.sure],
  given: ["as they came", (a, b) => a.item - b.item],
};

// What one may ask for, the usual first: mistakes there are only where the truth is known.
export function ordersOf(subjects) {
  const keys = areKnown(subjects) ? ["mistakes", "least", "most", "given"] : ["given", "least", "most"];
  return keys.map((key) => [key, ORDERS[key][0]]);
}

export function areKnown(subjects) {
  return subjects.some(({ looks: [look] }) => look.classes.truth.length > 0);
}

const VERDICTS = {
  right: (subject) => subject.looks.every(isRight),
  wrong: ({ looks }) => looks.every((look) => isRight(look) === false),
  differ: differs,
  first: ({ looks: [first, second] }) => isRight(first) && isRight(second) === false,
  second: ({ looks: [first, second] }) => isRight(first) === false && isRight(second),
};

// What one may ask to see: [[key, words]].
export function verdictsOf(subjects, runs) {
  const known = areKnown(subjects);
  const [a, b] = runs;
  if (b === undefined) return known ? [["", "all"], ["right", "right"], ["wrong", "wrong"]] : [];
  const judged = [
    ["right", "both right"], ["wrong", "both wrong"], ["first", `only ${a} right`],
    ["second", `only ${b} right`],
  ];
  return [["", "all"], ["differ", "they disagree"], ...(known ? judged : [])];
}

// The names that a choice of class may be of, each with how often it occurs.
export function classesOf(subjects, namesOf) {
  const counts = new Map();
  for (const subject of subjects) {
    for (const name of new Set(subject.looks.flatMap(namesOf))) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const names = [...counts.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  return [["", "any"], ...names.map((name) => [name, `${name} (${counts.get(name)})`])];
}

export const truthOf = ({ classes }) => classes.truth;
export const saidOf = ({ classes }) => classes.said;

// What the state asks for; a choice that these images do not know chooses nothing.
export function listedOf(subjects, state) {
  const asked = (key) => String(state.get(key));
  const having = (key, namesOf) => {
    const has = ({ looks }) => looks.some((look) => namesOf(look).includes(asked(key)));
    return subjects.some(has) ? has : () => true;
  };
  const tests = [
    having("truth", truthOf), having("said", saidOf), VERDICTS[asked("verdict")] ?? (() => true),
  ];
  const order = ORDERS[asked("order")] ?? ORDERS[ordersOf(subjects)[0][0]];
  const kept = subjects.filter((subject) => tests.every((test) => test(subject)));
  return kept.sort((a, b) => order[1](a, b) || a.item - b.item);
}

// “12 of 60, 9 wrong”
export function countText(shown, all, runs) {
  const parts = [`${shown.length} of ${all.length}`];
  if (runs.length > 1) parts.push(`they disagree on ${shown.filter(differs).length}`);
  if (areKnown(all)) {
    parts.push(...runs.map((run, i) => {
      const wrong = shown.filter(({ looks }) => looks[i] && isRight(looks[i]) === false).length;
      return runs.length > 1 ? `${run} ${wrong} wrong` : `${wrong} wrong`;
    }));
  }
  return parts.join(", ");
}

// What a run said of an image, in a line that needs no colour.
export function verdictText(look) {
  const right = isRight(look);
  const is = right === null ? "" : right ? ", right" : `, wrong: it is ${look.classes.truth.join(", ")}`;
  return `${saidText(look)} ${percentText(look.score)}${is}`;
}

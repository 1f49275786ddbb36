// Okabe and Ito's colours that can be seen on an image; `draw/boxes.py` has the same.

export const OBJECT_COLOURS = [
  "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#0072b2",
];

export function objectColour(number) {
  return OBJECT_COLOURS[number % OBJECT_COLOURS.length];
}

export function colourParts(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}

// What can be read on a colour.
export function inkOnColour(colour) {
  const [red, green, blue] = colourParts(colour);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 110 ? "#10131a" : "#ffffff";
}

// One hue, evenly darker (on dark pages evenly lighter), so that it survives printing and colour
// blindness; for differences, blue against orange, which no common colour blindness confuses.

const LIGHT_STOPS = [
  [246, 247, 249], [203, 221, 238], [116, 171, 214], [33, 113, 181], [8, 48, 107]
];
const DARK_STOPS = [[32, 36, 43], [30, 62, 102], [38, 110, 173], [112, 181, 230], [233, 245, 255]];
const LIGHT_MINUS = [[246, 247, 249], [250, 217, 188], [236, 153, 92], [196, 90, 28], [110, 42, 5]];
const DARK_MINUS = [[32, 36, 43], [92, 52, 26], [168, 88, 36], [236, 150, 88], [255, 236, 219]];

function ramp(stops) {
  const table = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) {
      table[3 * i + c] = Math.round(
        stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c])
      );
    }
  }
  return table;
}

const RAMPS = {
  light: { plus: ramp(LIGHT_STOPS), minus: ramp(LIGHT_MINUS) },
  dark: { plus: ramp(DARK_STOPS), minus: ramp(DARK_MINUS) },
};

let currentTheme = null;
const knownColours = new Map();

// What the system asks for.
export const nightfall = matchMedia("(prefers-color-scheme: dark)");

// Asked for each cell, so it is remembered until `themeChanged`.
export function theme() {
  currentTheme ??= document.documentElement.dataset.theme;
  return currentTheme;
}

export function themeChanged() {
  currentTheme = null;
  knownColours.clear();
}

// A weight's place on the ramp. Log shows four decades.
export function scaled(value, scale) {
  if (!(value > 0)) return 0;
  if (scale === "log") return Math.min(Math.max(1 + Math.log10(value) / 4, 0), 1);
  return Math.min(scale === "sqrt" ? Math.sqrt(value) : value, 1);
}

export function shadeParts(value, scale = "linear", name = theme()) {
  const side = RAMPS[name][value < 0 ? "minus" : "plus"];
  const i = 3 * Math.round(255 * scaled(Math.abs(value), scale));
  return [side[i], side[i + 1], side[i + 2]];
}

export function shade(value, scale, name) {
  return `rgb(${shadeParts(value, scale, name).join(" ")})`;
}

// What can be read on that shade.
export function inkOn(value, scale, name = theme()) {
  const [r, g, b] = shadeParts(value, scale, name).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#14181f" : "#ffffff";
}

// A picture of a matrix, one pixel a cell.
export function pixels(data, rows, columns, scale, name = theme()) {
  const image = new ImageData(columns, rows);
  const { plus, minus } = RAMPS[name];
  for (let i = 0; i < rows * columns; i++) {
    const value = data[i];
    const side = value < 0 ? minus : plus;
    const at = 3 * Math.round(255 * scaled(Math.abs(value), scale));
    image.data[4 * i] = side[at];
    image.data[4 * i + 1] = side[at + 1];
    image.data[4 * i + 2] = side[at + 2];
    image.data[4 * i + 3] = 255;
  }
  return image;
}

// A colour of the page, by the name of its custom property.
export function pageColour(name) {
  if (!knownColours.has(name)) {
    knownColours.set(
      name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
    );
  }
  return knownColours.get(name);
}

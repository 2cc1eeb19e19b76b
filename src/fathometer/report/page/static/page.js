// What every program of the page shares: the data, elements, numbers, light and dark.
const DATA = JSON.parse(document.getElementById("data").textContent, (_, value) => {
  const text = value?.["float32 base64"];
  return typeof text === "string" ? unpacked(text) : value;
});
const Views = {};

/** An element with attributes and children; text is never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A number for reading, as `number` in `words.py` writes it. */
function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2).replace(/(e[+-])(\d)$/, "$10$2");
  if (Number.isInteger(value)) return String(value);
  const digits = size >= 100 ? 1 : 3, tens = 10 ** digits;
  if ((size * 2 ** (digits + 1)) % 2 !== 1) return value.toFixed(digits);
  const below = Math.floor(size * tens); // exactly half-way, as 0.0625 is: to the even neighbour, as Python does
  return (Math.sign(value) * (below + below % 2) / tens).toFixed(digits);
}

/** Float32 numbers out of base64, null where there is none. */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return Array.from(new Float32Array(bytes.buffer), (value) => (Number.isNaN(value) ? null : value));
}

/** A table that came by columns, as rows. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  return Array.from({ length: count }, (_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
}

/** A labelled choice. */
function chooser(label, options, chosen, change) {
  const select = make("select", { onchange: () => change(select.value) });
  for (const [value, text] of options) select.append(make("option", { value, selected: value === chosen }, text));
  return make("label", {}, label, select);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// From dark to light, even steps for the eye, also for the colour-blind (viridis).
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function shade(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const i = Math.min(Math.floor(place), STOPS.length - 2);
  const mixed = STOPS[i].map((low, k) => Math.round(low + (place - i) * (STOPS[i + 1][k] - low)));
  return `rgb(${mixed.join(",")})`;
}

// What all programs of the page share: data, elements, numbers, charts, tables.
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

/** A number for reading, as `number` in `numbers.py` writes it. */
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

/** A value, ± its standard deviation over batches. */
function withError(value, error) {
  return number(value) + (error ? ` ± ${number(error)}` : "");
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

/** The name of a gauge for reading. */
function label(gauge) {
  return gauge === "affinity" ? "affinity score" : gauge.replaceAll("_", " ");
}

/** Cells of text. */
function textCells(...texts) {
  return texts.map((text) => make("td", {}, text ?? ""));
}

/** Names and values, as a list. */
function listOf(pairs) {
  return make("dl", {}, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

/** A place for a chart, in a figure. */
function figureOf(element, ...more) {
  return make("figure", {}, element, ...more);
}

function chartPlace(part) {
  return make("div", { class: "chart", "data-part": part });
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

// From dark to light, even steps for the eye, also for the colour-blind (cividis, as in figures).
const STOPS = [[0, 34, 78], [64, 77, 107], [124, 123, 120], [187, 173, 108], [254, 232, 56]];
function shade(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const i = Math.min(Math.floor(place), STOPS.length - 2);
  const mixed = STOPS[i].map((low, k) => Math.round(low + (place - i) * (STOPS[i + 1][k] - low)));
  return `rgb(${mixed.join(",")})`;
}
// Charts: a Vega-Lite specification and its data, drawn again when the colours change.
const drawn = new Map();

function chartConfig() {
  const ink = colour("ink"), soft = colour("soft"), line = colour("line");
  return {
    background: "transparent",
    customFormatTypes: true,
    font: "system-ui, 'DejaVu Sans', sans-serif",
    axis: { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal" },
    legend: { labelColor: soft, titleColor: ink, titleFontWeight: "normal", labelLimit: 220 },
    header: { labelColor: ink, titleColor: ink },
    title: { color: ink, fontWeight: "normal" },
    text: { color: ink },
    rule: { color: soft },
    view: { stroke: null },
    range: { category: DATA.palette, heatmap: { scheme: "cividis" }, ramp: { scheme: "cividis" } },
  };
}

/** A few sites by name along the axis of depth; many keep their numbers. */
function nameSites(spec, names) {
  if (names.length > 24) return spec;
  const axis = { grid: false, values: names.map((_, i) => i), labelExpr: `${JSON.stringify(names)}[datum.value]`,
    labelAngle: names.length > 6 || names.some((name) => name.length > 12) ? -50 : 0, labelLimit: 150, labelOverlap: false };
  const renamed = (layer) => (layer.encoding?.x?.field === "order"
    ? { ...layer, encoding: { ...layer.encoding, x: { ...layer.encoding.x, axis } } } : layer);
  return { ...spec, layer: spec.layer.map(renamed) };
}

/** A specification with every text in it changed. */
function reworded(spec, change) {
  if (typeof spec === "string") return change(spec);
  if (Array.isArray(spec)) return spec.map((part) => reworded(part, change));
  if (spec && typeof spec === "object") return Object.fromEntries(Object.entries(spec).map(([k, v]) => [k, reworded(v, change)]));
  return spec;
}

/** Put words in place of {words}. */
function filled(spec, words) {
  return reworded(spec, (text) => text.replace(/\{(\w+)\}/g, (all, name) => (name in words ? words[name] : all)));
}

/** Put the colours of the style sheet, as they are now, in place of `var(--name)`. */
function themed(spec) {
  return reworded(spec, (text) => text.replace(/^var\(--(\w+)\)$/, (_, name) => colour(name)));
}

/** The content of a tip: pairs of name and value, so that a name can be any. */
function tipOf(title, ...pairs) {
  return { title, pairs };
}

// The tip beside the pointer: what `tipOf` gives, an object of Vega's as names and values, anything else as text; never outside the window.
const tip = make("div", { class: "tip", role: "tooltip", hidden: true });
document.body.append(tip);
function showTip(_, event, __, value) {
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  const { title, pairs } = typeof value !== "object" ? tipOf(String(value)) : Array.isArray(value.pairs) ? value : tipOf("", ...Object.entries(value));
  tip.replaceChildren(...(title ? [make("strong", {}, String(title))] : []), listOf(pairs));
  const room = 12, box = tip.getBoundingClientRect();
  const beside = event.clientX + room + box.width < innerWidth ? event.clientX + room : event.clientX - room - box.width;
  tip.style.left = `${Math.max(4, Math.min(beside, innerWidth - box.width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + room, innerHeight - box.height - 4))}px`;
}

/** Draw a chart into an element; `onclick(row)` is called for clicks on marks. */
async function draw(element, spec, datasets, onclick = null) {
  drawn.get(element)?.view?.finalize(); // or it would go on listening to the window
  const kept = { spec, datasets, onclick, signals: {} };
  drawn.set(element, kept);
  const options = {
    renderer: spec.usermeta?.renderer ?? "svg",
    config: chartConfig(),
    actions: { export: true, source: false, compiled: false, editor: false },
    tooltip: showTip,
    expressionFunctions: { readable: number }, // "number" is a format of Vega-Lite itself
  };
  const full = themed(spec), layer = full.layer?.filter(({ data }) => !data || datasets[data.name]?.length); // Vega warns of empty ones
  const result = await vegaEmbed(element, { ...full, ...(layer ? { layer } : {}), datasets }, options);
  if (drawn.get(element) === kept) kept.view = result.view;
  else result.view.finalize(); // something else was asked for in the meantime
  if (kept.view) for (const [name, value] of Object.entries(kept.signals)) kept.view.signal(name, value).runAsync();
  if (onclick) result.view.addEventListener("click", (_, item) => item && item.datum && onclick(item.datum));
  element.dataset.ready = "true";
  return result.view;
}

/** Set a parameter of a chart that is drawn, or is being drawn. */
function setSignal(element, name, value) {
  const kept = drawn.get(element);
  if (!kept) return;
  kept.signals[name] = value;
  kept.spec = { ...kept.spec, params: kept.spec.params.map((param) => (param.name === name ? { ...param, value } : param)) };
  kept.view?.signal(name, value).runAsync();
}

/** A specification with values for its parameters. */
function withParams(spec, values) {
  return { ...spec, params: (spec.params ?? []).map((param) => ({ ...param, value: values[param.name] ?? param.value })) };
}

/** Remove a chart; words may take its place. */
function undraw(element, words = "") {
  drawn.get(element)?.view?.finalize();
  drawn.delete(element);
  element.replaceChildren(words);
}

function redrawAll() {
  for (const [element, { spec, datasets, onclick }] of drawn) if (element.isConnected) draw(element, spec, datasets, onclick);
}
// Tables: click a head to sort, type to filter.

/** Make the columns of a table sortable, and add a field that filters its rows. */
function sortable(table, controls = null) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const label = head.textContent;
    head.replaceChildren(make("button", { type: "button", onclick: () => sortBy(table, head, column) }, label));
  });
  if (!controls || body.rows.length < 2) return;
  const status = make("span", { role: "status", class: "lead" });
  const field = make("input", { type: "search", placeholder: "filter rows", "aria-label": "Filter rows" });
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    status.textContent = words.length ? `${shown} of ${body.rows.length} rows` : "";
  });
  controls.append(field, status);
}

function sortBy(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const numeric = head.classList.contains("number");
  const key = (row) => {
    const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
    if (!numeric) return text;
    return text === "" || text === "–" ? null : Number(text);
  };
  const order = (a, b) => {
    const x = key(a), y = key(b);
    if (x === null || y === null) return (x === null) - (y === null); // what is missing comes last
    const sign = numeric ? x - y : x.localeCompare(y, undefined, { numeric: true });
    return down ? -sign : sign;
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
}

/** A cell with a number; infinities are results too. */
function numberCell(value) {
  const sorted = { "∞": "Infinity", "−∞": "-Infinity" }[value] ?? value ?? "";
  return make("td", { class: "number", "data-value": sorted }, number(value));
}

/** A table of ready cells, to sort and to filter; `heads` are [name, whether it is of numbers]. */
function tableOf(heads, rows, name, part = null, filter = true) {
  const head = make("tr", {}, ...heads.map(([text, numeric]) => make("th", { scope: "col", class: numeric ? "number" : null }, text)));
  const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
  const table = make("table", {}, make("thead", {}, head), body), controls = filter ? make("div", { class: "controls" }) : null;
  sortable(table, controls);
  const figure = make("figure", { class: "rows", "data-part": part }, controls,
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table));
  return { figure, table, body };
}

/** Rows to choose, by pointer or keyboard; each keeps its place under `key`, however they are sorted. */
function choosable(body, key, choose) {
  [...body.rows].forEach((row, i) => {
    row.dataset[key] = i;
    row.classList.add("choosable");
    row.tabIndex = 0;
    row.addEventListener("click", () => choose(i));
    row.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(i);
    });
  });
}

/** Mark the row that is shown. */
function current(row, is) {
  if (is) row.setAttribute("aria-current", "true");
  else row.removeAttribute("aria-current");
}

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
    range: { category: DATA.palette, heatmap: { scheme: "viridis" }, ramp: { scheme: "viridis" } },
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

/** Put words in place of {words} everywhere in a specification. */
function filled(spec, words) {
  if (typeof spec === "string") return spec.replace(/\{(\w+)\}/g, (all, name) => (name in words ? words[name] : all));
  if (Array.isArray(spec)) return spec.map((part) => filled(part, words));
  if (spec && typeof spec === "object") return Object.fromEntries(Object.entries(spec).map(([k, v]) => [k, filled(v, words)]));
  return spec;
}

/** A specification with the colours of the style sheet, as they are now, in place of `var(--name)`. */
function themed(spec) {
  if (typeof spec === "string") return spec.replace(/^var\(--(\w+)\)$/, (_, name) => colour(name));
  if (Array.isArray(spec)) return spec.map(themed);
  if (spec && typeof spec === "object") return Object.fromEntries(Object.entries(spec).map(([k, v]) => [k, themed(v)]));
  return spec;
}

/** What a tip says: pairs of name and value, so that a name can be any. */
function told(title, ...pairs) {
  return { title, pairs };
}

// The tip beside the pointer: what `told` gives, an object of Vega's as names and values, anything else as text; never outside the window.
const tip = make("div", { class: "tip", role: "tooltip", hidden: true });
document.body.append(tip);
function showTip(_, event, __, value) {
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  const { title, pairs } = typeof value !== "object" ? told(String(value)) : Array.isArray(value.pairs) ? value : told("", ...Object.entries(value));
  const rows = pairs.map(([name, held]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(held))));
  tip.replaceChildren(...(title ? [make("strong", {}, String(title))] : []), make("dl", {}, ...rows));
  const room = 12, box = tip.getBoundingClientRect();
  const beside = event.clientX + room + box.width < innerWidth ? event.clientX + room : event.clientX - room - box.width;
  tip.style.left = `${Math.max(4, Math.min(beside, innerWidth - box.width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + room, innerHeight - box.height - 4))}px`;
}

/** Draw a chart into an element; `onclick(row)` is told of clicks on marks. */
async function draw(element, spec, datasets, onclick = null) {
  drawn.get(element)?.view?.finalize(); // or it would go on listening to the window
  const kept = { spec, datasets, onclick };
  drawn.set(element, kept);
  const options = {
    renderer: "svg",
    config: chartConfig(),
    actions: { export: true, source: false, compiled: false, editor: false },
    tooltip: showTip,
    expressionFunctions: { number },
  };
  const result = await vegaEmbed(element, { ...themed(spec), datasets }, options);
  if (drawn.get(element) === kept) kept.view = result.view;
  else result.view.finalize(); // something else was asked for in the meantime
  if (onclick) result.view.addEventListener("click", (_, item) => item && item.datum && onclick(item.datum));
  element.dataset.ready = "true";
  return result.view;
}

/** Take a chart away; words may stand in its place. */
function undraw(element, words = "") {
  drawn.get(element)?.view?.finalize();
  drawn.delete(element);
  element.replaceChildren(words);
}

function redrawAll() {
  for (const [element, { spec, datasets, onclick }] of drawn) if (element.isConnected) draw(element, spec, datasets, onclick);
}

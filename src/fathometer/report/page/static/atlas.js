// An atlas: every sounding in a table and a chart; search, open one, compare two.
const STATISTICS = ["min", "median", "max", "spread"];

/** Where an address leads: one network, or two. */
function linkTo(first, second = null) {
  return `#model=${encodeURIComponent(first.name)}${second ? `&with=${encodeURIComponent(second.name)}` : ""}`;
}

/** A number as one reads it: 61.1M parameters. */
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
function size(value) {
  return value >= 1e5 ? compact.format(value) : number(value);
}

/** A line as small as a word: values by depth, between low and high. */
function sparkline(values, low, high, hue) {
  const width = 110, height = 20, step = width / Math.max(values.length - 1, 1), range = high - low || 1;
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  let ways = "", pen = "M";
  values.forEach((value, i) => {
    if (value === null) { pen = "M"; return; }
    const share = Math.min(Math.max((value - low) / range, 0), 1);
    ways += `${pen}${(i * step).toFixed(1)} ${(1 + (height - 2) * (1 - share)).toFixed(1)}`;
    pen = "L";
  });
  path.setAttribute("d", ways);
  path.setAttribute("stroke", hue);
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("viewBox", `-1 0 ${width + 2} ${height}`);
  drawing.setAttribute("class", "spark");
  drawing.setAttribute("aria-hidden", "true");
  drawing.append(path);
  return drawing;
}

Views.atlas = class {
  constructor(element, data, charts) {
    this.data = data;
    this.charts = charts;
    this.networks = data.networks.map((record) => new Network(record));
    this.named = new Map(this.networks.map((network) => [network.name, network]));
    const gauges = [...new Set(this.networks.flatMap((network) => network.gauges))];
    this.gauge = gauges.includes("affinity") ? "affinity" : gauges[0];
    const everyone = (fact) => data.facts.includes(fact) && this.networks.every((network) => (network.facts[fact] ?? null) !== null);
    const alike = new Set(this.networks.map((network) => network.count)).size === 1;
    this.x = ["year", "parameters"].find(everyone) ?? (alike ? "spread" : "sites");
    this.y = "median";
    this.chosen = new Set(); // families; none means all
    this.ticked = [];
    this.search = make("input", { type: "search", placeholder: "name, family, data", "aria-label": "Search", oninput: () => this.find() });
    this.status = make("span", { role: "status", class: "lead" });
    this.scatter = chartPlace("scatter");
    this.gap = make("p", { class: "lead" });
    this.panel = make("section", { class: "opened", "aria-label": "Chosen network", hidden: true });
    const axes = [...STATISTICS, "sites", ...data.facts].map((name) => [name, label(name)]);
    element.replaceChildren(
      make("div", { class: "controls" }, this.search,
        chooser("Gauge", gauges.map((name) => [name, label(name)]), this.gauge, (name) => this.show(name)), this.status),
      this.chips(),
      make("div", { class: "controls" },
        chooser("x axis", axes, this.x, (name) => { this.x = name; this.drawScatter(); }),
        chooser("y axis", axes, this.y, (name) => { this.y = name; this.drawScatter(); })),
      figureOf(this.scatter, this.gap), this.table(), this.panel,
    );
    addEventListener("hashchange", () => this.route());
    this.show(this.gauge);
    this.route();
  }

  hue(network) { return this.data.families[network.family] ?? colour("faint"); }

  /** Families, with their colours; press some to see no others. */
  chips() {
    return make("div", { class: "chips", role: "group", "aria-label": "Families" }, ...Object.entries(this.data.families).map(([family, hue]) => {
      const chip = make("button", { type: "button", "aria-pressed": "false", onclick: () => {
        const on = !this.chosen.has(family);
        this.chosen[on ? "add" : "delete"](family);
        chip.setAttribute("aria-pressed", String(on));
        this.find();
      } }, swatch(hue), family);
      return chip;
    }));
  }

  table() {
    const several = new Set(this.networks.map((network) => network.data)).size > 1;
    const heads = [["compare"], ["network"], ...(Object.keys(this.data.families).length ? [["family"]] : []), ...(several ? [["data"]] : []),
      ["signature"], ["sites", 1], ...STATISTICS.map((name) => [name, 1]), ...this.data.facts.map((name) => [label(name), 1])];
    const places = Object.fromEntries(heads.map(([name], k) => [name, k]));
    const cell = (value) => make("td", { class: "number", "data-value": value ?? "" }, size(value));
    const rows = this.networks.map((network) => {
      network.box = make("input", { type: "checkbox", "aria-label": `Compare ${network.name}`, onchange: () => this.tick(network) });
      network.link = make("a", { href: linkTo(network) }, network.name);
      network.text = [network.name, network.family, network.data].join(" ").toLowerCase();
      return [make("td", { "data-value": "1" }, make("label", {}, network.box)), make("td", {}, network.link),
        ...heads.slice(2, places.signature).map(([name]) => make("td", {}, network[name] ?? "")), make("td"), cell(network.count),
        ...STATISTICS.map(() => cell(null)), ...this.data.facts.map((name) => cell(network.facts[name]))];
    });
    this.places = places;
    const { figure, table, body } = tableOf(heads, rows, "All networks", null, false); // the search above filters
    table.className = "atlas";
    body.addEventListener("keydown", (event) => this.walk(event));
    this.networks.forEach((network, i) => {
      network.row = body.rows[i];
      network.cells = network.row.cells;
      network.row.className = "choosable"; // its link is there for the keyboard
      network.row.addEventListener("click", (event) => { if (!event.target.closest("a, input, label")) location.hash = linkTo(network); });
    });
    this.body = body;
    return figure;
  }

  /** Everything for one gauge. */
  show(gauge) {
    this.gauge = gauge;
    const all = this.networks.flatMap((network) => network.mean(gauge)).filter((value) => value !== null).sort((a, b) => a - b);
    const low = all[Math.floor(0.02 * (all.length - 1))], high = all[Math.ceil(0.98 * (all.length - 1))]; // the same for all, but for what sticks out
    for (const network of this.networks) {
      network.sum = network.summary(gauge);
      network.cells[this.places.signature].replaceChildren(sparkline(network.mean(gauge), low, high, this.hue(network)));
      network.cells[this.places.signature].dataset.value = String(network.sum.median ?? "");
      for (const name of STATISTICS) {
        const place = network.cells[this.places[name]];
        place.textContent = number(network.sum[name]);
        place.dataset.value = network.sum[name] ?? "";
      }
    }
    this.drawScatter();
  }

  find() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const network of this.networks) {
      const fits = words.every((word) => network.text.includes(word)) && (!this.chosen.size || this.chosen.has(network.family));
      network.row.hidden = !fits;
      shown += fits;
    }
    this.status.textContent = shown < this.networks.length ? `${shown} of ${this.networks.length} soundings` : "";
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.drawScatter(), 150);
  }

  value(network, axis) {
    if (axis === "sites") return network.count;
    return STATISTICS.includes(axis) ? network.sum[axis] : network.facts[axis];
  }

  drawScatter() {
    const fitting = this.networks.filter((network) => !network.row.hidden);
    const rows = fitting.map((network) => {
      const x = this.value(network, this.x), y = this.value(network, this.y);
      const family = network.family ? [["family", network.family]] : [];
      const tip = tipOf(network.name, ...family, [this.name(this.x), size(x)], [this.name(this.y), size(y)]);
      return { x, y, hue: this.hue(network), place: this.networks.indexOf(network), tip };
    }).filter(({ x, y }) => x !== null && y !== null);
    if (!rows.length) {
      undraw(this.scatter, fitting.length ? "No network that is shown has both numbers." : "Nothing matches.");
      return;
    }
    const without = fitting.length - rows.length;
    this.gap.textContent = without ? `${without} without ${label(this.x)} or ${label(this.y)} ${without === 1 ? "is" : "are"} not in the chart.` : "";
    const [across, up] = [[this.x, "x"], [this.y, "y"]].map(([axis, key]) => this.axis(axis, rows.map((row) => row[key])));
    const spec = filled(this.charts.scatter, { x: this.name(this.x), y: this.name(this.y) });
    Object.assign(spec.encoding.x, across);
    Object.assign(spec.encoding.y, up);
    draw(this.scatter, spec, { networks: rows }, (row) => { location.hash = linkTo(this.networks[row.place]); });
  }

  /** Sizes of networks on a logarithmic scale, years as whole numbers. */
  axis(name, values) {
    const least = Math.min(...values), most = Math.max(...values);
    const scale = ["parameters", "gflops"].includes(name) && least > 0 ? { type: "log", nice: false, padding: 8 } : { zero: false };
    return { scale, axis: name === "year" ? { format: "d", tickMinStep: 1 } : most >= 1e4 ? { format: "~s" } : {} };
  }

  name(axis) { return STATISTICS.includes(axis) ? `${axis} of ${label(this.gauge)}` : label(axis); }

  /** Up and down the table, from link to link. */
  walk(event) {
    const rows = [...this.body.rows].filter((row) => !row.hidden), at = rows.indexOf(event.target.closest("tr"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || !rows[to]) return;
    event.preventDefault();
    rows[to].querySelector(event.target.matches("input") ? "input" : "a").focus();
  }

  /** Two ticks are a comparison; a third takes the place of the first. */
  tick(network) {
    const before = this.ticked;
    this.ticked = [...before.filter((other) => other !== network), ...(network.box.checked ? [network] : [])].slice(-2);
    this.mark();
    if (this.ticked.length === 2) location.hash = linkTo(...this.ticked);
    else if (before.length === 2) location.hash = "";
    this.status.textContent = this.ticked.length === 1 ? `Tick another network to compare it with ${this.ticked[0].name}` : "";
  }

  mark() {
    for (const network of this.networks) {
      network.box.checked = this.ticked.includes(network);
      network.cells[0].dataset.value = network.box.checked ? "0" : "1";
      current(network.row, this.opened?.includes(network) ?? false);
    }
  }

  /** Go where the address says. */
  route() {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (location.hash && !asked.has("model")) return; // some other place of the page
    const names = [asked.get("model"), asked.get("with")].filter((name) => name !== null);
    const found = names.map((name) => this.named.get(name));
    for (const chart of this.panel.querySelectorAll(".chart")) undraw(chart);
    this.opened = found.includes(undefined) ? [] : found;
    if (found.length === 2) this.ticked = [...this.opened];
    else if (this.ticked.length === 2) this.ticked = [];
    this.mark();
    this.panel.hidden = !names.length;
    if (!names.length) { this.panel.replaceChildren(); return; }
    const heading = make("h2", { tabindex: "-1" }, names.join(" and "));
    const close = make("button", { type: "button", onclick: () => { location.hash = ""; this.opened[0]?.link.focus(); } }, "Close");
    const place = make("div", { class: "view" });
    this.panel.replaceChildren(make("div", { class: "head" }, heading, close), place);
    this.fill(place, names);
    this.panel.scrollIntoView();
    heading.focus({ preventScroll: true });
  }

  fill(place, names) {
    const [first, second] = this.opened, unknown = names.find((name) => !this.named.has(name));
    if (unknown !== undefined) { place.append(`There is no network called ${unknown} here.`); return; }
    if (!second) {
      const facts = Object.entries(first.facts).filter(([, value]) => value !== null).map(([name, value]) => `${label(name)} ${size(value)}`);
      const view = make("div");
      place.append(make("p", { class: "lead" }, [first.family, `${first.count} sites on ${first.data}`, ...facts].filter(Boolean).join(", ")), view);
      new Views.sounding(view, first.sounding(), this.charts);
      place.append(make("h3", {}, "Provenance"), make("details", { class: "facts", "data-part": "origin" },
        make("summary", {}, "Network, data, settings, versions"), listOf(Object.entries(first.origin))));
    } else if (!shared(this.opened).length) place.append("These two have no gauge in common.");
    else {
      this.opened.forEach((network, k) => { network.hue = DATA.palette[k]; });
      new Views.overlay(place, { networks: this.opened, gauge: this.gauge, shown: 2 }, this.charts);
    }
  }
};

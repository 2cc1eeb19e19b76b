// Networks over each other: choose a gauge and the networks, and compare two of them site by site.

/** A sounding as the data of the page give it. */
class Network {
  constructor({ mean, std, summary, ...rest }) {
    Object.assign(this, rest, { means: mean, stds: std, summaries: summary, count: rest.sites.site.length });
  }

  /** A number for each site, null where there is none. */
  mean(gauge) { return this.means[gauge] ?? Array(this.count).fill(null); }

  std(gauge) { return this.stds[gauge] ?? Array(this.count).fill(null); }

  /** Over the sites. */
  summary(gauge) {
    const [min = null, median = null, max = null, spread = null] = this.summaries[gauge] ?? [];
    return { min, median, max, spread };
  }

  depth(i) { return i / Math.max(this.count - 1, 1); }

  /** All of it, as `Views.sounding` takes it. */
  sounding() {
    const each = (take) => Object.fromEntries(this.gauges.map((gauge) => [gauge, take(gauge)]));
    const block = this.blocks.flatMap(([, begin, end, name]) => Array(end - begin).fill(name));
    return {
      name: this.name, gauges: this.gauges, sites: { ...this.sites, block }, blocks: this.blocks,
      mean: each((gauge) => this.mean(gauge)), std: each((gauge) => this.std(gauge)),
    };
  }

  withError(gauge, i) { return withError(this.mean(gauge)[i], this.std(gauge)[i]); }
}

/** The gauges that all networks have, in the order of the first. */
function shared(networks) {
  return networks[0].gauges.filter((gauge) => networks.every((network) => network.gauges.includes(gauge)));
}

/** Dynamic time warping, as `fathometer.compare.dtw_path`: pairs of places, and the distance. */
function dtw(a, b) {
  const width = b.length + 1, total = new Float64Array((a.length + 1) * width).fill(Infinity);
  total[0] = 0;
  for (let i = 1; i <= a.length; i++) for (let j = 1; j < width; j++) {
    const at = i * width + j;
    total[at] = (a[i - 1] - b[j - 1]) ** 2 + Math.min(total[at - width - 1], total[at - width], total[at - 1]);
  }
  let i = a.length, j = b.length;
  const pairs = [[i - 1, j - 1]];
  while (i > 1 || j > 1) {
    const at = i * width + j, least = Math.min(total[at - width - 1], total[at - width], total[at - 1]);
    if (total[at - width - 1] === least) { i--; j--; } else if (total[at - width] === least) i--; else j--;
    pairs.push([i - 1, j - 1]);
  }
  return { pairs: pairs.reverse(), distance: Math.sqrt(total.at(-1)) };
}

/** Every site of the longer network with that of the other at the nearest relative depth. */
function byDepth(n, m) {
  if (n < m) return byDepth(m, n).map(([i, j]) => [j, i]);
  return Array.from({ length: n }, (_, i) => [i, n > 1 ? Math.round((i * (m - 1)) / (n - 1)) : 0]);
}

/** A patch of colour, for a legend. */
function swatch(hue) {
  return make("span", { class: "swatch", style: `background:${hue}` });
}

/** Round numbers between two others, two to five. */
function roundNumbers(low, high) {
  const rough = (high - low) / 5 || 1, ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((k) => ten * k >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

Views.overlay = class {
  constructor(element, data, charts) {
    this.charts = charts;
    this.networks = data.networks.map((record) => (record instanceof Network ? record : new Network(record)));
    const gauges = shared(this.networks);
    this.gauge = gauges.includes(data.gauge) ? data.gauge : gauges[0];
    this.shown = new Set(this.networks.slice(0, data.shown));
    this.families = this.networks.some((network) => network.family_hue);
    this.colours = this.families && this.networks.length > data.shown ? "family" : "network";
    [this.first, this.second] = this.networks;
    this.by = "depth";
    [this.overlay, this.alignment, this.difference] = ["overlay", "alignment", "difference"].map(chartPlace);
    this.ticks = make("div", { class: "ticks" });
    this.words = make("p", { "data-words": true, "aria-live": "polite" });
    this.legend = make("div", { class: "legend" });
    this.pairs = make("div", {});
    const names = this.networks.map((network, i) => [String(i), network.name]);
    element.replaceChildren(
      make("div", { class: "controls" },
        chooser("Gauge", gauges.map((name) => [name, label(name)]), this.gauge, (name) => { this.gauge = name; this.show(); }),
        this.families ? chooser("Colour by", [["network", "network"], ["family", "family"]], this.colours,
          (name) => { this.colours = name; this.list(); this.drawOverlay(); }) : null),
      figureOf(this.overlay), this.fieldset(),
      make("h3", {}, "Two networks, site by site"),
      make("div", { class: "controls" },
        chooser("A", names, "0", (i) => { this.first = this.networks[i]; this.compare(); }),
        chooser("B", names, "1", (i) => { this.second = this.networks[i]; this.compare(); }),
        chooser("Aligned by", [["depth", "relative depth"], ["dtw", "dynamic time warping"]], this.by, (by) => { this.by = by; this.compare(); })),
      this.words, this.legend, figureOf(this.alignment), figureOf(this.difference), this.pairs,
    );
    this.list();
    this.show();
  }

  show() {
    this.drawOverlay();
    this.compare();
  }

  hue(network) {
    return (this.colours === "family" ? network.family_hue : network.hue) ?? colour("faint");
  }

  /** Which networks are shown; it is the legend, too. */
  fieldset() {
    const all = (which) => make("button", {
      type: "button", onclick: () => { this.shown = new Set(which === "all" ? this.networks : []); this.list(); this.drawOverlay(); },
    }, which);
    return make("fieldset", { class: "networks" }, make("legend", {}, "Networks ", all("all"), " ", all("none")), this.ticks);
  }

  list() {
    this.ticks.replaceChildren(...this.networks.map((network) => {
      const box = make("input", { type: "checkbox", onchange: () => {
        this.shown[box.checked ? "add" : "delete"](network);
        this.drawOverlay();
      } });
      box.checked = this.shown.has(network);
      return make("label", { title: network.family ?? "" }, box, swatch(this.hue(network)), network.name);
    }));
  }

  drawOverlay() {
    const bars = this.shown.size <= 4; // more of them hide each other
    const points = this.networks.filter((network) => this.shown.has(network)).flatMap((network) => {
      const values = network.mean(this.gauge), errors = network.std(this.gauge);
      return values.map((value, i) => ({
        network: network.name, depth: network.depth(i), value, hue: this.hue(network),
        low: value - bars * errors[i], high: value + bars * errors[i], tip: this.tip(network, i),
      })).filter((row) => row.value !== null);
    });
    if (points.length) draw(this.overlay, filled(this.charts.overlay, { gauge: label(this.gauge) }), { points });
    else undraw(this.overlay, "Tick a network to see it here.");
  }

  tip(network, i) {
    const family = network.family ? [["family", network.family]] : [];
    return tipOf(network.name, ...family, ["site", network.sites.site[i]], ["operator", network.sites.operator[i]],
      [label(this.gauge), network.withError(this.gauge, i)]);
  }

  /** Pairs of sites that both have a value, and the distance where there is one. */
  align() {
    const [a, b] = [this.first, this.second].map((network) => network.mean(this.gauge));
    const has = (values) => [...values.keys()].filter((i) => values[i] !== null);
    const [left, right] = [has(a), has(b)];
    if (!left.length || !right.length) return { pairs: [], distance: null };
    if (this.by === "depth") return { pairs: byDepth(a.length, b.length).filter(([i, j]) => a[i] !== null && b[j] !== null), distance: null };
    const { pairs, distance } = dtw(left.map((i) => a[i]), right.map((j) => b[j]));
    return { pairs: pairs.map(([i, j]) => [left[i], right[j]]), distance };
  }

  /** Compare B with A. */
  compare() {
    const { first, second, gauge } = this, { pairs, distance } = this.align();
    const rows = pairs.map(([i, j]) => {
      const a = first.mean(gauge)[i], b = second.mean(gauge)[j], difference = b - a;
      const sites = [first.sites.site[i], second.sites.site[j]];
      return {
        i, j, a, b, difference, sites, zero: 0, depth: (first.depth(i) + second.depth(j)) / 2, hue: DATA.palette[difference > 0 ? 1 : 0],
        tip: tipOf(`${sites[0]} ↔ ${sites[1]}`, ["A", `${first.name} ${first.withError(gauge, i)}`], ["B", `${second.name} ${second.withError(gauge, j)}`],
          ["B − A", number(difference)]),
      };
    });
    this.words.textContent = this.summary(rows, distance);
    this.legend.replaceChildren(swatch(DATA.palette[0]), `A: ${first.name}`, swatch(DATA.palette[1]), `B: ${second.name}`);
    const names = { gauge: label(gauge), first: first.name, second: second.name };
    if (rows.length) {
      draw(this.alignment, filled(this.charts.alignment, names), this.curves(rows));
      draw(this.difference, filled(this.charts.difference, names), { pairs: rows, zero: [{ difference: 0 }] });
    } else for (const part of [this.alignment, this.difference]) undraw(part);
    const open = this.pairs.querySelector("details")?.open ?? false;
    this.pairs.replaceChildren(this.table(rows));
    this.pairs.firstChild.open = open;
  }

  summary(rows, distance) {
    const { first, second } = this;
    if (!rows.length) return "There is nothing to compare: one of the two has no values.";
    const how = distance === null
      ? "Each site of the longer network is compared with the site of the other at the nearest relative depth."
      : `The distance by dynamic time warping is ${number(distance)}.`;
    const mean = rows.reduce((sum, row) => sum + row.difference, 0) / rows.length;
    const most = rows.reduce((best, row) => (Math.abs(row.difference) > Math.abs(best.difference) ? row : best));
    return `${how} ${first.count} sites of A and ${second.count} of B make ${rows.length} pairs. On average B − A is ${number(mean)}; `
      + `furthest apart are ${most.sites[0]} and ${most.sites[1]}, by ${number(most.difference)}.`;
  }

  /** Both curves on one scale, A in the upper part of the box and B in the lower. */
  curves(rows) {
    const { gauge } = this, both = [this.first, this.second];
    const values = both.flatMap((network) => network.mean(gauge)).filter((value) => value !== null);
    const low = Math.min(...values), high = Math.max(...values), range = high - low || 1;
    const height = (which, value) => (which ? 0 : 0.54) + 0.46 * ((value - low) / range);
    const curves = both.flatMap((network, which) => network.mean(gauge).map((value, i) => ({
      which, depth: network.depth(i), height: value === null ? null : height(which, value), hue: DATA.palette[which], tip: this.tip(network, i),
    })));
    const joins = rows.map(({ i, j, a, b, tip }) => (
      { depth: both[0].depth(i), height: height(0, a), depth2: both[1].depth(j), height2: height(1, b), tip }));
    const ticks = [0, 1].flatMap((which) => roundNumbers(low, high).map((value) => ({ height: height(which, value), text: String(value) })));
    return { curves, joins, ticks };
  }

  table(rows) {
    const heads = [["site of A"], ["site of B"], ["A", 1], ["B", 1], ["B − A", 1]];
    const cells = rows.map(({ sites, a, b, difference }) => [...textCells(...sites), ...[a, b, difference].map(numberCell)]);
    return make("details", {}, make("summary", {}, `All ${rows.length} pairs`), tableOf(heads, cells, "All pairs").figure);
  }
};

// One sounding: choose a gauge, look along depth, point at a site, read everything about it.

/** Blocks as bands behind a chart, every other one darker. */
function bandsOf(blocks) {
  return blocks.map(([block, begin, end], i) => ({ block, begin: begin - 0.5, end: end - 0.5, odd: i % 2 ? 0.18 : 0.04 }));
}

Views.sounding = class {
  constructor(element, data, charts) {
    this.data = data;
    this.charts = charts;
    this.gauge = data.gauges[0];
    this.chosen = null;
    const choices = data.gauges.map((name) => [name, label(name)]);
    this.words = make("p", { "data-words": true });
    this.signature = make("div", { class: "chart", "data-part": "signature" });
    this.strip = make("div", { class: "strip", role: "listbox", tabindex: "0", "aria-label": "Sites in order of depth" });
    this.legend = make("div", { class: "legend" });
    this.details = make("div", { class: "details", "aria-live": "polite" });
    this.distribution = make("div", { class: "chart", "data-part": "distribution" });
    this.batches = make("div", { class: "chart", "data-part": "batches" });
    this.strip.addEventListener("keydown", (event) => this.walk(event));
    element.replaceChildren(
      make("div", { class: "controls" }, chooser("Gauge", choices, this.gauge, (name) => this.show(name))),
      this.words, make("figure", {}, this.signature),
      make("h3", {}, "The network as a strip"), this.strip, this.legend, this.details,
      make("div", { class: "side" }, make("figure", {}, this.distribution), make("figure", {}, this.batches)),
      make("h3", {}, "All sites"), this.table(),
    );
    this.show(this.gauge);
  }

  /** Everything for one gauge. */
  show(gauge) {
    this.gauge = gauge;
    this.words.textContent = this.data.words[gauge] ?? "";
    this.paint();
    this.drawSignature();
    if (this.finite().length) draw(this.distribution, filled(this.charts.distribution, { gauge: label(gauge) }), { sites: this.rows() });
    else undraw(this.distribution);
    this.describe();
  }

  values() { return this.data.mean[this.gauge] ?? []; }

  finite() { return this.values().filter((value) => value !== null); }

  rows() {
    const { sites, mean, std } = this.data;
    return sites.site.map((site, i) => {
      const value = mean[this.gauge][i], error = std[this.gauge][i] ?? 0;
      return {
        order: i, site, operator: sites.operator[i], block: sites.block[i], value,
        low: value === null ? null : value - error, high: value === null ? null : value + error,
        chosen: i === this.chosen ? 1 : 0, said: `${site} ${number(value)}`, known: told(site, ...this.known(i)),
      };
    });
  }

  /** All that is known of a site, name and value. */
  known(i) {
    const { sites, mean, std, gauges } = this.data;
    const facts = [["operator", sites.operator[i]], ["call", sites.call[i]], ["block", sites.block[i]],
      ["samples", sites.samples[i]], ["features", sites.features[i]]];
    for (const gauge of gauges) {
      const error = std[gauge][i];
      facts.push([label(gauge), number(mean[gauge][i]) + (error ? ` ± ${number(error)}` : "")]);
    }
    return facts.map(([name, value]) => [name, String(value)]);
  }

  drawSignature() {
    if (!this.finite().length) {
      const words = this.gauge === undefined ? "There is nothing to show: no gauge." : `${label(this.gauge)} has no value at any site.`;
      undraw(this.signature, make("p", { class: "note" }, words));
      this.signature.dataset.ready = "true";
      return;
    }
    const spec = nameSites(filled(this.charts.signature, { gauge: label(this.gauge) }), this.data.sites.site);
    draw(this.signature, spec, { sites: this.rows(), blocks: bandsOf(this.data.blocks) }, (row) => this.choose(row.order));
  }

  paint() {
    const values = this.values(), known = this.finite();
    const low = Math.min(...known), high = Math.max(...known);
    const { site } = this.data.sites, edges = new Set(this.data.blocks.map(([, begin]) => begin));
    this.strip.replaceChildren(...values.map((value, i) => make("div", {
      role: "option", id: `site-${i}`, title: `${site[i]}: ${number(value)}`, "aria-label": `${site[i]} ${number(value)}`,
      "aria-selected": String(i === this.chosen), class: i && edges.has(i) ? "edge" : null,
      style: `background:${value === null ? "var(--line)" : shade(high > low ? (value - low) / (high - low) : 1)}`,
      onclick: () => this.choose(i),
    })));
    const scale = make("i", { style: `background:linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map(shade).join(",")})` });
    const keys = values.length ? "arrow keys walk along the strip" : "no sites";
    if (known.length) this.legend.replaceChildren(number(low), scale, number(high), ` ${label(this.gauge)}; ${keys}`);
    else this.legend.replaceChildren(keys);
  }

  walk(event) {
    const last = this.data.sites.site.length - 1, at = this.chosen ?? -1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(to, 0), last));
  }

  choose(i) {
    if (i === undefined || i === this.chosen) return;
    this.strip.children[this.chosen]?.setAttribute("aria-selected", "false");
    this.strip.children[i].setAttribute("aria-selected", "true");
    this.strip.setAttribute("aria-activedescendant", `site-${i}`);
    this.chosen = i;
    for (const row of this.body.rows) current(row, Number(row.dataset.site) === i);
    this.drawSignature();
    this.describe();
  }

  describe() {
    const i = this.chosen;
    if (i === null) {
      this.details.replaceChildren("Choose a site, in the chart, on the strip or in the table, to read everything about it.");
      undraw(this.batches);
      return;
    }
    const pairs = this.known(i).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    this.details.replaceChildren(make("strong", {}, this.data.sites.site[i]), make("dl", {}, ...pairs));
    const values = this.data.batches?.[this.gauge][i];
    const rows = (values ?? []).map((value, batch) => ({ batch, value })).filter((row) => row.value !== null);
    if ((values?.length ?? 0) < 2 || !rows.length) undraw(this.batches);
    else draw(this.batches, filled(this.charts.batches, { gauge: label(this.gauge) }), { batches: rows });
  }

  table() {
    const { sites, mean, gauges } = this.data;
    const heads = [["#", 1], ["site"], ["operator"], ["block"], ["features", 1], ...gauges.map((gauge) => [label(gauge), 1])];
    const rows = sites.site.map((site, i) => [
      numberCell(i + 1), ...[site, sites.operator[i], sites.block[i]].map((text) => make("td", {}, text)),
      numberCell(sites.features[i]), ...gauges.map((gauge) => numberCell(mean[gauge][i]))]);
    const { figure, body } = tableOf(heads, rows, "All sites");
    choosable(body, "site", (i) => this.choose(i));
    this.body = body;
    return figure;
  }
};

function label(gauge) {
  return gauge === "affinity" ? "affinity score" : gauge.replaceAll("_", " ");
}

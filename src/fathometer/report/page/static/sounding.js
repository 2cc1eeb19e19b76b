// One sounding: choose a gauge, look along depth, choose a site and read everything about it.

/** Blocks as bands behind a chart, every other one darker. */
function bandsOf(blocks) {
  return blocks.map(([block, begin, end], i) => ({ block, begin: begin - 0.5, end: end - 0.5, odd: i % 2 ? 0.18 : 0.04 }));
}

/** A row for each site, as charts along depth take it; `facts(i)` are pairs for the tip. New objects each time, because Vega writes into those it gets. */
function siteRows(sites, values, errors, facts) {
  return sites.site.map((site, i) => {
    const value = values[i], error = errors?.[i] ?? 0;
    return {
      order: i, site, operator: sites.operator[i], value, description: `${site} ${number(value)}`, tip: tipOf(site, ...facts(i)),
      low: value === null ? null : value - error, high: value === null ? null : value + error,
    };
  });
}

Views.sounding = class {
  constructor(element, data, charts) {
    Object.assign(this, { data, charts, gauge: data.gauges[0], chosen: null });
    this.missing = make("p", { class: "note", "data-missing": true });
    this.strip = make("div", { class: "strip", role: "listbox", tabindex: "0", "aria-label": "Sites in order of depth" });
    this.legend = make("div", { class: "legend" });
    this.details = make("div", { class: "details", "aria-live": "polite" });
    [this.signature, this.distribution, this.batches] = ["signature", "distribution", "batches"].map(chartPlace);
    this.strip.addEventListener("keydown", (event) => this.walk(event));
    element.replaceChildren(
      make("div", { class: "controls" }, chooser("Gauge", data.gauges.map((name) => [name, label(name)]), this.gauge, (name) => this.show(name))),
      this.missing, figureOf(this.signature),
      make("h3", {}, "The network as a strip"), this.strip, this.legend, this.details,
      make("div", { class: "side" }, figureOf(this.distribution), figureOf(this.batches)),
      make("h3", {}, "All sites"), this.table(),
    );
    this.show(this.gauge);
  }

  /** Show everything for one gauge. */
  show(gauge) {
    this.gauge = gauge;
    this.values = this.data.mean[gauge] ?? [];
    this.finite = this.values.filter((value) => value !== null);
    const missing = this.values.length - this.finite.length;
    this.missing.textContent = missing ? `${missing} of ${this.values.length} sites have no finite value.` : "";
    this.paint();
    if (this.finite.length) {
      const sites = siteRows(this.data.sites, this.values, this.data.std[gauge], (i) => this.facts(i)), words = { gauge: label(gauge) };
      const spec = withParams(nameSites(filled(this.charts.signature, words), this.data.sites.site), { chosen: this.chosen });
      draw(this.signature, spec, { sites, blocks: bandsOf(this.data.blocks) }, (row) => this.choose(row.order));
      draw(this.distribution, filled(this.charts.distribution, words), { sites, modes: (this.data.modes?.[gauge] ?? []).map((value) => ({ value })) });
    } else {
      const none = gauge === undefined ? "There is nothing to show: no gauge." : `${label(gauge)} has no value at any site.`;
      undraw(this.signature, make("p", { class: "note" }, none));
      this.signature.dataset.ready = "true";
      undraw(this.distribution);
    }
    this.describe();
  }

  /** All that is known of a site, name and value. */
  facts(i) {
    const { sites, mean, std, gauges } = this.data;
    return [
      ...["operator", "call", "block", "samples", "features"].map((name) => [name, sites[name][i]]),
      ...gauges.map((gauge) => [label(gauge), withError(mean[gauge][i], std[gauge][i])]),
    ];
  }

  paint() {
    const low = Math.min(...this.finite), high = Math.max(...this.finite);
    const { site } = this.data.sites, edges = new Set(this.data.blocks.map(([, begin]) => begin));
    this.strip.replaceChildren(...this.values.map((value, i) => make("div", {
      role: "option", id: `site-${i}`, title: `${site[i]}: ${number(value)}`, "aria-label": `${site[i]} ${number(value)}`,
      "aria-selected": String(i === this.chosen), class: i && edges.has(i) ? "edge" : null,
      style: `background:${value === null ? "var(--line)" : shade(high > low ? (value - low) / (high - low) : 1)}`,
      onclick: () => this.choose(i),
    })));
    const scale = make("i", { style: `background:linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map(shade).join(",")})` });
    const keys = this.values.length ? "use the arrow keys to move along the strip" : "no sites";
    if (this.finite.length) this.legend.replaceChildren(number(low), scale, number(high), ` ${label(this.gauge)}; ${keys}`);
    else this.legend.replaceChildren(keys);
  }

  walk(event) {
    const last = this.values.length - 1, at = this.chosen ?? -1;
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
    setSignal(this.signature, "chosen", i);
    this.describe();
  }

  describe() {
    const i = this.chosen;
    if (i === null) {
      this.details.replaceChildren("Choose a site, in the chart, on the strip or in the table, to read everything about it.");
      undraw(this.batches);
      return;
    }
    this.details.replaceChildren(make("strong", {}, this.data.sites.site[i]), listOf(this.facts(i)));
    const values = this.data.batches?.[this.gauge][i] ?? [];
    const rows = values.map((value, batch) => ({ batch, value })).filter((row) => row.value !== null);
    if (values.length < 2 || !rows.length) undraw(this.batches);
    else draw(this.batches, filled(this.charts.batches, { gauge: label(this.gauge) }), { batches: rows });
  }

  table() {
    const { sites, mean, gauges } = this.data;
    const heads = [["#", 1], ["site"], ["operator"], ["block"], ["features", 1], ...gauges.map((gauge) => [label(gauge), 1])];
    const rows = sites.site.map((site, i) => [
      numberCell(i + 1), ...textCells(site, sites.operator[i], sites.block[i]),
      numberCell(sites.features[i]), ...gauges.map((gauge) => numberCell(mean[gauge][i]))]);
    const { figure, body } = tableOf(heads, rows, "All sites");
    choosable(body, "site", (i) => this.choose(i));
    this.body = body;
    return figure;
  }
};

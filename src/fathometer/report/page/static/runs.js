// Leaky ResNets: a sweep against its designs, and one network along p.
Views.runs = class {
  constructor(element, data, charts) {
    Object.assign(this, { data, charts, many: data.runs.length > 1, chosen: data.first, axis: data.axes[0] ?? null, parts: {} });
    element.replaceChildren(...(this.many ? this.sweep() : []), ...this.network());
    this.choose(this.chosen);
  }

  /** A place for a chart. */
  part(name) {
    return figureOf(this.parts[name] = chartPlace(name));
  }

  side(...names) {
    return make("div", { class: "side" }, ...names.map((name) => this.part(name)));
  }

  sweep() {
    const { panels, axes, names, table } = this.data, found = [], diverged = table.diverged.filter(Boolean).length;
    if (diverged) found.push(make("p", { class: "notice" }, `${diverged} of ${table.diverged.length} networks diverged; the charts leave them out.`));
    if (this.axis) {
      const [first, ...rest] = panels.sweep.map((panel) => panel.part);
      if (axes.length > 1) {
        const options = axes.map((name) => [name, names[name]]);
        found.push(make("div", { class: "controls" }, chooser("Against", options, this.axis, (name) => this.against(name))));
      }
      this.about = make("p", { class: "note", "data-about": true });
      found.push(this.about, this.part(first), this.side(...rest.slice(0, 2)), this.side(...rest.slice(2)));
    }
    found.push(make("h2", {}, "All networks"), this.networks());
    if (this.data.statements.length) found.push(make("h2", {}, "The paper's statements over the sweep"), this.overall());
    return found;
  }

  network() {
    const options = this.data.runs.map((run, i) => [String(i), run.name + this.rest(i)]);
    this.select = chooser("Network", options, String(this.chosen), (i) => this.choose(Number(i)));
    this.warnings = make("p", { class: "note", "data-warnings": true });
    this.facts = make("div", { class: "details" });
    this.statements = make("div", { "data-part": "theory" });
    this.layers = make("div", { "data-part": "points" });
    this.planes = make("p", { class: "note" });
    const heading = (text) => make("h3", {}, text);
    const note = (text) => make("p", { class: "note" }, text);
    return [
      this.many ? make("h2", {}, "One network") : null,
      this.many ? make("div", { class: "controls" }, this.select) : null,
      this.warnings, this.facts,
      heading("Spectra along p"), note("The largest singular values. Those of W_p are at the p where their layer begins. Shaded: the bottleneck."),
      this.side("spectra", "weight_spectra"),
      heading("Energies and Hamiltonian"), this.side("energies", "hamiltonians"),
      heading("The bottleneck"), this.side("dimensions", "affinity"),
      heading("The path in a plane"), this.planes, this.side("path", "samples"),
      heading("Training"), this.side("losses", "crit"),
      heading("The paper's statements"), this.statements,
      heading("All points of the path"), this.layers,
    ].filter(Boolean);
  }

  /** What tells a network from others of the same L̃, k* and seed. */
  rest(i) {
    const { varied, table, names } = this.data;
    const usual = new Set(["effective_depth", "rank_of_task", "seed"]);
    return varied.filter((name) => !usual.has(name)).map((name) => {
      const value = table[name][i];
      return `, ${typeof value === "number" ? `${names[name]} = ${value}` : value ?? "–"}`;
    }).join("");
  }

  choose(i) {
    this.chosen = i;
    const run = this.data.runs[i];
    this.select.querySelector("select").value = String(i);
    if (this.many) for (const row of this.body.rows) current(row, Number(row.dataset.run) === i);
    this.warnings.textContent = run.warnings;
    this.facts.replaceChildren(make("strong", {}, run.name + this.rest(i)), listOf(run.facts.map(([name, value]) => [name, number(value)])));
    if (this.axis) this.against(this.axis);
    for (const panel of this.data.panels.run) this.lines(run, panel);
    this.spectra("spectra", run, run.spectra, "singular values of A_p", []);
    const depth = run.depth === null ? [] : [{ value: run.depth, name: "L̃" }];
    this.spectra("weight_spectra", run, run.weight_spectra, "singular values of W_p", depth);
    this.plane(run);
    this.theory(run);
    this.points(run);
  }

  /** Networks that differ from the chosen one in one thing, and in their seeds. */
  siblings(axis) {
    const { varied, table } = this.data;
    const same = varied.filter((name) => name !== axis && name !== "seed");
    return this.data.runs.map((_, i) => i).filter((i) => (
      !table.diverged[i] && table[axis][i] !== null && same.every((name) => table[name][i] === table[name][this.chosen])));
  }

  against(axis) {
    this.axis = axis;
    const { names, table, panels, varied, runs } = this.data, siblings = this.siblings(axis), every = rowsOf(table);
    const same = varied.filter((name) => name !== axis && name !== "seed").map((name) => `${names[name]}: ${table[name][this.chosen]}`);
    const others = same.length ? ` with ${same.join(", ")}` : "";
    this.about.textContent = `${siblings.length} networks${others}. Lines join the medians over seeds, bars reach from the lowest to the `
      + "highest over p and seeds, hollow points are not critical. Choose a point to see its network.";
    const rows = siblings.map((i) => ({ ...every[i], run: i, network: runs[i].name, x: table[axis][i] }));
    const places = [...new Set(rows.map((row) => row.x))].sort((a, b) => a - b);
    const { rank } = runs[this.chosen];
    const levels = rank === null ? [] : places.map((x, k) => ({ x, value: axis === "rank_of_task" ? x : rank, name: k === places.length - 1 ? "k*" : "" }));
    for (const panel of panels.sweep) {
      this.draw(panel, this.charts[panel.part], { x: names[axis] }, { rows, marks: panel.mark === "rank" ? levels : [] },
        { places, chosen: this.chosen }, (row) => row.run !== undefined && this.choose(row.run));
    }
  }

  lines(run, panel) {
    const level = panel.mark === null ? null : panel.mark === "rank" ? run.rank : this.data.critical;
    const marks = level === null ? [] : [{ value: level, name: panel.mark === "rank" ? `k* = ${level}` : "limit" }];
    this.draw(panel, this.charts[panel.part], {}, { rows: rowsOf(run[panel.x]), marks, bands: panel.x === "p" ? run.bands : [] });
  }

  spectra(part, run, spectra, y, marks) {
    const series = (k) => (k < run.rank ? "first k*" : "others");
    const rows = (spectra?.values ?? []).flatMap((line, k) => line.map((value, i) => ({ p: run.p.p[i], number: k + 1, value, series: series(k) })));
    this.draw({ part, y, series: { value: y } }, this.charts.spectra, { y }, { rows, marks, bands: run.bands }, { low: spectra?.low });
  }

  plane(run) {
    const { p, cost_of_identity: cost } = run.p, last = p.length - 1;
    const axes = ({ explained: [first, second] }) => (
      { x: `first principal component (${Math.round(100 * first)} %)`, y: `second (${Math.round(100 * second)} %)` });
    const points = ({ x, y }, sample) => p.map((place, i) => ({ p: place, sample: sample + 1, x: x[sample][i], y: y[sample][i], cost_of_identity: cost[i] }));
    const path = points(run.path, 0), samples = run.samples.x.flatMap((_, sample) => points(run.samples, sample));
    this.planes.textContent = "Left, each A_p as a whole is one point, and the plane is that of their first two principal components, as in "
      + `Figure 2c. Right, ${run.samples.x.length} samples, in the plane of the first two components of all samples at all p.`;
    const ends = [{ ...path[0], end: "p = 0" }, { ...path[last], end: "p = 1" }];
    this.draw({ part: "path", series: { x: "" } }, this.charts.path, axes(run.path), { rows: path, ends });
    this.draw({ part: "samples", series: { x: "" } }, this.charts.samples, axes(run.samples), { rows: samples, ends: [] });
  }

  /** Draw a chart, or say that there is nothing to draw. */
  draw({ part, y, series }, spec, words, datasets, params = {}, onclick = null) {
    const place = this.parts[part], columns = Object.keys(series);
    if (datasets.rows.some((row) => columns.some((column) => (row[column] ?? null) !== null))) {
      draw(place, withParams(filled(spec, words), params), datasets, onclick);
      return;
    }
    undraw(place, make("p", { class: "note" }, `${y}: nothing to show for this network.`));
    place.dataset.ready = "true";
  }

  theory(run) {
    if (!run.theory.length) {
      this.statements.replaceChildren(make("p", { class: "note" }, "Not checked on this network."));
      return;
    }
    const heads = [["holds"], ["statement"], ["left", 1], ["right", 1], ["margin", 1], ["error", 1], ["paper", 1]];
    const rows = run.theory.map(({ name, claim, how, note, holds, left, right, margin, error, paper }) => {
      const statement = make("td", { class: "statement" }, make("strong", {}, name), make("div", {}, claim),
        make("details", {}, make("summary", {}, "how this was checked"), make("div", {}, how), note ? make("div", {}, note) : null));
      return [make("td", { class: holds ? "yes" : "no" }, holds ? "yes" : "no"), statement, ...[left, right, margin, error, paper].map(numberCell)];
    });
    const held = run.theory.filter(({ holds }) => holds).length;
    this.statements.replaceChildren(
      make("p", { class: "note" }, `${held} of ${run.theory.length} hold. An inequality has a margin, negative where it is violated; an equation has an error. In the last column is the right side as the paper prints it, where we correct it.`),
      tableOf(heads, rows, "The paper's statements").figure);
  }

  /** How often each statement holds, with the lowest margin or the largest error. */
  overall() {
    const heads = [["statement"], ["networks", 1], ["holds in", 1], ["lowest margin", 1], ["largest error", 1]];
    const rows = this.data.statements.map(({ name, claim, networks, holds, margin, error }) => [
      make("td", { class: "statement" }, make("strong", {}, name), make("div", {}, claim)), ...[networks, holds, margin, error].map(numberCell)]);
    return tableOf(heads, rows, "The paper's statements over the sweep", "statements").figure;
  }

  points(run) {
    const columns = { p: "p", cost_of_identity: "COI", stable_rank: "stable rank", negative: "‖A₋‖/‖A‖", affinity: "affinity",
      momentum_norm: "‖B‖" };
    const layers = { hamiltonian: "−2H/L̃", hamiltonian_averaged: "averaged", kinetic: "kinetic", potential: "potential", crit: "crit" };
    const heads = [...Object.values(columns), ...Object.values(layers)].map((name) => [name, 1]);
    const rows = run.p.p.map((_, i) => Object.keys({ ...columns, ...layers }).map((name) => numberCell(run.p[name][i])));
    this.layers.replaceChildren(
      make("p", { class: "note" }, "The columns from −2H/L̃ on are of the layer that begins at p."), tableOf(heads, rows, "All points of the path").figure);
  }

  networks() {
    const { varied, names, table, runs } = this.data;
    const shown = { train_error: "train", test_error: "test", rank: "rank", hamiltonian: "−2H/L̃", cost_of_identity: "lowest COI",
      stable_rank: "stable rank", affinity: "affinity", crit: "crit" };
    const isNumber = (name) => table[name].every((value) => value === null || typeof value === "number");
    const designs = varied.length ? varied : ["seed"];
    const heads = [["#", 1], ...designs.map((name) => [names[name], isNumber(name)]), ...Object.values(shown).map((name) => [name, 1]), ["statements"]];
    const rows = runs.map((run, i) => [
      numberCell(i + 1),
      ...designs.map((name) => (isNumber(name) ? numberCell(table[name][i]) : make("td", {}, String(table[name][i] ?? "–")))),
      ...Object.keys(shown).map((name) => numberCell(table[name][i])),
      make("td", {}, run.theory.length ? `${run.theory.filter(({ holds }) => holds).length} of ${run.theory.length}`
        : table.diverged[i] ? "diverged" : "–"),
    ]);
    const { figure, body } = tableOf(heads, rows, "All networks", "networks");
    choosable(body, "run", (i) => this.choose(i));
    this.body = body;
    return figure;
  }
};

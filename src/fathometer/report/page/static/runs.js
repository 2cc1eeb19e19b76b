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
    const { panels, axes, names, words } = this.data;
    const found = [make("p", { "data-words": "sweep" }, words)];
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
    this.words = make("p", { "data-words": "run" });
    this.facts = make("div", { class: "details" });
    this.statements = make("div", { "data-part": "theory" });
    this.layers = make("div", { "data-part": "points" });
    this.planes = make("p", { class: "note" });
    const heading = (text) => make("h3", {}, text);
    const note = (text) => make("p", { class: "note" }, text);
    return [
      this.many ? make("h2", {}, "One network") : null,
      this.many ? make("div", { class: "controls" }, this.select) : null,
      this.words, this.facts,
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
    this.words.textContent = run.words;
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
    const { names, table, panels, varied, runs } = this.data, siblings = this.siblings(axis);
    const same = varied.filter((name) => name !== axis && name !== "seed").map((name) => `${names[name]}: ${table[name][this.chosen]}`);
    const others = same.length ? ` with ${same.join(", ")}` : "";
    this.about.textContent = `${siblings.length} networks${others}. Lines join the medians over seeds, bars reach from the lowest to the `
      + "highest over p and seeds, hollow points are not critical. Choose a point to see its network.";
    for (const panel of panels.sweep) {
      const rows = [];
      for (const [column, series] of Object.entries(panel.series)) {
        for (const i of siblings) {
          const value = table[column][i];
          if (value === null || (panel.axis === "log" && value <= 0)) continue;
          rows.push({
            x: table[axis][i], series, value, run: i,
            low: table[`${column}_min`]?.[i] ?? value, high: table[`${column}_max`]?.[i] ?? value,
            critical: table.crit[i] === null || table.crit[i] <= this.data.critical,
            said: `${series} ${number(value)}, ${runs[i].name}`,
            known: told(series, ["network", runs[i].name], ["value", number(value)], ["crit", number(table.crit[i])]),
          });
        }
      }
      const places = [...new Set(siblings.map((i) => table[axis][i]))].sort((a, b) => a - b);
      const task = (x) => (axis === "rank_of_task" ? x : runs[this.chosen].rank);
      const marks = panel.mark === "rank" && runs[this.chosen].rank !== null
        ? places.map((x, k) => ({ x, value: task(x), name: k === places.length - 1 ? "k*" : "" })) : [];
      this.draw(panel.part, this.charts[panel.part], { x: names[axis], y: panel.y }, {
        rows, marks, critical: rows.filter((row) => row.critical), others: rows.filter((row) => !row.critical),
        chosen: rows.filter((row) => row.run === this.chosen),
      },
        { places }, (row) => row.run !== undefined && this.choose(row.run));
    }
  }

  lines(run, panel) {
    const table = run[panel.x], rows = [];
    for (const [column, series] of Object.entries(panel.series)) {
      table[column].forEach((value, i) => {
        if (value === null || (panel.axis === "log" && value <= 0)) return;
        const x = table[panel.x][i];
        rows.push({ x, series, value, said: `${series} ${number(value)} at ${panel.x} ${number(x)}`, known: told(series, [panel.x, number(x)], ["value", number(value)]) });
      });
    }
    const level = panel.mark === null ? null : panel.mark === "rank" ? run.rank : this.data.critical;
    const marks = level === null ? [] : [{ value: level, name: panel.mark === "rank" ? `k* = ${level}` : "limit" }];
    this.draw(panel.part, this.charts[panel.part], { y: panel.y }, { rows, marks, bands: panel.x === "p" ? run.bands : [] });
  }

  spectra(part, run, spectra, y, marks) {
    const { rank, p: { p } } = run, rows = [];
    spectra?.values.forEach((values, k) => {
      const leading = rank !== null && k < rank;
      values.forEach((value, i) => {
        if (value === null || value <= 0) return;
        const series = leading ? `first k* = ${rank}` : rank === null ? "singular values" : "others";
        rows.push({ x: p[i], number: k, value, series, leading: leading ? 1 : 0, said: `s${k + 1} ${number(value)} at p ${number(p[i])}`,
          known: told(`s${k + 1}`, ["p", number(p[i])], ["value", number(value)]) });
      });
    });
    this.draw(part, this.charts.spectra, { y }, { rows, marks, bands: run.bands }, { low: spectra?.low });
  }

  plane(run) {
    const { p, cost_of_identity: cost } = run.p, last = p.length - 1;
    const axes = ({ explained: [first, second] }) => (
      { x: `first principal component (${Math.round(100 * first)} %)`, y: `second (${Math.round(100 * second)} %)` });
    const path = p.map((place, i) => ({
      p: place, x: run.path.x[0][i], y: run.path.y[0][i],
      known: told(`p = ${number(place)}`, ["cost of identity", number(cost[i])]),
    }));
    const samples = run.samples.x.flatMap((line, sample) => line.map((x, i) => ({
      sample, p: p[i], x, y: run.samples.y[sample][i], known: told(`sample ${sample + 1}`, ["p", number(p[i])]),
    })));
    this.planes.textContent = "Left, each A_p as a whole is one point, and the plane is that of their first two principal components, as in "
      + `Figure 2c. Right, ${run.samples.x.length} samples, in the plane of the first two components of all samples at all p.`;
    const ends = [{ ...path[0], end: "p = 0" }, { ...path[last], end: "p = 1" }];
    this.draw("path", this.charts.path, axes(run.path), { rows: path, ends });
    this.draw("samples", this.charts.samples, axes(run.samples), { rows: samples, ends: [] });
  }

  /** Draw a chart, or say that there is nothing to draw. */
  draw(part, spec, words, datasets, params = {}, onclick = null) {
    const place = this.parts[part];
    if (datasets.rows.length) {
      const layer = spec.layer.filter(({ data }) => !data || datasets[data.name].length); // Vega complains of empty ones
      draw(place, withParams(filled({ ...spec, layer }, words), params), datasets, onclick);
      return;
    }
    undraw(place, make("p", { class: "note" }, `${words.y}: nothing to show for this network.`));
    place.dataset.ready = "true";
  }

  theory(run) {
    if (!run.theory.length) {
      this.statements.replaceChildren(make("p", { class: "note" }, "Not checked on this network."));
      return;
    }
    const heads = [["holds"], ["statement"], ["left", 1], ["right", 1], ["slack", 1]];
    const rows = run.theory.map(([name, text, holds, ...sides]) => {
      const [claim, how, note] = this.data.texts[text];
      const statement = make("td", { class: "told" }, make("strong", {}, name), make("div", {}, claim),
        make("details", {}, make("summary", {}, "how this was checked"), make("div", {}, how), note ? make("div", {}, note) : null));
      return [make("td", { class: holds ? "yes" : "no" }, holds ? "yes" : "no"), statement, ...sides.map(numberCell)];
    });
    const held = run.theory.filter(([, , holds]) => holds).length;
    this.statements.replaceChildren(
      make("p", { class: "note" }, `${held} of ${run.theory.length} hold. The slack is the margin, negative where a statement fails.`),
      tableOf(heads, rows, "The paper's statements").figure);
  }

  /** How often each statement holds, and with which slack at least. */
  overall() {
    const heads = [["statement"], ["networks", 1], ["holds in", 1], ["lowest slack", 1]];
    const rows = this.data.statements.map(([name, text, count, held, least]) => [
      make("td", { class: "told" }, make("strong", {}, name), make("div", {}, this.data.texts[text][0])),
      numberCell(count), numberCell(held), numberCell(least)]);
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
      make("td", {}, run.theory.length ? `${run.theory.filter(([, , holds]) => holds).length} of ${run.theory.length}`
        : table.diverged[i] ? "diverged" : "–"),
    ]);
    const { figure, body } = tableOf(heads, rows, "All networks", "networks");
    choosable(body, "run", (i) => this.choose(i));
    this.body = body;
    return figure;
  }
};
